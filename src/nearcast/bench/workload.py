"""The arrays of a described workload: subscriptions, measured messages, history.

Subscriptions are drawn from messages as in VLDBJ'17 section 5.1.1. The messages they come from, the measured
ones and the history are three disjoint samples of the same data, so that no index is built for the very
messages it is measured on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.bench.spec import BenchError, Spec
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.columns.seal import take_runs
from nearcast.lexicon import Lexicon
from nearcast.workloads import SHORT, STYLES, RealSet, TweetStyle, messages, read_real, real_texts, subscriptions, words
from nearcast.workloads.sampling import Bounds, boxes_around, generator

_MOST_SOURCES = 500_000  # generated messages that subscriptions are drawn from
_LONG = 100  # words; subscriptions come from short texts even where messages are long (KDD'13 section 6)
_SAMPLE, _PLACES = 11, 12  # keep the random streams of a seed apart
_PARTS = 3  # seeds per seed: sources, measured messages, history


class Texts(NamedTuple):
    """The measured messages as they were posted."""

    texts: pa.Array  # [n]  string
    lexicon: Lexicon  # with the workload's terms


class Workload(NamedTuple):
    spec: Spec
    subscriptions: SubscriptionColumns  # [n]
    newcomers: SubscriptionColumns  # [n * churn]  numbered after the subscriptions
    messages: MessageBatch
    history: MessageBatch
    texts: Texts | None = None


class Samples(NamedTuple):
    """Three disjoint samples of one data set."""

    sources: MessageBatch
    measured: MessageBatch
    history: MessageBatch
    bounds: Bounds
    rows: NDArray[np.intp] | None = None  # [n]  of a real set: which of its rows were measured


class Workloads:
    """Makes workloads from one seed, and keeps the real sets it has read."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._real: dict[tuple[str, int | None], RealSet] = {}

    def prepare(self, spec: Spec, *, texts: bool = False) -> Workload:
        """The workload, with its texts if wanted; raises `DataAbsent` where real data is needed and not here."""
        samples = self._samples(spec)
        n = spec.subscriptions
        drawn = subscriptions(
            samples.sources,
            n + round(n * spec.churn),
            self.seed,
            keywords=spec.keywords,
            area=spec.area,
            bounds=samples.bounds,
            zipf=spec.keyword_zipf,
            sizes=spec.sizes,
        )
        told = self._texts(spec, samples) if texts else None
        return Workload(spec, some(drawn, 0, n), some(drawn, n, len(drawn)), samples.measured, samples.history, told)

    def _samples(self, spec: Spec) -> Samples:
        return self._from_real(spec) if spec.is_real else self._generated(spec)

    def samples(self, spec: Spec, messages: int) -> Samples:
        """So many messages, and others to draw wishes from, without a history."""
        return self._samples(replace(spec, messages=messages, history=1))

    def _texts(self, spec: Spec, samples: Samples) -> Texts:
        """Real texts; made-up words where there are only terms."""
        real = self._real.get((spec.data, spec.rows))
        lexicon, posts = Lexicon(), samples.measured
        if real is not None and real.words is not None and samples.rows is not None:
            lexicon.intern_all(real.words)
            return Texts(real_texts(spec.data, samples.rows), lexicon)
        lexicon.intern_all(words(range(int(posts.terms.max(initial=-1)) + 1)))
        said = np.array(words(posts.terms.tolist()), dtype=object)
        return Texts(pa.array([" ".join(row) for row in np.split(said, posts.term_from[1:-1])], pa.string()), lexicon)

    def with_messages(self, workload: Workload, spec: Spec) -> Workload:
        """The same subscriptions and history, of generated data, with the messages of another description."""
        if spec.is_real:
            raise BenchError(f"{spec.data}: other messages for the same subscriptions are generated ones only")
        made = messages(spec.messages, self.seed * _PARTS + 1, _message_style(spec))
        return workload._replace(spec=spec, messages=made)

    def _generated(self, spec: Spec) -> Samples:
        style, seed = _style(spec), self.seed * _PARTS
        words = style.words if style.words[1] <= _LONG else SHORT.words
        sources = messages(min(spec.subscriptions, _MOST_SOURCES), seed, replace(style, words=words, area=None))
        posted = _message_style(spec)
        return Samples(
            sources,
            messages(spec.messages, seed + 1, posted),
            messages(spec.history, seed + 2, posted),
            style.bounds,
        )

    def _from_real(self, spec: Spec) -> Samples:
        key = spec.data, spec.rows
        if key not in self._real:
            self._real[key] = read_real(spec.data, spec.rows)
        everything = self._real[key].messages
        rng = generator(self.seed, _SAMPLE)
        order = rng.permutation(len(everything))
        lengths = np.diff(everything.term_from)[order]
        low, high = spec.message_words or (0, np.iinfo(np.int64).max)
        fitting = np.flatnonzero((lengths >= low) & (lengths <= high))
        n, n_history = spec.messages, spec.history
        if len(fitting) < n + n_history or len(order) < 2 * (n + n_history):
            raise BenchError(
                f"{spec.data}: {len(fitting)} of {len(order)} messages have the wanted words; {n} measured and "
                f"{n_history} for history needed, and as many others to draw subscriptions from"
            )
        measured, history = order[fitting[:n]], order[fitting[n : n + n_history]]
        sources = np.delete(order, fitting[: n + n_history])
        west, south = everything.boxes[:, :2].min(axis=0).tolist()
        east, north = everything.boxes[:, 2:].max(axis=0).tolist()
        bounds = west, south, east, north
        posts, past = _chosen(everything, measured), _chosen(everything, history)
        if spec.message_area is not None and spec.message_area[1]:
            rng = generator(self.seed, _PLACES)
            posts, past = (_widened(rng, batch, spec.message_area, bounds) for batch in (posts, past))
        return Samples(_chosen(everything, sources), posts, past, bounds, measured)


def world_bounds(samples: Samples) -> Bounds:
    """The bounds, or a little more where the data has no extent in one direction."""
    west, south, east, north = samples.bounds
    return west, south, max(east, west + 1e-9), max(north, south + 1e-9)


def _style(spec: Spec) -> TweetStyle:
    chosen: dict[str, Any] = {name: getattr(spec, name) for name in ("vocabulary", "zipf", "local")}
    return replace(STYLES[spec.data], **{name: value for name, value in chosen.items() if value is not None})


def _message_style(spec: Spec) -> TweetStyle:
    style = _style(spec)
    if spec.message_words is not None:
        style = replace(style, words=spec.message_words)
    if spec.message_area is not None:
        style = replace(style, area=spec.message_area if spec.message_area[1] else None)
    return style


def _chosen(batch: MessageBatch, rows: NDArray[np.intp]) -> MessageBatch:
    term_from, terms = take_runs(batch.term_from, batch.terms, rows)
    return MessageBatch(batch.boxes[rows], term_from, terms)


def _widened(rng: np.random.Generator, batch: MessageBatch, area: tuple[float, float], bounds: Bounds) -> MessageBatch:
    """Boxes around the points, for range messages of data that only has points."""
    return MessageBatch(boxes_around(rng, batch.boxes, area, bounds, "log"), batch.term_from, batch.terms)


def some(columns: SubscriptionColumns, first: int, last: int) -> SubscriptionColumns:
    """Subscriptions first..last of columns with one entry each, as columns of their own; all are not copied."""
    if (first, last) == (0, len(columns)):
        return columns
    return SubscriptionColumns(*_cut(columns, first, last))


def batches(messages: MessageBatch, size: int, n: int | None = None) -> list[MessageBatch]:
    """The first n messages in batches, copied so that each is laid out as if it had just come in."""
    n = len(messages) if n is None else min(n, len(messages))
    return [MessageBatch(*_cut(messages, first, min(first + size, n))) for first in range(0, n, size)]


def _cut(
    columns: MessageBatch | SubscriptionColumns, first: int, last: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32]]:
    starts = columns.term_from[first : last + 1]
    return (
        columns.boxes[first:last].copy(),
        starts - starts[0],
        columns.terms[starts[0] : starts[-1]].copy(),
    )
