"""What tree nodes know of the words below them: nothing, token sets (rt, rt+), inverted lists (ir-tree, rt++).

`RTree` says what happens to the nodes; a `NodeText` keeps up. `words` are the index's entries with their terms
in the order the text wants them; whoever changes the tree sets them before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.lists import GrowingLists
from nearcast.indexes.pool import enlarged
from nearcast.kernels.layout import Entries
from nearcast.kernels.lists import TOP as POOL_TOP
from nearcast.kernels.node_tokens import Tables
from nearcast.kernels.rtree import FREE_NODE, HEIGHT, TOP, Tree

_NO_TERMS = np.zeros(0, dtype=np.int32)
NO_WORDS = Entries(np.zeros((0, 4)), np.zeros(0, dtype=np.int32), _NO_TERMS, _NO_TERMS)


class NodeText:
    """Nothing: a plain R-tree."""

    words: Entries = NO_WORDS

    def reset(self) -> None:
        """No node has any text."""

    def make_room(self, n_nodes: int) -> None:
        """There are at least n_nodes nodes from now on."""

    def built(self, tree: Tree) -> None:
        """The tree was made in bulk."""

    def joined(self, tree: Tree, items: NDArray[np.int64], height: int) -> None:
        """Index entries (height 0) were put into leaves, or nodes into nodes of a height."""

    def leaving(self, tree: Tree, entries: NDArray[np.int64]) -> None:
        """Index entries are about to be taken out of their leaves."""

    def split(self, tree: Tree, node: int, other: int) -> None:
        """Some entries of a node went to a new node beside it."""

    def grown(self, tree: Tree, node: int, other: int) -> None:
        """The same for the root: both are below a new root now."""

    def detach(self, tree: Tree, node: int) -> None:
        """A node is about to leave its parent."""

    def forget(self, node: int) -> None:
        """A node is about to be freed."""

    def shortened(self, tree: Tree) -> None:
        """The only child of the former root is the root now."""

    def token_counts(self) -> NDArray[np.int32]:
        """Number of tokens by node, for the report."""
        return _NO_TERMS

    def nbytes(self) -> dict[str, int]:
        return {}

    def details(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The text from its arrays."""


class TokenTables:
    """Room for `kernels.node_tokens`: a table of tokens for each node."""

    def __init__(self, n_nodes: int = 0) -> None:
        self._sets = GrowingLists()
        self._values = np.zeros(0, dtype=np.int32)
        self.make_room(n_nodes)
        self.enlarge(1)

    @property
    def arrays(self) -> Tables:
        return Tables(self._sets.arrays, self._values)

    @property
    def n_nodes(self) -> int:
        return len(self._sets)

    @property
    def nbytes(self) -> int:
        return self._sets.nbytes + 4 * int(self._sets.arrays.state[POOL_TOP])

    def make_room(self, n_nodes: int) -> None:
        self._sets.make_room(n_nodes)

    def enlarge(self, more: int = 1) -> None:
        """Half as many places again, at least `more`."""
        self._sets.enlarge_pool(more)
        self._values = enlarged(self._values, len(self._sets.arrays.pool))

    def state(self) -> dict[str, NDArray[Any]]:
        top = int(self._sets.arrays.state[POOL_TOP])
        return self._sets.state() | {"values": self._values[:top]}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._sets, self._values = GrowingLists.restored(arrays), arrays["values"]


def in_steps(step: Callable[[int], int], n: int, enlarge: Callable[[], None]) -> None:
    """Call step(first), which returns how far it came, until all n are done, enlarging in between."""
    done = 0
    while (done := step(done)) < n:
        enlarge()


def nodes_in_use(tree: Tree) -> NDArray[np.int64]:
    """All nodes, children before parents."""
    heights = tree.nodes[: tree.state[TOP], HEIGHT]
    used = np.flatnonzero(heights != FREE_NODE)
    return used[np.argsort(heights[used], kind="stable")]


def nodes_below_root(tree: Tree) -> NDArray[np.int64]:
    """The same without the root."""
    return nodes_in_use(tree)[:-1]
