"""`ir-tree`: inverted files in R-tree nodes (KDD'13 2.2 and 6, after Cong et al., PVLDB 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.indexes.inverted import InvertedLists, MarkBoard, scratch_for
from nearcast.indexes.node_text import nodes_in_use
from nearcast.indexes.pool import enlarged
from nearcast.indexes.tree_index import TreeIndex
from nearcast.kernels import ir_tree as kernels
from nearcast.kernels.layout import Rows
from nearcast.kernels.rtree import PARENT, Tree


class ChildLists(InvertedLists):
    """In each node: token to those of its entries that have it, themselves or below."""

    kernels: ClassVar[Any] = kernels

    def built(self, tree: Tree) -> None:
        self.fill(tree, nodes_in_use(tree))

    def split(self, tree: Tree, node: int, other: int) -> None:
        """The parent has another child; which tokens it has at all did not change."""
        self.fill(tree, np.array([node, other, tree.nodes[node, PARENT]], dtype=np.int64))

    def grown(self, tree: Tree, node: int, other: int) -> None:
        self.split(tree, node, other)

    def _attach(self, tree: Tree, node: int) -> bool:
        return bool(kernels.attach(tree, self.arrays, node))

    def detach(self, tree: Tree, node: int) -> None:
        kernels.detach(tree, self.arrays, node)


class IrTree(TreeIndex):
    """The adapted IR-tree; its candidates are the postings read in leaves."""

    name = "ir-tree"
    text: ChildLists

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        b: int = 25,
        B: int = 50,  # noqa: N803 (the paper's name)
    ) -> None:
        super().__init__(history=history, b=b, B=B)
        self._marks = MarkBoard()
        self._left = np.zeros(0, dtype=np.int32)  # by entry: number of terms, counted down and up in a leaf

    def _new_text(self) -> ChildLists:
        return ChildLists()

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        tree, entries, scratch = self.tree.arrays, self.entries, scratch_for(self.tree.stack(), rows)
        inverted, marks, left = self.text.arrays, self._marks.arrays(self.tree.n_nodes), self._left
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: kernels.probe(
                tree, inverted, marks, left, entries, scratch, rows, first, found, counters
            ),
        )

    def _add(self, entries: NDArray[np.int64]) -> None:
        super()._add(entries)
        self._left = enlarged(self._left, len(self.entries.boxes))
        self._left[entries] = self.entries.term_count[entries]

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self._left = self.entries.term_count.copy()

    def _bytes(self) -> dict[str, int]:
        return super()._bytes() | {"marks": self._marks.nbytes + self._left.nbytes}
