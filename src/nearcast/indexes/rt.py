"""`rt` and `rt+`: R-tree nodes with token sets, of all tokens or of representatives (KDD'13 3 and 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.rt_text import ALL, TokenSets
from nearcast.indexes.tree_index import OrderedTreeIndex, TreeIndex
from nearcast.kernels import rt as kernels
from nearcast.kernels.layout import Rows


class Rt(TreeIndex):
    """R^t-tree: a node has the tokens of all entries below it (KDD'13 3)."""

    name = "rt"
    text: TokenSets

    def _new_text(self) -> TokenSets:
        return TokenSets(ALL)

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return _probe(self, self.text, rows)


class RtPlus(OrderedTreeIndex):
    """R^t+-tree: a node has one representative token of each entry below it (KDD'13 4).

    tokens: how the representative is chosen (KDD'13 4.2): random, df, idf, local. grid: `local` counts
    frequencies in grid × grid cells (KDD'13 6.1: 10,000 cells).
    """

    name = "rt+"
    text: TokenSets

    def _new_text(self) -> TokenSets:
        return TokenSets(1)

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return _probe(self, self.text, rows)


def _probe(index: TreeIndex, text: TokenSets, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The same walk for both: they differ in what their token sets hold."""
    tree, tables, entries, scratch = index.tree.arrays, text.tables.arrays, index.entries, index.tree.scratch()
    return index._collect(
        len(rows.boxes),
        lambda first, found, counters: kernels.probe(tree, tables, entries, scratch, rows, first, found, counters),
    )
