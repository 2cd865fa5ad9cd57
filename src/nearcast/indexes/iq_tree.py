"""`iq-tree`: space first. A quadtree whose cells have a ranked-key inverted file each (VLDBJ'17 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.indexes.pool import enlarged
from nearcast.indexes.ranked import RankedIndex
from nearcast.kernels import iq_table, iq_tree
from nearcast.kernels.harvest import new_marks, new_runs
from nearcast.kernels.iq_table import CELL, N_COLUMNS, NO_CELL
from nearcast.kernels.iq_tree import DONE, POOL_FULL, Tree
from nearcast.kernels.layout import Rows
from nearcast.kernels.postings import COUNT
from nearcast.kernels.quadtree import new_desk

FIRST_LISTS = 64


class IqTree(RankedIndex):
    """The space-prioritised baseline.

    depth: level of the smallest cells. update_weight: cost of one more copy of a subscription, in
    verifications per message.
    """

    name = "iq-tree"

    def __init__(self, *, history: MessageBatch | None = None, depth: int = 8, update_weight: float = 1e-4) -> None:
        super().__init__(history=history, depth=depth, update_weight=update_weight)

    def _clear(self) -> None:
        self._lists = np.zeros((FIRST_LISTS, N_COLUMNS), dtype=np.int32)
        self._inside = np.zeros(2 * 4**self.depth, dtype=np.int32)
        self._levels = np.zeros(self._n_terms, dtype=np.int32)
        self._n_lists = np.zeros(1, dtype=np.int64)

    @property
    def _tree(self) -> Tree:
        return Tree(self._lists, self._inside, self._levels, self._n_lists)

    def _insert(self, entries: NDArray[np.int64], keys: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        self._levels = enlarged(self._levels, int(keys.max()) + 1)
        chosen = entries[np.lexsort((keys, codes))]
        desk, progress = new_desk(self.depth), np.zeros(2, dtype=np.int64)
        outcome = None
        while outcome != DONE:
            outcome = iq_tree.insert(
                self._tree,
                self._postings,
                self._grid,
                self._ranks,
                self.entries,
                chosen,
                desk,
                self.update_weight,
                progress,
            )
            if outcome == POOL_FULL:
                self._enlarge_pool()
            elif outcome != DONE:
                self._enlarge_table()

    def _enlarge_table(self) -> None:
        larger = np.zeros((2 * len(self._lists), N_COLUMNS), dtype=np.int32)
        iq_table.rehash(self._lists, larger)
        self._lists = larger

    def _remove(self, entries: NDArray[np.int64]) -> None:
        iq_tree.remove(
            self._tree,
            self._postings,
            self._grid,
            self._ranks,
            self.entries,
            entries,
            new_desk(self.depth),
            self.update_weight,
        )

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        tree, postings, grid, entries = self._tree, self._postings, self._grid, self.entries
        marks, runs, stack = new_marks(), new_runs(), np.zeros((3 * self.depth + 4, 4), dtype=np.int64)
        words = np.zeros((int(np.diff(rows.term_from).max(initial=0)) + 1, 2), dtype=np.int64)
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: iq_tree.probe(
                tree, postings, grid, entries, rows, first, marks, stack, words, runs, found, counters
            ),
        )

    # -- report and snapshot ------------------------------------------------------------------------

    def _bytes(self) -> dict[str, int]:
        return super()._bytes() | {
            "lists": self._lists.nbytes,
            "cells": self._inside.nbytes,
            "levels": self._levels.nbytes,
        }

    def _details(self) -> dict[str, Any]:
        used = self._lists[self._lists[:, CELL] != NO_CELL]
        cells = np.unique(used[:, CELL])
        levels = (np.frexp(cells)[1] - 1) // 2
        return self._shared_details(used[:, COUNT]) | {
            "cells": len(cells),
            "cells_by_level": np.bincount(levels).tolist(),
        }

    def _state(self) -> dict[str, NDArray[Any]]:
        return super()._state() | {
            "lists": self._lists,
            "inside": self._inside,
            "levels": self._levels,
            "n_lists": self._n_lists,
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self._lists, self._inside = arrays["lists"], arrays["inside"]
        self._levels, self._n_lists = arrays["levels"], arrays["n_lists"]
