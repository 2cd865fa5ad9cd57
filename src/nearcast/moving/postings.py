"""Live messages by term and place, from Python: see `kernels.move_postings`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.pool import enlarged, reserved
from nearcast.kernels import move_postings
from nearcast.kernels.layout import Entries
from nearcast.kernels.move_postings import FILL, LIST_TOP, NONE, POOL_TOP, STATE_SIZE, Postings

DEFAULT_FILL = 12
FIRST_POOL, FIRST_LISTS = 1024, 256
SAMPLE = 100_000  # places that a frame is chosen from
SETTLED = 1 << 18  # messages: from here on the frame stays
CLOSE = 0.25  # of its extent: a frame that is so near to the right one stays, too


class MessagePostings:
    """The lists and their room.

    The frame (where cells are even) is looked at when the messages have doubled; if they are elsewhere by now,
    all are posted anew.
    """

    def __init__(self, fill: int = DEFAULT_FILL) -> None:
        self._fill = fill
        self.frame = np.array([0.0, 0.0, 1.0, 1.0])  # west, south, 1 / width, 1 / height
        self._framed = 0
        self._empty(0)

    def _empty(self, n_terms: int) -> None:
        self._firsts = np.full(n_terms, NONE, np.int32)
        self._grids = np.zeros(n_terms, np.int8)
        self._counts = np.zeros(n_terms, np.int32)
        self._heads = np.zeros((FIRST_LISTS, 3), np.int64)
        self._pool = np.zeros((FIRST_POOL, 2), np.uint64)
        self._state = np.full(STATE_SIZE, NONE, np.int64)
        self._state[POOL_TOP] = self._state[LIST_TOP] = 0
        self._state[FILL] = self._fill

    @property
    def arrays(self) -> Postings:
        return Postings(self._firsts, self._grids, self._counts, self._heads, self._pool, self._state)

    def put(self, rows: Entries, numbers: NDArray[np.int64], n_live: int) -> None:
        """Take in messages; with them there are so many."""
        if n_live >= 2 * self._framed and self._framed < SETTLED:
            live = np.flatnonzero(rows.term_count)
            frame, self._framed = _frame_of(rows.boxes[live]), n_live
            if not _is_close(self.frame, frame):
                self.frame, numbers = frame, live
                self._empty(len(self._firsts))
        highest = int(rows.terms.max(initial=-1)) + 1
        self._firsts = enlarged(self._firsts, highest, NONE)
        self._grids, self._counts = enlarged(self._grids, highest), enlarged(self._counts, highest)
        row, term = 0, 0
        while True:
            row, term = move_postings.put(self.arrays, rows, numbers, self.frame, row, term)
            if row == len(numbers):
                return
            self._make_room(rows, int(numbers[row]), term)

    def _make_room(self, rows: Entries, row: int, term: int) -> None:
        word = int(rows.terms[rows.term_from[row] + term])
        room, lists = move_postings.room_needed_for(self.arrays, word)
        self._pool = reserved(self._pool, int(self._state[POOL_TOP] + room))
        self._heads = reserved(self._heads, int(self._state[LIST_TOP] + lists))

    def take(self, rows: Entries, numbers: NDArray[np.int64]) -> None:
        move_postings.take(self.arrays, rows, numbers, self.frame)

    def nbytes(self) -> dict[str, int]:
        directory = self._firsts.nbytes + self._grids.nbytes + self._counts.nbytes
        return {
            "postings": int(self._state[POOL_TOP]) * 16,
            "lists of postings": int(self._state[LIST_TOP]) * 24 + directory,
        }

    def details(self) -> dict[str, Any]:
        grids = self._grids[self._counts > 0]
        return {
            "postings": int(self._counts.sum()),
            "grids": int((grids > 0).sum()),
            "lists": int(self._state[LIST_TOP]),
        }


def _frame_of(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where nearly all messages are: cells are even inside, and grow outside."""
    sample = boxes[:: -(-len(boxes) // SAMPLE)]
    low, high = np.quantile(sample[:, :2], 0.001, axis=0), np.quantile(sample[:, 2:], 0.999, axis=0)
    extent = np.where(high - low > 1e-300, high - low, 1.0) * 1.1
    low = low - 0.05 * extent
    return np.array([*low, *(1.0 / extent)])


def _is_close(frame: NDArray[np.float64], right: NDArray[np.float64]) -> bool:
    """Whether all four sides are near enough."""
    low, extent = frame[:2], 1.0 / frame[2:]
    right_low, right_extent = right[:2], 1.0 / right[2:]
    off = np.maximum(np.abs(low - right_low), np.abs(low + extent - right_low - right_extent))
    return bool((off <= CLOSE * right_extent).all())
