"""Inverted lists in the nodes of an IR-tree and an R^t++-tree: room for `kernels.node_lists`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.lists import GrowingLists
from nearcast.indexes.node_text import NodeText, TokenTables, in_steps
from nearcast.indexes.pool import enlarged
from nearcast.kernels.layout import Rows
from nearcast.kernels.marks import Marks
from nearcast.kernels.node_lists import (
    NEXT_LIST,
    NO_LIST,
    SHORT,
    SHORT_OF_LISTS,
    SHORT_OF_PLACES,
    NodeLists,
    Scratch,
    empty,
)
from nearcast.kernels.rtree import Tree
from nearcast.kernels.sieve import SIEVE


class InvertedLists(NodeText):
    """For each token of a node a list of numbers; subclasses say of what, and have the kernels for it."""

    kernels: ClassVar[Any]  # a module with fill, add and remove

    def __init__(self) -> None:
        self.tables = TokenTables()
        self.reset()

    def reset(self) -> None:
        self.tables = TokenTables(self.tables.n_nodes)
        self.lists = GrowingLists()
        self._list_state = np.array([NO_LIST, 1, 0], dtype=np.int64)
        self.lists.make_room(1)

    @property
    def arrays(self) -> NodeLists:
        return NodeLists(self.tables.arrays, self.lists.arrays, self._list_state)

    def make_room(self, n_nodes: int) -> None:
        self.tables.make_room(n_nodes)

    def enlarge(self) -> None:
        """More of what the kernel was short of."""
        short = self._list_state[SHORT]
        if short == SHORT_OF_PLACES:
            self.tables.enlarge()
        elif short == SHORT_OF_LISTS:
            self.lists.make_room(len(self.lists) + (len(self.lists) >> 1) + 16)
        else:
            self.lists.enlarge_pool()

    @abstractmethod
    def _attach(self, tree: Tree, node: int) -> bool:
        """Enter what is below a node in the nodes above it; False, with nothing entered, if there is no room."""

    def joined(self, tree: Tree, items: NDArray[np.int64], height: int) -> None:
        if height == 0:
            in_steps(
                lambda first: self.kernels.add(tree, self.arrays, self.words, items, first),
                len(items),
                self.enlarge,
            )
            return
        for node in items.tolist():
            while not self._attach(tree, node):
                self.enlarge()

    def leaving(self, tree: Tree, entries: NDArray[np.int64]) -> None:
        self.kernels.remove(tree, self.arrays, self.words, entries)

    def forget(self, node: int) -> None:
        empty(self.arrays, node)

    def fill(self, tree: Tree, nodes: NDArray[np.int64]) -> None:
        """Make the lists of these nodes anew, children before parents."""
        in_steps(
            lambda first: self.kernels.fill(tree, self.arrays, self.words, nodes, first),
            len(nodes),
            self.enlarge,
        )

    def nbytes(self) -> dict[str, int]:
        return {"token tables": self.tables.nbytes, "inverted lists": self.lists.nbytes}

    def token_counts(self) -> NDArray[np.int32]:
        return self.tables.arrays.sets.length

    def details(self) -> dict[str, Any]:
        lists = self.lists.arrays
        longer = lists.length[: self._list_state[NEXT_LIST]]
        tokens = int(self.tables.arrays.sets.length.sum())
        in_use = int(np.count_nonzero(longer))
        return {
            "lists": tokens,
            "lists_of_one": tokens - in_use,
            "longest_list": int(longer.max(initial=min(tokens, 1))),
            "postings": tokens - in_use + int(longer.sum()),
        }

    def state(self) -> dict[str, NDArray[Any]]:
        arrays = {f"tables.{name}": array for name, array in self.tables.state().items()}
        arrays |= {f"lists.{name}": array for name, array in self.lists.state().items()}
        return arrays | {"list_state": self._list_state}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.tables.restore({n[7:]: a for n, a in arrays.items() if n.startswith("tables.")})
        self.lists = GrowingLists.restored({n[6:]: a for n, a in arrays.items() if n.startswith("lists.")})
        self._list_state = arrays["list_state"]


def scratch_for(stack: NDArray[np.int32], rows: Rows) -> Scratch:
    """Working room for a walk with these rows."""
    longest = int(np.diff(rows.term_from).max(initial=0))
    return Scratch(stack.astype(np.int64), np.zeros(longest, dtype=np.int64), np.zeros(SIEVE, dtype=np.bool_))


class MarkBoard:
    """Marks for entries or nodes, kept from match to match; see `kernels.marks`."""

    def __init__(self) -> None:
        self._marks = np.zeros(0, dtype=np.int64)
        self._tick = np.zeros(1, dtype=np.int64)

    def arrays(self, n: int) -> Marks:
        self._marks = enlarged(self._marks, n)
        return Marks(self._marks, self._tick)

    @property
    def nbytes(self) -> int:
        return self._marks.nbytes + self._tick.nbytes
