"""`spatial-first`: an R-tree finds what overlaps, words are verified (KDD'13 2.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.tree_index import TreeIndex
from nearcast.kernels import spatial_first as kernels
from nearcast.kernels.layout import Rows


class SpatialFirst(TreeIndex):
    """The R-tree without words; its candidates are all entries whose box overlaps the message."""

    name = "spatial-first"

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        tree, entries, scratch = self.tree.arrays, self.entries, self.tree.scratch()
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: kernels.probe(tree, entries, scratch, rows, first, found, counters),
        )
