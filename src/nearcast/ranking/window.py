"""The sliding window: which messages are in it, and their postings for re-evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.seal import take_runs
from nearcast.errors import NearcastError
from nearcast.geo import Plane, Space
from nearcast.indexes.pool import enlarged, reserved
from nearcast.kernels import rank_refill
from nearcast.kernels.rank_heap import Heap
from nearcast.kernels.rank_layout import BASE, COUNT, N_STATE, NEXT, OLDEST, SECONDS, Posts
from nearcast.kernels.rank_refill import Chain, Finder
from nearcast.ranking.columns import PostColumns
from nearcast.ranking.shelves import ShelfStore

FIRST_ROWS = 64


class WindowError(NearcastError):
    """A window that cannot be, or a time that it cannot have."""


@dataclass(frozen=True, slots=True)
class Window:
    """The last `count` messages, or those with ts > now - `seconds`."""

    count: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if (self.count is None) == (self.seconds is None):
            raise WindowError(f"count {self.count} and seconds {self.seconds} given; one of them needed")
        if self.count is not None and not (isinstance(self.count, int) and 1 <= self.count < 2**30):
            raise WindowError(f"count: {self.count!r} given; a whole number from 1 to {2**30 - 1} needed")
        if self.seconds is not None and not (0 < self.seconds < math.inf):
            raise WindowError(f"seconds: {self.seconds!r} given; a finite number above 0 needed")

    def begin(self, state: NDArray[np.int64], space: NDArray[np.float64]) -> None:
        """What kernels read of it."""
        state[COUNT] = self.count or 0
        space[SECONDS] = self.seconds or 0.0


class WindowStore:
    """Messages by row, from state[BASE] on. Room is made before a batch; rows that left go then."""

    def __init__(self, space: Space, values: NDArray[np.float64]) -> None:
        """`values` is what kernels read of the space."""
        self.shelves = ShelfStore(origin_of(space), values)
        self._n = 0  # rows
        self._n_terms = 0  # postings
        self._boxes = np.zeros((FIRST_ROWS, 4))
        self._ts = np.zeros(FIRST_ROWS)
        self._term_from = np.zeros(FIRST_ROWS + 1, np.int64)
        self._terms = np.zeros(FIRST_ROWS, np.int32)
        self._weights = np.zeros(FIRST_ROWS)
        self._newest = np.full(16, -1, np.int64)
        self._older = np.zeros(FIRST_ROWS, np.int64)
        self._row = np.zeros(FIRST_ROWS, np.int32)
        self.head = np.full(FIRST_ROWS, -1, np.int32)  # of the calendar

    def __len__(self) -> int:
        return self._n

    @property
    def posts(self) -> Posts:
        return Posts(self._boxes, self._ts, self._term_from, self._terms, self._weights)

    @property
    def chain(self) -> Chain:
        return Chain(self._newest, self._older, self._row)

    def finder(self, heap: Heap, terms: int) -> Finder:
        """What re-evaluations of wishes of so many terms work with."""
        return Finder(self.chain, self.shelves.shelves, self.shelves.desk(terms), heap)

    @property
    def nbytes(self) -> int:
        return (
            self._n * (4 * 8 + 8 + 8 + 4) + self._n_terms * (4 + 8 + 8 + 4) + self._newest.nbytes + self.shelves.nbytes
        )

    def append(self, columns: PostColumns, state: NDArray[np.int64]) -> int:
        """Take a batch in, as rows that have not arrived yet; its first row."""
        self.shelves.follow(self.posts, state)
        self._forget(state)
        first, n = self._n, self._n + len(columns)
        n_terms = self._n_terms + len(columns.terms)
        self._make_room(n, n_terms)
        if len(columns.terms):
            self._newest = enlarged(self._newest, int(columns.terms.max()) + 1, -1)
        self._boxes[first:n], self._ts[first:n] = columns.boxes, columns.ts
        self._term_from[first : n + 1] = columns.term_from + self._n_terms
        self._terms[self._n_terms : n_terms] = columns.terms
        self._weights[self._n_terms : n_terms] = columns.weights
        self._n, self._n_terms = n, n_terms
        rank_refill.link(self.chain, self.posts, first, n)
        return first

    def longest(self, first: int, last: int) -> int:
        """Most terms of a row from first to last."""
        return int(np.diff(self._term_from[first : last + 1]).max(initial=0))

    def _make_room(self, rows: int, postings: int) -> None:
        self._boxes, self._ts = reserved(self._boxes, rows), reserved(self._ts, rows)
        self._term_from = reserved(self._term_from, rows + 1)
        self.head = enlarged(self.head, rows, -1)
        self._terms, self._weights = reserved(self._terms, postings), reserved(self._weights, postings)
        self._older, self._row = reserved(self._older, postings), reserved(self._row, postings)

    def _forget(self, state: NDArray[np.int64]) -> None:
        """Drop the rows that left the window, once they are half of all."""
        gone = int(state[OLDEST] - state[BASE])
        if 2 * gone < self._n or self._n < FIRST_ROWS:
            return
        kept = np.arange(gone, self._n)
        term_from, terms = take_runs(self._term_from[: self._n + 1], self._terms, kept)
        weights = self._weights[self._term_from[gone] : self._n_terms].copy()
        n, n_terms = len(kept), len(terms)
        for array in (self._boxes, self._ts, self.head):
            array[:n] = array[gone : self._n].copy()
        self.head[n:] = -1
        self._term_from[: n + 1], self._terms[:n_terms], self._weights[:n_terms] = term_from, terms, weights
        self._newest[:] = -1
        self._n, self._n_terms = n, n_terms
        state[BASE] = state[OLDEST]
        rank_refill.link(self.chain, self.posts, 0, n)


def fresh_state() -> NDArray[np.int64]:
    state = np.zeros(N_STATE, np.int64)
    assert state[NEXT] == state[OLDEST] == state[BASE] == 0
    return state


def origin_of(space: Space) -> NDArray[np.float64]:
    """Where the coordinates of a plane begin, so that single precision suffices."""
    return np.array([space.bounds.west, space.bounds.south] if isinstance(space, Plane) else [0.0, 0.0])
