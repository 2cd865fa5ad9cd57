"""Which wishes a message may enter, found by a shard that keeps no rankings: it sends what it finds to the owners."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.geo import Space
from nearcast.kernels.rank_layout import BASE, NEXT, OLDEST
from nearcast.ranking import PostColumns, Window, WishColumns
from nearcast.ranking.strata_rank import StrataRank


class Found(NamedTuple):
    """Rows of the batch and wishes whose threshold they reach, with exact scores."""

    rows: NDArray[np.int32]
    wishes: NDArray[np.int64]
    scores: NDArray[np.float64]

    @staticmethod
    def none() -> Found:
        return Found(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0))


class Sieve(StrataRank):
    """The structure of `strata-rank` without its buffers: thresholds are those that owners publish."""

    name = "sieve"

    def __init__(self, space: Space) -> None:
        super().__init__(Window(count=1), space)
        self._slot_of: dict[int, int] = {}
        self._wish_of = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, wish: int) -> bool:
        return wish in self._slot_of

    def put(self, wishes: NDArray[np.int64], columns: WishColumns, theta: NDArray[np.float64]) -> None:
        """Take wishes in that are not here."""
        if not len(wishes):
            return
        slots = self.table.add(columns, np.ones(len(columns), np.int32))
        self._wish_of = np.append(self._wish_of, np.zeros(max(0, self.table.top - len(self._wish_of)), np.int64))
        self._wish_of[slots] = wishes
        self._slot_of.update(zip(wishes.tolist(), slots.tolist(), strict=True))
        self.table.buffers.theta[slots] = theta
        self._add(slots)

    def set_thresholds(self, wishes: NDArray[np.int64], theta: NDArray[np.float64]) -> None:
        """New thresholds of wishes that are here."""
        if len(wishes):
            slots = self._slots(wishes)
            self.table.buffers.theta[slots] = theta
            self._moved(slots)

    def drop(self, wishes: NDArray[np.int64]) -> None:
        if len(wishes):
            slots = self._slots(wishes)
            self._drop(slots)
            self.table.release(slots)
            for wish in wishes.tolist():
                del self._slot_of[wish]

    def find(self, columns: PostColumns) -> Found:
        """Everybody whose threshold a row reaches."""
        self._state[OLDEST] = self._state[NEXT] = self._state[BASE] + len(self.store)  # the batch before goes
        first = self.store.append(columns, self._state)
        parts, row = [], 0
        while row < len(columns):
            last, n = self._probe(first, row, len(columns), self._room)
            if last == row:
                self._enlarge_room()
                continue
            room = self._room
            parts.append(Found(room.rows[:n].copy(), self._wish_of[room.slots[:n]], room.scores[:n].copy()))
            row = last
        return Found(*(np.concatenate(c) for c in zip(Found.none(), *parts, strict=True)))

    def _slots(self, wishes: NDArray[np.int64]) -> NDArray[np.int32]:
        return np.fromiter((self._slot_of[wish] for wish in wishes.tolist()), np.int32, len(wishes))
