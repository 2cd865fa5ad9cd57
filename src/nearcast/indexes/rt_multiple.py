"""`rt++`: another representative token on each level of the tree, in inverted lists (KDD'13 5)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.indexes.inverted import InvertedLists, MarkBoard, scratch_for
from nearcast.indexes.node_text import nodes_in_use
from nearcast.indexes.tree_index import OrderedTreeIndex
from nearcast.kernels import rt_multiple as kernels
from nearcast.kernels.layout import Rows
from nearcast.kernels.rtree import HEIGHT, Tree


class LevelLists(InvertedLists):
    """In each node of level i: token to the index entries below the node whose i-th token it is."""

    kernels: ClassVar[Any] = kernels

    def built(self, tree: Tree) -> None:
        """A root that is a leaf has lists, too."""
        nodes = nodes_in_use(tree)
        self.fill(tree, nodes if len(nodes) == 1 else nodes[:-1])

    def split(self, tree: Tree, node: int, other: int) -> None:
        """What is below the nodes above did not change."""
        self.fill(tree, np.array([node, other], dtype=np.int64))

    def grown(self, tree: Tree, node: int, other: int) -> None:
        """All levels are one lower, so that every node has other tokens; leaves were level 1 and still are."""
        if tree.nodes[node, HEIGHT] == 0:
            self.split(tree, node, other)
        else:
            self.shortened(tree)

    def shortened(self, tree: Tree) -> None:
        """Anew, because every level has other tokens now."""
        self.reset()
        self.built(tree)

    def _attach(self, tree: Tree, node: int) -> bool:
        return bool(kernels.attach(tree, self.arrays, self.words, node))

    def detach(self, tree: Tree, node: int) -> None:
        kernels.detach(tree, self.arrays, self.words, node)


class RtPlusPlus(OrderedTreeIndex):
    """R^t++-tree; its candidates are the list members read, of which each is counted once.

    tokens: the order s.T[1], s.T[2], … of an entry's tokens: random, df, idf, local. grid: as in `rt+`.
    """

    name = "rt++"
    text: LevelLists

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        b: int = 25,
        B: int = 50,  # noqa: N803 (the paper's name)
        tokens: str = "local",
        grid: int = 100,
    ) -> None:
        super().__init__(history=history, b=b, B=B, tokens=tokens, grid=grid)
        self._marks = MarkBoard()

    def _new_text(self) -> LevelLists:
        return LevelLists()

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        tree, entries, scratch = self.tree.arrays, self.entries, scratch_for(self.tree.stack(), rows)
        inverted, marks = self.text.arrays, self._marks.arrays(len(entries.boxes))
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: kernels.probe(
                tree, inverted, marks, entries, scratch, rows, first, found, counters
            ),
        )

    def _bytes(self) -> dict[str, int]:
        return super()._bytes() | {"marks": self._marks.nbytes}
