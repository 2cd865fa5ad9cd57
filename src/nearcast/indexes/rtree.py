"""The R-tree of KDD'13 3.1, from Python: bulk build, insertion with splits, deletion with condensing.

Kernels do the work of one step; what happens between steps (room, splits, orphans, the words in the nodes)
is told here. A tree takes a `NodeText`, which keeps what nodes know of the words below them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.node_text import NodeText, nodes_in_use
from nearcast.indexes.pool import enlarged
from nearcast.indexes.rtree_bulk import FILL, bounds_of, tiles
from nearcast.kernels import rtree as kernels
from nearcast.kernels.layout import Entries
from nearcast.kernels.rtree import FREE_NODE, HEIGHT, NO_NODE, PARENT, POSITION, ROOT, TOP, USED, Items, Tree
from nearcast.kernels.rtree_split import new_halves, split
from nearcast.kernels.sieve import SIEVE
from nearcast.kernels.spatial_first import Scratch


class RTree:
    """Nodes of b to B entries; the root may have fewer. Insertion and split are Guttman's (quadratic)."""

    def __init__(self, b: int, B: int, text: NodeText) -> None:  # noqa: N803 (the paper's name)
        self.b, self.B, self.text = b, B, text
        self._halves = new_halves(B)
        self._leaf_of = np.zeros(0, dtype=np.int32)
        self._reset()

    def _reset(self) -> None:
        """One empty leaf, which is the root."""
        self.n_entries = self.n_splits = self.n_dissolved = 0
        self._boxes = np.zeros((0, self.B + 1, 4))
        self._child = np.zeros((0, self.B + 1), dtype=np.int32)
        self._guard = np.zeros((0, self.B + 1), dtype=np.int32)
        self._nodes = np.zeros((0, 4), dtype=np.int32)
        self._node_state = np.array([0, 1, NO_NODE], dtype=np.int64)
        self._make_room(1)
        self._nodes[0] = 0, 0, NO_NODE, 0
        self.text.reset()

    # -- reading ------------------------------------------------------------------------------------

    @property
    def arrays(self) -> Tree:
        """What kernels read and write."""
        return Tree(self._boxes, self._child, self._guard, self._nodes, self._leaf_of, self._node_state)

    @property
    def root(self) -> int:
        return int(self._node_state[ROOT])

    @property
    def n_nodes(self) -> int:
        """Nodes that exist, free ones among them."""
        return int(self._node_state[TOP])

    def stack(self) -> NDArray[np.int32]:
        """Room for the nodes that a walk has still to visit: all entries of one node on each level."""
        return np.zeros((int(self._nodes[self.root, HEIGHT]) + 1) * (self.B + 1), dtype=np.int32)

    def scratch(self) -> Scratch:
        return Scratch(self.stack(), np.zeros(SIEVE, dtype=np.bool_))

    # -- insertion ----------------------------------------------------------------------------------

    def add(self, entries: Entries, new: NDArray[np.int64]) -> None:
        """Take index entries in: one by one as in the paper, in bulk when the tree is empty."""
        self._leaf_of = enlarged(self._leaf_of, len(entries.boxes), NO_NODE)
        items = Items(new, entries.boxes[new], _guards(entries, new))
        if self.n_entries == 0:
            self._build(items)
        else:
            self._place(items, 0)
        self.n_entries += len(new)

    def _build(self, items: Items) -> None:
        """Sort-tile-recursive: whole levels from the leaves to the root, the nodes of a level filled alike."""
        self._reset()
        self._node_state[TOP] = height = 0
        level = self._lay_level(items, height)
        while len(level) > 1:
            boxes = bounds_of(self._boxes[level], self._nodes[level, USED])
            height += 1
            level = self._lay_level(Items(level, boxes, np.zeros(len(level), dtype=np.int32)), height)
        self._node_state[ROOT] = level[0]
        self.text.built(self.arrays)

    def _lay_level(self, items: Items, height: int) -> NDArray[np.int64]:
        """New nodes of a height over these items."""
        n = len(items.numbers)
        order, starts = tiles(items.boxes, self.B if n <= self.B else max(self.b, int(FILL * self.B)))
        counts = np.diff(starts)
        level = np.arange(self.n_nodes, self.n_nodes + len(counts))
        self._make_room(len(counts))
        self._node_state[TOP] += len(counts)
        node, position = np.repeat(level, counts), np.arange(n) - np.repeat(starts[:-1], counts)
        numbers = items.numbers[order]
        self._boxes[node, position] = items.boxes[order]
        self._child[node, position] = numbers
        self._guard[node, position] = items.guards[order]
        self._nodes[level, USED], self._nodes[level, HEIGHT], self._nodes[level, PARENT] = counts, height, NO_NODE
        if height == 0:
            self._leaf_of[numbers] = node
        else:
            self._nodes[numbers, PARENT], self._nodes[numbers, POSITION] = node, position
        return level

    def _place(self, items: Items, height: int) -> None:
        """Put index entries into leaves (height 0), or nodes into nodes of a height."""
        done = 0
        while done < len(items.numbers):
            following, full = kernels.place_items(self.arrays, items, height, done)
            self.text.joined(self.arrays, items.numbers[done:following], height)
            done = following
            while full != NO_NODE and self._nodes[full, USED] > self.B:
                self._split(full)
                full = int(self._nodes[full, PARENT])

    def _split(self, node: int) -> None:
        self._make_room(2)
        root = self.root
        other = split(self.arrays, node, self.b, self._halves)
        self.n_splits += 1
        if self.root == root:
            self.text.split(self.arrays, node, other)
        else:
            self.text.grown(self.arrays, node, other)

    def _make_room(self, more: int) -> None:
        needed = self.n_nodes + more
        self._boxes, self._child = enlarged(self._boxes, needed), enlarged(self._child, needed)
        self._guard, self._nodes = enlarged(self._guard, needed), enlarged(self._nodes, needed, FREE_NODE)
        self.text.make_room(len(self._nodes))

    # -- deletion -----------------------------------------------------------------------------------

    def remove(self, gone: NDArray[np.int64]) -> None:
        """Take index entries out; nodes that get too few entries are dissolved (CondenseTree)."""
        self.n_entries -= len(gone)
        if self.n_entries == 0:
            self._reset()
            return
        self.text.leaving(self.arrays, gone)
        touched = np.unique(self._leaf_of[gone]).astype(np.int64)
        kernels.take_out(self.arrays, gone)
        kernels.tighten_all(self.arrays, touched[self._nodes[touched, USED] > 0])
        self._condense(touched[np.argsort(self._nodes[touched, USED], kind="stable")])

    def _condense(self, touched: NDArray[np.int64]) -> None:
        """Empty leaves come first: from then on every box in the tree is the box of something."""
        waiting = deque(touched[self._nodes[touched, USED] < self.b].tolist())
        while waiting:
            self._shorten()
            node = waiting.popleft()
            if self._nodes[node, HEIGHT] != FREE_NODE and node != self.root and self._nodes[node, USED] < self.b:
                waiting.append(self._dissolve(node))
        self._shorten()

    def _dissolve(self, node: int) -> int:
        """Remove a node and insert its entries again at their height; the lowest node above that stays."""
        height, used = int(self._nodes[node, HEIGHT]), int(self._nodes[node, USED])
        orphans = Items(
            self._child[node, :used].astype(np.int64),
            self._boxes[node, :used].copy(),
            self._guard[node, :used].copy(),
        )
        self.text.detach(self.arrays, node)
        self.text.forget(node)
        above = int(kernels.remove_node(self.arrays, node))
        self._place(orphans, height)
        self.n_dissolved += 1
        return above

    def _shorten(self) -> None:
        """While the root is no leaf and has one entry, this becomes the root."""
        while self._nodes[self.root, HEIGHT] > 0 and self._nodes[self.root, USED] == 1:
            self.text.forget(self.root)
            kernels.drop_root(self.arrays)
            self.text.shortened(self.arrays)

    # -- report and snapshot ------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        per_node = self._boxes[0].nbytes + 2 * self._child[0].nbytes + self._nodes[0].nbytes
        return int(self.n_nodes * per_node + self._leaf_of.nbytes)

    def details(self) -> dict[str, Any]:
        nodes = nodes_in_use(self.arrays)
        heights, tokens = self._nodes[nodes, HEIGHT], self.text.token_counts()
        per_level = np.bincount(heights)
        return {
            "b": self.b,
            "B": self.B,
            "height": int(heights.max()) + 1,
            "nodes_by_level": per_level[::-1].tolist(),
            "tokens_by_level": (np.bincount(heights, tokens[nodes]) / per_level)[::-1].tolist() if len(tokens) else [],
            "leaf_fill": float(self._nodes[nodes[heights == 0], USED].mean() / self.B),
            "splits": self.n_splits,
            "dissolved": self.n_dissolved,
        }

    def state(self) -> dict[str, NDArray[Any]]:
        top = self.n_nodes
        return {
            "boxes": self._boxes[:top],
            "child": self._child[:top],
            "guard": self._guard[:top],
            "nodes": self._nodes[:top],
            "leaf_of": self._leaf_of,
            "state": self._node_state,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._boxes, self._child = arrays["boxes"], arrays["child"]
        self._guard, self._nodes = arrays["guard"], arrays["nodes"]
        self._leaf_of, self._node_state = arrays["leaf_of"], arrays["state"]
        self.n_entries = int(self._nodes[self._nodes[:, HEIGHT] == 0, USED].sum())


def _guards(entries: Entries, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
    """The last term of each entry: the lexicon numbers words as they come, so that late ones are rare."""
    last = entries.term_from[numbers] + entries.term_count[numbers] - 1
    return np.asarray(entries.terms[last])
