"""Worlds that nobody wishes for: everything on one term, in one point, everywhere, all the same, messages without end.

As many subscriptions each as the case has; a second case of another size shows that time grows with the answer, not
with its square. Answers are compared with those of `scan` before anything is timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nearcast import indexes
from nearcast.bench.answers import Answer
from nearcast.bench.measure import per_message, quiet, timed
from nearcast.bench.spec import BenchError
from nearcast.bench.trials import Setting
from nearcast.bench.workload import batches
from nearcast.columns import MessageBatch, SubscriptionColumns

_MESSAGES, _LONG_TERMS = 5, 10_000
_JUDGE = "scan"


class World(NamedTuple):
    name: str
    wishes: SubscriptionColumns
    messages: MessageBatch


def odd(given: Setting) -> dict[str, float]:
    """For each world: seconds of a build, and microseconds of a message by one of the index' kind."""
    figures: dict[str, float] = {}
    for world in _worlds(given.workload.subscriptions, given.workload.messages):
        with quiet():
            index = indexes.create(given.index.report().name, given.workload.history)
            built = timed(lambda index=index, world=world: index.insert(world.wishes))  # type: ignore[misc]
            answer = Answer.of(index.match(world.messages), len(world.messages))
            _agree(world, answer)
            figures[f"{world.name}: build s"] = built.seconds
            figures[f"{world.name}: matches"] = answer.matches / len(world.messages)
            figures[f"{world.name}: µs"] = per_message(index, [world.messages]).cpu * 1e6
    return figures


def _worlds(wishes: SubscriptionColumns, posts: MessageBatch) -> Iterator[World]:
    n, few = len(wishes), batches(posts, _MESSAGES, _MESSAGES)[0]
    term, place = wishes.terms[:1], few.boxes[:1]
    alone = np.arange(n + 1)
    bounds = np.concatenate([wishes.boxes[:, :2].min(axis=0), wishes.boxes[:, 2:].max(axis=0)])
    named = MessageBatch.from_flat(few.boxes, np.arange(len(few) + 1), np.repeat(term, len(few)))
    there = MessageBatch.from_flat(np.repeat(place, len(few), axis=0), few.term_from, few.terms)
    both = MessageBatch.from_flat(there.boxes, named.term_from, named.terms)
    yield World("one term", _columns(wishes.boxes, alone, np.repeat(term, n)), named)
    yield World("one point", _columns(np.repeat(place, n, axis=0), wishes.term_from, wishes.terms), there)
    yield World("everywhere", _columns(np.tile(bounds, (n, 1)), wishes.term_from, wishes.terms), few)
    yield World("all the same", _columns(np.repeat(place, n, axis=0), alone, np.repeat(term, n)), both)
    top = max(_LONG_TERMS, int(wishes.terms.max()) + 1)
    long = np.sort(np.unique(np.linspace(0, top - 1, _LONG_TERMS).astype(np.int32)))
    starts = np.arange(0, len(long) * len(few) + 1, len(long))
    yield World("10,000 terms", wishes, MessageBatch.from_flat(few.boxes, starts, np.tile(long, len(few))))


def _columns(boxes: np.ndarray, term_from: np.ndarray, terms: np.ndarray) -> SubscriptionColumns:
    return SubscriptionColumns.from_flat(boxes, term_from, terms)


def _agree(world: World, answer: Answer) -> None:
    judge = indexes.build(_JUDGE, world.wishes)
    at = answer.first_difference(Answer.of(judge.match(world.messages), len(world.messages)))
    if at is not None:
        raise BenchError(f"{world.name}: message {at} is answered differently by {_JUDGE}")
