"""Which of an entry's tokens represents it, and in which order the others follow (KDD'13 4.2).

Frequencies come from the message history if there is one, else from the subscriptions. Any choice is correct;
it is made when an entry comes and kept until it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.local_counts import LocalCounts
from nearcast.indexes.pool import enlarged
from nearcast.kernels.layout import Entries
from nearcast.kernels.token_order import NO_TERM, cover

CHOICES = ("random", "df", "idf", "local")


class _Runs(NamedTuple):
    """The terms of some entries, one after the other."""

    row_from: NDArray[np.int64]  # [n + 1]
    row: NDArray[np.int64]  # [*]  position of the entry among the given ones
    place: NDArray[np.int64]  # [*]  where in Entries.terms
    terms: NDArray[np.int32]  # [*]


def _runs(entries: Entries, numbers: NDArray[np.int64]) -> _Runs:
    counts = entries.term_count[numbers].astype(np.int64)
    row_from = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    place = np.arange(row_from[-1]) + np.repeat(entries.term_from[numbers] - row_from[:-1], counts)
    return _Runs(row_from, np.repeat(np.arange(len(numbers)), counts), place, entries.terms[place])


class TokenOrder:
    """By `tokens`: random; df, the most frequent first; idf, the rarest first; local, the rarest first by the
    frequency in the grid cell where the entry's centre is, then by the frequency everywhere.
    """

    def __init__(self, index: str, tokens: str, grid: int, history: MessageBatch | None) -> None:
        if tokens not in CHOICES:
            raise CatalogueError(f"{index}: tokens={tokens!r} given; there are {', '.join(CHOICES)}")
        if not 1 <= grid <= 1 << 15:
            raise CatalogueError(f"{index}: grid={grid} given; 1 to {1 << 15} cells a side are allowed")
        self.tokens, self.grid = tokens, int(grid)
        self._ranked = np.zeros(0, dtype=np.int32)  # beside Entries.terms: the same runs, in order of choice
        self._n = 0  # entries
        self._from_messages = history is not None and len(history.terms) > 0
        self._frequency = np.zeros(0, dtype=np.int64)  # by term
        self._local = LocalCounts(self.grid)
        if history is not None and self._from_messages:
            self._frequency = np.bincount(history.terms_once()).astype(np.int64)
            if tokens == "local":
                counts = np.diff(history.term_from)
                self._local.count(history.boxes, counts, history.terms)

    def words(self, entries: Entries) -> Entries:
        """The entries with their terms in order of choice."""
        return entries._replace(terms=self._ranked[: len(entries.terms)])

    def put(self, entries: Entries, new: NDArray[np.int64], *, is_first: bool = False) -> None:
        """Choose for new entries. The first ones are all there are: df is then greedy, as in the paper."""
        runs = _runs(entries, new)
        self._ranked = enlarged(self._ranked, len(entries.terms))
        self._n += len(new)
        self._note(entries, runs)
        keys: list[NDArray[Any]] = [self._frequency[runs.terms]]
        if self.tokens == "df":
            keys = [-keys[0]]
            if is_first:
                keys.append(runs.terms != _greedy(runs)[runs.row])
        elif self.tokens == "random":
            keys = [_scrambled(runs.terms.astype(np.int64) + 31 * new[runs.row])]
        elif self.tokens == "local":
            keys.append(self._local.of(entries.boxes[new], runs.row, runs.terms))
        self._ranked[runs.place] = runs.terms[np.lexsort((*keys, runs.row))]

    def forget(self, entries: Entries, gone: NDArray[np.int64]) -> None:
        self._n -= len(gone)
        if not self._from_messages:
            np.subtract.at(self._frequency, _runs(entries, gone).terms, 1)

    def _note(self, entries: Entries, runs: _Runs) -> None:
        """Count the terms of new entries, unless messages were counted before."""
        self._frequency = enlarged(self._frequency, int(runs.terms.max()) + 1)
        if self._from_messages:
            return
        np.add.at(self._frequency, runs.terms, 1)
        if self.tokens == "local" and self._n > 2 * self._local.n_boxes:
            live = np.flatnonzero(entries.term_count)
            everything = _runs(entries, live)
            self._local.count(entries.boxes[live], np.diff(everything.row_from), everything.terms)

    # -- report and snapshot ------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "grid": self.grid}

    def nbytes(self) -> dict[str, int]:
        return {
            "token order": self._ranked.nbytes,
            "frequencies": self._frequency.nbytes + self._local.nbytes,
        }

    def state(self) -> dict[str, NDArray[Any]]:
        return self._local.state() | {
            "ranked": self._ranked,
            "frequency": self._frequency,
            "told": np.array([self._from_messages, self._n], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._ranked, self._frequency = arrays["ranked"], arrays["frequency"]
        self._from_messages, self._n = bool(arrays["told"][0]), int(arrays["told"][1])
        self._local.restore(arrays)


def _scrambled(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Chance without a generator: the same numbers always give the same order."""
    mixed = (numbers & 0x7FFFFFFF) * 2654435769 & 0xFFFFFFFF
    return (mixed ^ mixed >> 15) * 1274126177 % 4294967291


def _greedy(runs: _Runs) -> NDArray[np.int64]:
    """By row: its representative by the df-based method."""
    order = np.argsort(runs.terms, kind="stable")
    left = np.bincount(runs.terms).astype(np.int64)
    by_from = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(left)])
    chosen = np.full(len(runs.row_from) - 1, NO_TERM, dtype=np.int64)
    first = np.full(int(left.max()) + 1, NO_TERM, dtype=np.int64)
    by_row = runs.row[order]
    cover(runs.row_from, runs.terms, by_from, by_row, left, first, np.zeros_like(left), chosen)
    return chosen
