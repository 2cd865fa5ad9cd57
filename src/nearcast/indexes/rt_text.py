"""Token sets in the nodes of an R^t-tree and an R^t+-tree (KDD'13 3.1 and 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.node_text import NodeText, TokenTables, in_steps, nodes_below_root
from nearcast.kernels import rt as kernels
from nearcast.kernels.rtree import ROOT, Tree

ALL = 2**31 - 1  # more tokens than an entry has


class TokenSets(NodeText):
    """Each node but the root has the first `width` tokens of all index entries below it, counted."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.tables = TokenTables()

    def reset(self) -> None:
        self.tables = TokenTables(self.tables.n_nodes)

    def make_room(self, n_nodes: int) -> None:
        self.tables.make_room(n_nodes)

    def built(self, tree: Tree) -> None:
        self._fill(tree, nodes_below_root(tree))

    def joined(self, tree: Tree, items: NDArray[np.int64], height: int) -> None:
        if height == 0:
            in_steps(
                lambda first: kernels.add(tree, self.tables.arrays, self.words, self._width, items, first),
                len(items),
                self.tables.enlarge,
            )
            return
        for node in items.tolist():
            while not kernels.attach(tree, self.tables.arrays, node):
                self.tables.enlarge()

    def leaving(self, tree: Tree, entries: NDArray[np.int64]) -> None:
        kernels.remove(tree, self.tables.arrays, self.words, self._width, entries)

    def split(self, tree: Tree, node: int, other: int) -> None:
        """What is below the nodes above did not change."""
        self._fill(tree, np.array([node, other], dtype=np.int64))

    def grown(self, tree: Tree, node: int, other: int) -> None:
        self.split(tree, node, other)

    def detach(self, tree: Tree, node: int) -> None:
        kernels.detach(tree, self.tables.arrays, node)

    def forget(self, node: int) -> None:
        kernels.empty(self.tables.arrays, node)

    def shortened(self, tree: Tree) -> None:
        self.forget(int(tree.state[ROOT]))

    def _fill(self, tree: Tree, nodes: NDArray[np.int64]) -> None:
        in_steps(
            lambda first: kernels.fill(tree, self.tables.arrays, self.words, self._width, nodes, first),
            len(nodes),
            self.tables.enlarge,
        )

    def nbytes(self) -> dict[str, int]:
        return {"token sets": self.tables.nbytes}

    def token_counts(self) -> NDArray[np.int32]:
        return self.tables.arrays.sets.length

    def state(self) -> dict[str, NDArray[Any]]:
        return self.tables.state()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.tables.restore(arrays)
