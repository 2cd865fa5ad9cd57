"""Worlds that no cost model expects: everything on one term, at one point, everywhere, alike, or very long."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch, SubscriptionColumns

LONG = 10_000  # terms of a long message


class OddWorld(NamedTuple):
    subscriptions: SubscriptionColumns
    messages: MessageBatch


def _boxes(rng: np.random.Generator, n: int, side: float) -> NDArray[np.float64]:
    low = rng.random((n, 2))
    return np.hstack((low, np.minimum(low + side * rng.random((n, 2)), 1.0)))


def _runs(rng: np.random.Generator, n: int, most: int, vocabulary: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """1 to `most` terms a row, ascending and distinct: steps from a random start."""
    counts = rng.integers(1, most, n, endpoint=True)
    starts = np.concatenate([[0], np.cumsum(counts)])
    steps = rng.integers(1, max(2, vocabulary // most), starts[-1])
    sums = np.cumsum(steps)
    before = np.concatenate([[0], sums])[starts[:-1]]
    return starts, (sums - np.repeat(before, counts)).astype(np.int32)


def _posts(rng: np.random.Generator, n: int, words: int, vocabulary: int) -> MessageBatch:
    places = np.tile(rng.random((n, 2)), 2)
    places[::2] = _boxes(rng, len(places[::2]), 0.1)  # every other one is a range
    return MessageBatch.from_flat(places, *_runs(rng, n, words, vocabulary))


def one_term(n: int, m: int) -> OddWorld:
    """All subscriptions want the same single word, and all messages have it."""
    rng = np.random.default_rng(1)
    columns = SubscriptionColumns.from_flat(_boxes(rng, n, 0.2), np.arange(n + 1), np.full(n, 7))
    places = np.tile(rng.random((m, 2)), 2)
    return OddWorld(columns, MessageBatch.from_flat(places, 2 * np.arange(m + 1), np.tile([3, 7], m)))


def one_point(n: int, m: int) -> OddWorld:
    """All regions are the same point; every other message is exactly there."""
    rng = np.random.default_rng(2)
    columns = SubscriptionColumns.from_flat(np.full((n, 4), 0.5), *_runs(rng, n, 3, 300))
    posts = _posts(rng, m, 20, 300)
    posts.boxes[1::2] = 0.5
    return OddWorld(columns, posts)


def everywhere(n: int, m: int) -> OddWorld:
    """All regions are the whole world."""
    rng = np.random.default_rng(3)
    boxes = np.tile([-180.0, -90.0, 180.0, 90.0], (n, 1))
    return OddWorld(SubscriptionColumns.from_flat(boxes, *_runs(rng, n, 3, 3000)), _posts(rng, m, 20, 3000))


def identical(n: int, m: int) -> OddWorld:
    """The same subscription again and again."""
    rng = np.random.default_rng(4)
    boxes = np.tile([0.25, 0.25, 0.75, 0.75], (n, 1))
    columns = SubscriptionColumns.from_flat(boxes, 2 * np.arange(n + 1), np.tile([2, 5], n))
    wanted = np.tile([2, 5, 9], m)
    wanted[3::6] = 1  # every other message lacks a word
    return OddWorld(columns, MessageBatch.from_flat(np.tile(rng.random((m, 2)), 2), 3 * np.arange(m + 1), wanted))


def long_messages(n: int, m: int) -> OddWorld:
    """Messages of ten thousand words, a fifth of the vocabulary."""
    rng = np.random.default_rng(5)
    columns = SubscriptionColumns.from_flat(_boxes(rng, n, 1.0), *_runs(rng, n, 4, 5 * LONG))
    terms = np.concatenate([np.sort(rng.choice(5 * LONG, LONG, replace=False)) for _ in range(m)])
    return OddWorld(columns, MessageBatch.from_flat(np.tile(rng.random((m, 2)), 2), LONG * np.arange(m + 1), terms))


ODD: dict[str, Callable[[int, int], OddWorld]] = {
    "one term": one_term,
    "one point": one_point,
    "everywhere": everywhere,
    "identical": identical,
    "long messages": long_messages,
}
