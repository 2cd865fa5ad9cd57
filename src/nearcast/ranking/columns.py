"""Wishes and messages as weighted columns: every term with its share of a vector of length one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast.columns import MessageBatch
from nearcast.columns.messages import NOT_A_BOX, NOT_ASCENDING
from nearcast.columns.seal import bad_boxes, bad_runs, refuse, seal, seal_boxes, seal_runs, take_runs
from nearcast.errors import ColumnsError
from nearcast.idf import Idf
from nearcast.kernels.rank_scan import unit_length
from nearcast.lexicon import Lexicon
from nearcast.model import MAX_K, Message, Wish


@dataclass(frozen=True, slots=True, eq=False)
class WishColumns:
    """Wish i owns terms[term_from[i]:term_from[i + 1]], ascending, with weights of unit length."""

    points: NDArray[np.float64]  # [n, 2]
    k: NDArray[np.int32]  # [n]
    alpha: NDArray[np.float64]  # [n]
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [*]
    weights: NDArray[np.float64]  # [*]

    def __len__(self) -> int:
        return len(self.k)

    @classmethod
    def from_flat(
        cls,
        points: ArrayLike,
        k: ArrayLike,
        alpha: ArrayLike,
        term_from: ArrayLike,
        terms: ArrayLike,
        idf: Idf,
        times: ArrayLike | None = None,
    ) -> WishColumns:
        """From arrays; `times` says how often each term was written. Raises ColumnsError at the first bad row."""
        sealed = seal(points, np.float64, "points")
        if sealed.ndim != 2 or sealed.shape[1] != 2:
            raise ColumnsError(f"points: shape {sealed.shape} given, [n, 2] needed")
        n = len(sealed)
        ks, alphas = (_one_each(seal(v, d, w), n, w) for v, d, w in ((k, np.int32, "k"), (alpha, np.float64, "alpha")))
        run_from, run = seal_runs(term_from, terms, n, "terms")
        refuse(np.asarray(~np.isfinite(sealed).all(axis=1)), "a point needs finite coordinates")
        refuse((ks < 1) | (ks > MAX_K), f"k must be 1 to {MAX_K:,}")
        refuse(~((alphas >= 0.0) & (alphas <= 1.0)), "alpha must be 0 to 1")
        refuse(np.diff(run_from) == 0, "at least one term needed")
        refuse(bad_runs(run_from, run), NOT_ASCENDING)
        return cls(sealed, ks, alphas, run_from, run, _weights(run_from, run, idf, times))

    @classmethod
    def from_values(cls, wishes: Sequence[Wish], lexicon: Lexicon, idf: Idf) -> WishColumns:
        """From wishes that were checked; new words join the lexicon."""
        run_from, run, times = _counted([wish.words for wish in wishes], lexicon)
        points = np.array([(wish.x, wish.y) for wish in wishes], np.float64).reshape(-1, 2)
        k = np.array([wish.k for wish in wishes], np.int32)
        alpha = np.array([wish.alpha for wish in wishes], np.float64)
        return cls.from_flat(points, k, alpha, run_from, run, idf, times)

    def cut(self, rows: NDArray[np.bool_]) -> WishColumns:
        """The chosen rows."""
        term_from, kept = _cut_runs(self.term_from, rows)
        return WishColumns(
            self.points[rows], self.k[rows], self.alpha[rows], term_from, self.terms[kept], self.weights[kept]
        )


@dataclass(frozen=True, slots=True, eq=False)
class PostColumns:
    """Messages for a window. `ts` is NaN where there is none; a box with west > east crosses the 180th meridian."""

    boxes: NDArray[np.float64]  # [n, 4]
    ts: NDArray[np.float64]  # [n]
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [*]
    weights: NDArray[np.float64]  # [*]

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def from_batch(cls, batch: MessageBatch, idf: Idf, ts: ArrayLike | None = None) -> PostColumns:
        """From messages of one row each, in which every term is written once."""
        if batch.message is not None:
            raise ColumnsError("messages with several rows given; rank them by from_values")
        return cls.from_flat(batch.boxes, batch.term_from, batch.terms, idf, ts)

    @classmethod
    def from_flat(
        cls,
        boxes: ArrayLike,
        term_from: ArrayLike,
        terms: ArrayLike,
        idf: Idf,
        ts: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> PostColumns:
        sealed = seal_boxes(boxes)
        run_from, run = seal_runs(term_from, terms, len(sealed), "terms")
        refuse(bad_boxes(np.where([[True, False, True, False]], 0.0, sealed)), NOT_A_BOX)
        refuse(np.asarray(~np.isfinite(sealed).all(axis=1)), NOT_A_BOX)
        refuse(bad_runs(run_from, run), NOT_ASCENDING)
        stamps = (
            np.full(len(sealed), np.nan) if ts is None else _one_each(seal(ts, np.float64, "ts"), len(sealed), "ts")
        )
        return cls(sealed, stamps, run_from, run, _weights(run_from, run, idf, times))

    @classmethod
    def from_values(cls, messages: Sequence[Message], lexicon: Lexicon, idf: Idf) -> PostColumns:
        """From messages that were checked."""
        sides = [(m.place.west, m.place.south, m.place.east, m.place.north) for m in messages]
        ts = np.array([math.nan if m.ts is None else m.ts for m in messages], np.float64)
        words = [[token.word for token in m.tokens] for m in messages]
        return cls.from_words(np.array(sides, np.float64).reshape(-1, 4), ts, words, lexicon, idf)

    @classmethod
    def from_words(
        cls, boxes: ArrayLike, ts: ArrayLike, texts: Sequence[Sequence[str]], lexicon: Lexicon, idf: Idf
    ) -> PostColumns:
        """From the words of each message. New ones join the lexicon: a later wish may ask for them."""
        run_from, run, times = _counted(texts, lexicon)
        return cls.from_flat(boxes, run_from, run, idf, ts, times)

    @classmethod
    def joined(cls, parts: Sequence[PostColumns]) -> PostColumns:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(len(part.terms) for part in parts)], dtype=np.int64).tolist()
        starts = [part.term_from[1:] + n for part, n in zip(parts, before, strict=False)]
        return cls(
            np.concatenate([np.zeros((0, 4)), *(p.boxes for p in parts)]),
            np.concatenate([np.zeros(0), *(p.ts for p in parts)]),
            np.concatenate([np.zeros(1, np.int64), *starts]),
            np.concatenate([np.zeros(0, np.int32), *(p.terms for p in parts)]),
            np.concatenate([np.zeros(0), *(p.weights for p in parts)]),
        )

    def take(self, rows: NDArray[np.intp]) -> PostColumns:
        """These rows, in this order."""
        term_from, positions = take_runs(self.term_from, np.arange(len(self.terms), dtype=np.int32), rows)
        return PostColumns(self.boxes[rows], self.ts[rows], term_from, self.terms[positions], self.weights[positions])

    def cut(self, rows: NDArray[np.bool_]) -> PostColumns:
        """The chosen rows."""
        if rows.all():
            return self
        term_from, kept = _cut_runs(self.term_from, rows)
        return PostColumns(self.boxes[rows], self.ts[rows], term_from, self.terms[kept], self.weights[kept])


def _cut_runs(run_from: NDArray[np.int64], rows: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the runs of the chosen rows start, and which terms are theirs."""
    counts = np.diff(run_from)
    return np.concatenate([[0], np.cumsum(counts[rows])]).astype(np.int64), np.repeat(rows, counts)


def _one_each(values: NDArray[Any], n: int, what: str) -> NDArray[Any]:
    if values.shape != (n,):
        raise ColumnsError(f"{what}: shape {values.shape} given, [{n}] needed")
    return values


def _counted(
    texts: Iterable[Sequence[str]], lexicon: Lexicon
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Runs of distinct ascending terms, and how often each was written."""
    lengths, terms, times = [0], [], []
    for words in texts:
        counts = sorted(Counter(lexicon.intern_all(words)).items())
        lengths.append(len(counts))
        terms += [term for term, _ in counts]
        times += [n for _, n in counts]
    return np.cumsum(lengths, dtype=np.int64), np.array(terms, np.int32), np.array(times, np.float64)


def _weights(
    run_from: NDArray[np.int64], run: NDArray[np.int32], idf: Idf, times: ArrayLike | None
) -> NDArray[np.float64]:
    weights = np.ascontiguousarray(idf.of(run))
    if times is not None:
        weights = np.ascontiguousarray(weights * _one_each(seal(times, np.float64, "times"), len(run), "times"))
    unit_length(run_from, weights)
    return weights
