"""`ciq`: the baseline of the Skype paper; see `kernels.rank_ciq`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.geo import Space, earth
from nearcast.kernels import rank_ciq
from nearcast.kernels.rank_ciq import Inverted
from nearcast.kernels.rank_layout import Candidates
from nearcast.ranking.sheets import SheetRanker
from nearcast.ranking.window import Window

SIDE = 8  # cells along each side: more cost memory for every wish


class Parts(NamedTuple):
    inverted: Inverted
    thetas: NDArray[np.float64]  # [n]


class Ciq(SheetRanker[Parts]):
    """One inverted file, and for every wish and cell the similarity that it needs."""

    name = "ciq"

    def __init__(self, window: Window, space: Space = earth, *, refill: str = "cskyband", side: int = SIDE) -> None:
        super().__init__(window, space, refill=refill)
        self._side = side

    def _lay(self, slots: NDArray[np.int32]) -> Parts:
        wants = self.table.wants
        counts = wants.term_count[slots].astype(np.int64)
        ends = np.cumsum(counts)
        taken = np.arange(ends[-1]) + np.repeat(wants.term_from[slots] - ends + counts, counts)
        terms = wants.terms[taken]
        order = np.argsort(terms, kind="stable")  # within a term wishes stay in their order
        first = np.flatnonzero(np.diff(terms[order], prepend=-1))
        owner = np.repeat(np.arange(len(slots), dtype=np.int32), counts)
        west, south = wants.points[slots].min(axis=0)
        width, height = np.maximum(wants.points[slots].max(axis=0) - [west, south], 1e-9) / self._side
        inverted = Inverted(
            np.ascontiguousarray(terms[order][first]),
            np.append(first, len(terms)).astype(np.int64),
            np.ascontiguousarray(owner[order]),
            np.ascontiguousarray(wants.weights[taken][order]),
            slots.copy(),
            np.zeros((len(slots), self._side**2 + 1), np.float32),
            np.array([west, south, width, height]),
            np.zeros((2, 16), np.int64),
        )
        parts = Parts(inverted, self.table.buffers.theta[slots].copy())
        self._set(parts, np.arange(len(slots), dtype=np.int32), parts.thetas.copy())
        return parts

    def _set(self, arrays: Parts, rows: NDArray[np.int32], thetas: NDArray[np.float64]) -> None:
        arrays.thetas[rows] = thetas
        rank_ciq.set_thresholds(arrays.inverted, self.table.wants, rows, thetas, self._side, self._space)

    def _probe_sheet(
        self, arrays: Parts, first_post: int, row: int, last_row: int, room: Candidates, n: int
    ) -> tuple[int, int]:
        inverted, longest = arrays.inverted, self.store.longest(first_post + row, first_post + last_row)
        if longest > inverted.cursors.shape[1]:
            inverted = inverted._replace(cursors=np.zeros((2, 2 * longest), np.int64))
        wants, thetas, posts = self.table.wants, arrays.thetas, self.store.posts
        following, found = rank_ciq.probe(
            inverted, wants, thetas, posts, first_post, row, last_row, self._side, self._space, room, n, self._counters
        )
        return following, found

    def _bytes(self) -> dict[str, int]:
        return {"inverted file": sum(array.nbytes for s in self._sheets for array in s.arrays.inverted)}
