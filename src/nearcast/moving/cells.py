"""`iq+`, `rq+`, `ss` and `kk`: the paper's baselines (VLDBJ'17 5.2.1)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import CatalogueError
from nearcast.geo import Space, earth
from nearcast.indexes.iq_tree import IqTree
from nearcast.indexes.pool import enlarged, reserved
from nearcast.indexes.ranked import RankedIndex
from nearcast.indexes.rq_tree import RqTree
from nearcast.kernels import iq_table, move_cells
from nearcast.kernels.iq_table import N_COLUMNS
from nearcast.kernels.move_cells import DONE, Cells
from nearcast.kernels.move_layout import Differences
from nearcast.kernels.postings import N_CLASSES, NO_RUN, TOP, Postings
from nearcast.kernels.quadtree import Desk, new_desk
from nearcast.moving.base import Mover
from nearcast.moving.boxes import Moved

FIRST_LISTS, FIRST_POOL = 64, 256
NO_COPY_COST = 1e-12  # of a grid file: cells are as small as they can be, whatever the copies


class CellMover(Mover):
    """Subscriptions in lists of (cell, rarest term), messages in lists of (cell, term)."""

    index: RankedIndex
    may_repeat = True  # a message at the border of cells is met in one of them, but boxes may lie in several

    def __init__(self, space: Space = earth, *, most: int | None = None, depth: int = 8) -> None:
        self._depth = depth
        super().__init__(space, most=most)
        self._built = -1  # the build of the index that the cells are of
        self._clear(0)

    @property
    @abstractmethod
    def _grid_level(self) -> int:
        """The level of a grid file, or NO_RUN for a quadtree."""

    def _clear(self, n_terms: int) -> None:
        self._lists = np.zeros((FIRST_LISTS, N_COLUMNS), np.int32)
        self._levels = np.full(n_terms, self._first_levels, np.int32)
        self._counts = np.zeros(n_terms, np.int32)
        self._state = np.array([0, self._grid_level], np.int64)
        state = np.full(N_CLASSES + 1, NO_RUN, np.int64)
        state[TOP] = 0
        self._pool = Postings(np.zeros((FIRST_POOL, 2), np.int64), state)

    @property
    def _first_levels(self) -> int:
        """A quadtree's messages are always at the root, from which other levels are filled."""
        return 1 if self._grid_level == NO_RUN else 1 << self._grid_level

    @property
    def _cells(self) -> Cells:
        return Cells(self._lists, self._levels, self._counts, self._state)

    def _enlarge(self, lists: int, elements: int) -> None:
        """Room for so many more."""
        needed = int(self._pool.state[TOP]) + elements
        self._pool = Postings(reserved(self._pool.pool, needed), self._pool.state)
        size = len(self._lists)
        while 5 * (int(self._state[0]) + lists) > 3 * size:
            size *= 2
        if size == len(self._lists):
            return
        larger = np.zeros((size, N_COLUMNS), np.int32)
        iq_table.rehash(self._lists, larger)
        self._lists = larger

    def _desk(self) -> Desk:
        desk = new_desk(self._depth)
        return desk._replace(cells=np.zeros(max(len(desk.cells), 4**self._depth) + 1, np.int64))

    # -- messages -----------------------------------------------------------------------------------

    def _put(self, rows: NDArray[np.int64]) -> None:
        if self._is_stale():
            return
        self._post(rows)

    def _is_stale(self) -> bool:
        """The index was built anew, with another frame: all messages go to their new cells."""
        if self._built == self.index.n_builds:
            return False
        self._built = self.index.n_builds
        self._clear(len(self._levels))
        self._post(self.live.table.live_entries())
        return True

    def _post(self, rows: NDArray[np.int64]) -> None:
        n_terms = int(self.live.rows.terms.max(initial=-1)) + 1
        self._levels = enlarged(self._levels, n_terms, self._first_levels)
        self._counts = enlarged(self._counts, n_terms)
        progress = np.zeros(4, np.int64)
        while move_cells.put(self._cells, self._pool, self.index.grid, self.live.rows, rows, progress) != DONE:
            self._enlarge(int(progress[2]), int(progress[3]))

    def _take(self, rows: NDArray[np.int64]) -> None:
        self._is_stale()
        table, grid = self.live.rows, self.index.grid
        found = np.empty(int(table.term_count[rows].sum()) * (self._depth + 1), np.int64)
        n = move_cells.lists_with(self._cells, grid, table, rows, found)
        targets = np.unique(found[:n])
        is_gone = np.zeros(len(table.term_count), np.bool_)
        is_gone[rows] = True
        move_cells.sweep(self._cells, self._pool, targets, is_gone, np.empty((len(targets), 2), np.int64))

    # -- moves --------------------------------------------------------------------------------------

    def _differ(self, moved: Moved, first: int, out: Differences) -> tuple[int, int]:
        self._is_stale()
        grid, ranks, weight = self.index.grid, self.index.ranks, self.index.update_weight
        table, desk = self.index.entries, self._desk()
        if first == 0 and self._grid_level == NO_RUN:
            for boxes in (moved.old, moved.new):
                progress = np.zeros(4, np.int64)
                while move_cells.open_levels(
                    self._cells, self._pool, grid, ranks, table, moved.entries, boxes, weight, desk, progress
                ):
                    self._enlarge(int(progress[2]), int(progress[3]))
        following, n = move_cells.differ(
            self._cells,
            self._pool,
            grid,
            ranks,
            table,
            *moved,
            first,
            weight,
            desk,
            self.live.rows,
            out,
            self._counters,
        )
        return int(following), int(n)

    def _bytes(self) -> dict[str, int]:
        return {
            "message postings": int(self._pool.state[TOP]) * 16,
            "message lists": self._lists.nbytes + self._levels.nbytes + self._counts.nbytes,
        }

    def _details(self) -> dict[str, Any]:
        live, used = self._counts.sum(), int(self._lists[:, 1][self._lists[:, 3] != 0].sum())
        copies = {"message copies by term": used / max(1, int(live)), "message lists": int(self._state[0])}
        return copies | self.index.report().details


class IqPlus(CellMover):
    """`iq+`: space first. For a move the best cells are chosen anew."""

    name = "iq+"

    def _new_index(self) -> IqTree:
        return IqTree(depth=self._depth)

    @property
    def _grid_level(self) -> int:
        return NO_RUN


class RqPlus(CellMover):
    """`rq+`: keyword first, a quadtree where a list is long."""

    name = "rq+"

    def _new_index(self) -> RqTree:
        return RqTree(depth=self._depth)

    @property
    def _grid_level(self) -> int:
        return NO_RUN


class GridMover(CellMover):
    """A grid file of 2**depth by 2**depth cells, with copies in all cells that a region meets."""

    def __init__(self, space: Space = earth, *, most: int | None = None, depth: int = 5) -> None:
        if not 1 <= depth <= 8:
            raise CatalogueError(f"{self.name}: depth {depth} given; 1 to 8 is allowed")
        super().__init__(space, most=most, depth=depth)

    @property
    def _grid_level(self) -> int:
        return self._depth


class Ss(GridMover):
    """`ss`: a grid, in each cell a ranked-key inverted list; messages likewise."""

    name = "ss"

    def _new_index(self) -> IqTree:
        return IqTree(depth=self._depth, update_weight=NO_COPY_COST)


class Kk(GridMover):
    """`kk`: a ranked-key inverted list, for each of its keys a grid; messages likewise."""

    name = "kk"

    def _new_index(self) -> RqTree:
        return RqTree(depth=self._depth, update_weight=NO_COPY_COST, capacity=1)
