"""`rq-tree`: keyword first. Ranked-key lists; a long list has a quadtree of its own (VLDBJ'17 5.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.pool import enlarged
from nearcast.indexes.ranked import RankedIndex
from nearcast.kernels import rq_insert, rq_tree
from nearcast.kernels.harvest import new_marks, new_runs
from nearcast.kernels.layout import Rows
from nearcast.kernels.postings import COUNT
from nearcast.kernels.quadtree import new_desk
from nearcast.kernels.rq_tree import CHILD, N_COLUMNS, NO_CELL, Tree

FIRST_CELLS = 16


class RqTree(RankedIndex):
    """The keyword-prioritised baseline.

    depth: level of the smallest cells. update_weight: cost of one more copy of a subscription, in
    verifications per message. capacity: a list or cell of fewer subscriptions is never split.
    """

    name = "rq-tree"

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        depth: int = 8,
        update_weight: float = 1e-4,
        capacity: int = 32,
    ) -> None:
        if capacity < 1:
            raise CatalogueError(f"{self.name}: capacity {capacity} given; 1 or more is allowed")
        self.capacity = int(capacity)
        super().__init__(history=history, depth=depth, update_weight=update_weight)

    def _clear(self) -> None:
        self._roots = np.full(self._n_terms, NO_CELL, dtype=np.int32)
        self._cells = np.zeros((FIRST_CELLS, N_COLUMNS), dtype=np.int32)
        self._n_cells = np.zeros(1, dtype=np.int64)
        self._cells_built = 0

    @property
    def _tree(self) -> Tree:
        return Tree(self._roots, self._cells, self._n_cells)

    def _is_worn(self) -> bool:
        """Cells are not given back one by one."""
        return int(self._n_cells[0]) > 4 * self._cells_built + self._n_built

    def _build(self, entries: NDArray[np.int64]) -> None:
        super()._build(entries)
        self._cells_built = int(self._n_cells[0])

    def _insert(self, entries: NDArray[np.int64], keys: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        self._roots = enlarged(self._roots, int(keys.max()) + 1, NO_CELL)
        chosen = entries[np.lexsort((codes, keys))]
        desk, progress = new_desk(self.depth), np.zeros(2, dtype=np.int64)
        while not rq_insert.insert(
            self._tree,
            self._postings,
            self._grid,
            self._ranks,
            self.entries,
            chosen,
            desk,
            self.update_weight,
            self.capacity,
            progress,
        ):
            self._enlarge_pool()
            self._cells = enlarged(self._cells, int(self._n_cells[0]) + 4)

    def _remove(self, entries: NDArray[np.int64]) -> None:
        rq_tree.remove(self._tree, self._postings, self._grid, self._ranks, self.entries, entries, self._stack())

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        tree, postings, grid, entries = self._tree, self._postings, self._grid, self.entries
        marks, runs, stack = new_marks(), new_runs(), self._stack()
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: rq_tree.probe(
                tree, postings, grid, entries, rows, first, marks, stack, runs, found, counters
            ),
        )

    def _stack(self) -> NDArray[np.int64]:
        """Open cells of a walk: at most three wait on each level."""
        return np.zeros((3 * self.depth + 4, 5), dtype=np.int64)

    # -- report and snapshot ------------------------------------------------------------------------

    def _bytes(self) -> dict[str, int]:
        cells = int(self._n_cells[0]) * self._cells[:1].nbytes
        return super()._bytes() | {"cells": cells, "roots": self._roots.nbytes}

    def _details(self) -> dict[str, Any]:
        cells = self._cells[: self._n_cells[0]]
        frontier = self._roots[self._roots != NO_CELL]
        levels, quadtrees = [], int(np.count_nonzero(cells[frontier, CHILD] != NO_CELL))
        while len(frontier):
            levels.append(len(frontier))
            first = cells[frontier, CHILD]
            frontier = (first[first != NO_CELL][:, None] + np.arange(4)).ravel()
        return self._shared_details(cells[:, COUNT]) | {
            "cells": len(cells),
            "cells_by_level": levels,
            "quadtrees": quadtrees,
        }

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"capacity": self.capacity}

    def _state(self) -> dict[str, NDArray[Any]]:
        return super()._state() | {
            "roots": self._roots,
            "cells": self._cells[: self._n_cells[0]],
            "n_cells": np.array([self._n_cells[0], self._cells_built], dtype=np.int64),
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self._roots, self._cells = arrays["roots"], arrays["cells"]
        self._n_cells = arrays["n_cells"][:1].copy()
        self._cells_built = int(arrays["n_cells"][1])
