"""Keeps rankings. What sieves found is given; only for *loose* wishes, whose threshold lies below what the sieves
know, messages are looked at here. Where there are no sieves every wish is loose."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.geo import Space
from nearcast.indexes.pool import reserved
from nearcast.kernels.rank_layout import NEVER, Candidates
from nearcast.ranking import Changes, PostColumns, Window, WishColumns
from nearcast.ranking.strata_rank import StrataRank

_NOTHING = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))


class Best(NamedTuple):
    """Rankings of several slots, each best first."""

    slot: NDArray[np.int32]
    seq: NDArray[np.int64]
    score: NDArray[np.float64]


class Owner(StrataRank):
    """A `strata-rank` that lays out loose wishes only."""

    name = "owner"

    def __init__(self, window: Window, space: Space, *, is_sifted: bool) -> None:
        super().__init__(window, space)
        self.is_sifted = is_sifted
        self._published = np.zeros(0)  # by slot: the threshold that sieves know; NEVER: they do not know the wish
        self._is_loose = np.zeros(0, np.bool_)
        self._given = Candidates(*_NOTHING)
        self._incoming: NDArray[np.float64] | None = None
        self._changed: list[NDArray[np.int32]] = []  # slots with new thresholds since `publish`

    @property
    def n_loose(self) -> int:
        return int(self._is_loose[: self.table.top].sum()) if self.is_sifted else self.table.n_live

    def begin_from(self, number: int) -> None:
        """Count messages from here on; before the first one."""
        self._past = number

    def rankings(self, slots: NDArray[np.int32]) -> Best:
        """The best of many wishes, one after the other."""
        buffers, k = self.table.buffers, self.table.wants.k[slots]
        counts = np.minimum(k, buffers.size[slots]).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(starts[-1]) + np.repeat(buffers.start[slots] - starts[:-1], counts)
        seqs = buffers.seqs[at].astype(np.int64) + self._past
        return Best(np.repeat(slots, counts), seqs, buffers.scores[at])

    def settle(self, columns: PostColumns, given: Candidates) -> Changes:
        """A batch arrives; `given` are rows, slots and scores, by row and each pair once."""
        self._given = given
        try:
            return self.arrive(columns)
        finally:
            self._given = Candidates(*_NOTHING)

    def restore(self, columns: WishColumns, published: NDArray[np.float64]) -> NDArray[np.int32]:
        """Wishes of which the sieves know these thresholds."""
        self._incoming = published
        try:
            return self.subscribe(columns)
        finally:
            self._incoming = None

    def publish(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Slots whose thresholds the sieves must learn, and the thresholds. Nobody is loose afterwards."""
        if not self.is_sifted:
            return np.zeros(0, np.int32), np.zeros(0)
        slots = np.unique(np.concatenate([np.zeros(0, np.int32), *self._changed]))
        self._changed.clear()
        theta = self.table.buffers.theta
        slots = slots[(self.table.wants.term_count[slots] > 0) & (theta[slots] != self._published[slots])]
        self._published[slots] = theta[slots]
        self._is_loose[: self.table.top] = False
        self._sheets.clear()
        return slots, theta[slots]

    # -- the protocol of a ranker --------------------------------------------------------------------

    def _add(self, slots: NDArray[np.int32]) -> None:
        if not self.is_sifted:
            super()._add(slots)
            return
        self._published = reserved(self._published, self.table.top)
        self._is_loose = reserved(self._is_loose, self.table.top)
        self._published[slots] = NEVER if self._incoming is None else self._incoming
        self._is_loose[slots] = self.table.buffers.theta[slots] < self._published[slots]
        self._changed.append(slots.copy())
        if self._is_loose[slots].any():
            super()._add(self._loose(slots))

    def _drop(self, slots: NDArray[np.int32]) -> None:
        super()._drop(self._loose(slots))

    def _moved(self, slots: NDArray[np.int32]) -> None:
        loose = self._loose(slots)
        if self.is_sifted:
            self._changed.append(slots.copy())
            fell = slots[~self._is_loose[slots] & (self.table.buffers.theta[slots] < self._published[slots])]
            if len(fell):
                self._is_loose[fell] = True
                super()._add(fell)
        super()._moved(loose)

    def _loose(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        return slots[self._is_loose[slots]] if self.is_sifted else slots

    def _probe(self, first_post: int, row: int, last_row: int, room: Candidates) -> tuple[int, int]:
        """What the loose ones want, and what was given for the others."""
        if not self.is_sifted:
            return super()._probe(first_post, row, last_row, room)
        last, n = super()._probe(first_post, row, last_row, room)
        given = self._given
        while True:
            low, high = np.searchsorted(given.rows, [row, last])
            tight = low + np.flatnonzero(~self._is_loose[given.slots[low:high]])
            found = int(np.searchsorted(room.rows[:n], last))
            if found + len(tight) <= len(room.rows):
                break
            last = row + (last - row) // 2
            if last == row:
                return row, 0
        _merge(room, found, given, tight)
        return last, found + len(tight)


def _merge(room: Candidates, n: int, given: Candidates, chosen: NDArray[np.intp]) -> None:
    """Both by row; first what was found."""
    rows = np.concatenate([room.rows[:n], given.rows[chosen]])
    order = np.argsort(rows, kind="stable")
    slots = np.concatenate([room.slots[:n], given.slots[chosen]])
    scores = np.concatenate([room.scores[:n], given.scores[chosen]])
    total = len(rows)
    room.rows[:total], room.slots[:total], room.scores[:total] = rows[order], slots[order], scores[order]
