"""Wishes by slot, with their buffers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import CatalogueError
from nearcast.indexes.pool import FreeNumbers, Pool, reserved
from nearcast.kernels.rank_layout import NEVER, Buffers, Calendar, Wants
from nearcast.kernels.rank_settle import Notes
from nearcast.ranking.columns import WishColumns

MOST_FRESH = 256  # slots that were refilled within a batch, before the index is asked again


class WishTable:
    """Slots, terms and buffers are used again when a wish goes."""

    def __init__(self) -> None:
        self._numbers = FreeNumbers()
        self._terms = Pool()
        self._weights = np.zeros(0)
        self._points = np.zeros((0, 2))
        self._alpha = np.zeros(0)
        self._k = np.zeros(0, np.int32)
        self._term_from = np.zeros(0, np.int64)
        self._term_count = np.zeros(0, np.int32)
        self._start = np.zeros(0, np.int64)
        self._room = np.zeros(0, np.int32)
        self._size = np.zeros(0, np.int32)
        self._theta = np.zeros(0)
        self._after = np.zeros(0, np.int32)
        self._before = np.zeros(0, np.int32)
        self._due = np.zeros(0, np.int32)
        self._fresh_in = np.zeros(0, np.int64)
        self._changed_in = np.zeros(0, np.int64)
        self._moved = np.zeros(0, np.int32)
        self._known = np.zeros(0)
        self._fresh = np.zeros(MOST_FRESH, np.int32)
        self._runs = _Runs()
        self.most_k = self.most_terms = 1  # of any wish so far

    @property
    def top(self) -> int:
        return self._numbers.top

    @property
    def n_live(self) -> int:
        return self.top - self._numbers.n_free

    @property
    def wants(self) -> Wants:
        top = self.top
        points, alpha, k = self._points[:top], self._alpha[:top], self._k[:top]
        return Wants(points, alpha, k, self._term_from[:top], self._term_count[:top], self._terms.values, self._weights)

    @property
    def buffers(self) -> Buffers:
        top, runs = self.top, self._runs
        size, theta = self._size[:top], self._theta[:top]
        return Buffers(self._start[:top], self._room[:top], size, theta, runs.scores, runs.seqs, runs.beaten)

    def calendar(self, head: NDArray[np.int32]) -> Calendar:
        top = self.top
        return Calendar(head, self._after[:top], self._before[:top], self._due[:top])

    @property
    def notes(self) -> Notes:
        top = self.top
        moved = self._moved[: max(top, 1)]
        return Notes(self._fresh, self._fresh_in[:top], self._changed_in[:top], moved, self._known[:top])

    def nbytes(self) -> dict[str, int]:
        return {
            "wishes": self.top * (16 + 8 + 4 + 8 + 4) + self._terms.top * 12,
            "buffers": self.top * (8 + 4 + 4 + 8) + self._runs.top * (8 + 4 + 2),
            "calendar": self.top * (3 * 4 + 2 * 8 + 4 + 8),
        }

    def live(self) -> NDArray[np.int32]:
        return np.flatnonzero(self._term_count[: self.top]).astype(np.int32)

    def buffered(self) -> float:
        """Mean length of a buffer."""
        return float(self._size[: self.top].sum() / max(1, self.n_live))

    def add(self, columns: WishColumns, rooms: NDArray[np.int32]) -> NDArray[np.int32]:
        slots = self._numbers.take(len(columns))
        self._make_room(self.top)
        starts = self._terms.put(columns.term_from, columns.terms)
        self._weights = reserved(self._weights, len(self._terms.values))
        counts = np.diff(columns.term_from)
        self.most_k = max(self.most_k, int(columns.k.max(initial=1)))
        self.most_terms = max(self.most_terms, int(counts.max(initial=1)))
        at = np.arange(len(columns.terms)) + np.repeat(starts - columns.term_from[:-1], counts)
        self._weights[at] = columns.weights
        self._points[slots], self._alpha[slots], self._k[slots] = columns.points, columns.alpha, columns.k
        self._term_from[slots], self._term_count[slots] = starts, counts
        self._room[slots], self._size[slots] = rooms, 0
        self._start[slots] = self._runs.take(rooms)
        self._theta[slots] = self._known[slots] = NEVER
        self._due[slots] = self._changed_in[slots] = self._fresh_in[slots] = -1
        return slots.astype(np.int32)

    def check(self, slots: NDArray[np.int32]) -> None:
        bad = (slots < 0) | (slots >= self.top)
        bad[~bad] = self._term_count[slots[~bad]] == 0
        if bad.any() or len(np.unique(slots)) < len(slots):
            raise CatalogueError(f"slot {int(slots[np.argmax(bad)])} given; it is not in use, or given twice")

    def release(self, slots: NDArray[np.int32]) -> None:
        self._terms.free(self._term_from[slots], self._term_count[slots])
        self._runs.free(self._start[slots], self._room[slots])
        self._term_count[slots] = 0
        self._k[slots] = 1
        self._numbers.give_back(slots.astype(np.int64))

    def _make_room(self, n: int) -> None:
        for name in ("points", "alpha", "k", "term_from", "term_count", "start", "room", "size", "theta"):
            setattr(self, f"_{name}", reserved(getattr(self, f"_{name}"), n))
        for name in ("after", "before", "due", "fresh_in", "changed_in", "moved", "known"):
            setattr(self, f"_{name}", reserved(getattr(self, f"_{name}"), n))


class _Runs:
    """Rooms of buffers in three parallel arrays; a freed one serves the next of the same size."""

    def __init__(self) -> None:
        self.top = 0
        self.scores = np.zeros(16)
        self.seqs = np.zeros(16, np.int32)
        self.beaten = np.zeros(16, np.int16)
        self._free: dict[int, list[int]] = {}

    def take(self, rooms: NDArray[np.int32]) -> NDArray[np.int64]:
        starts = np.full(len(rooms), -1, np.int64)
        if self._free:
            for i, room in enumerate(rooms.tolist()):
                if self._free.get(room):
                    starts[i] = self._free[room].pop()
        new = starts < 0
        ends = self.top + np.cumsum(rooms[new], dtype=np.int64)
        starts[new] = ends - rooms[new]
        self.top = int(ends[-1]) if len(ends) else self.top
        self.scores, self.seqs = reserved(self.scores, self.top), reserved(self.seqs, self.top)
        self.beaten = reserved(self.beaten, self.top)
        return starts

    def free(self, starts: NDArray[np.int64], rooms: NDArray[np.int32]) -> None:
        for start, room in zip(starts.tolist(), rooms.tolist(), strict=True):
            self._free.setdefault(room, []).append(start)
