"""The trie of the MBRTrie, from Python: bulk build, growth, saving. See `kernels.token_trie`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.filled import ensure_push, fill_lists, power_class, power_room
from nearcast.indexes.lists import GrowingLists
from nearcast.indexes.pool import enlarged
from nearcast.kernels import token_trie as kernels
from nearcast.kernels.layout import Entries
from nearcast.kernels.token_trie import (
    COUNT,
    CROWDED,
    FIRST,
    HEIGHT,
    KLASS,
    LEAF,
    LEAVES,
    LOW,
    MOST,
    N_LEVELS,
    N_LINKS,
    N_STATE,
    NONE,
    ROOT,
    STEP,
    TOP,
    Trie,
)

Paths = tuple[NDArray[np.int64], NDArray[np.int32]]


def outward(boxes: NDArray[np.float64]) -> NDArray[np.float32]:
    """Boxes as float32 that hold the given ones."""
    near = boxes.astype(np.float32)
    low = np.where(near > boxes, np.nextafter(near, np.float32(-np.inf)), near)
    high = np.where(near < boxes, np.nextafter(near, np.float32(np.inf)), near)
    return np.concatenate([low[:, :2], high[:, 2:]], axis=1)


class TokenTrie:
    """Paths of token keys to leaves; every leaf has a list of entries and an id in token-set order."""

    def __init__(self) -> None:
        self.lists = GrowingLists()
        self._token = np.zeros(1, dtype=np.int32)
        self._box = np.array([[np.inf, np.inf, -np.inf, -np.inf]], dtype=np.float32)
        self._links = np.full((1, N_LINKS), NONE, dtype=np.int32)
        self._links[ROOT, COUNT], self._links[ROOT, LOW] = 0, MOST
        self._label = np.zeros(0, dtype=np.int32)
        self.levels = np.zeros(N_LEVELS, dtype=np.int64)
        self.levels[0] = 1
        self._state = np.full(N_STATE, NONE, dtype=np.int64)
        self._state[[TOP, LEAVES, STEP, CROWDED, HEIGHT]] = 1, 0, 1 << 20, 0, 0
        self.label_of = np.zeros(0, dtype=np.int32)  # by entry: the id of its leaf
        self.renumbered = 0

    @property
    def arrays(self) -> Trie:
        return Trie(self._token, self._box, self._links, self._label, self.levels, self._state)

    @property
    def height(self) -> int:
        return int(self._state[HEIGHT])

    @property
    def n_leaves(self) -> int:
        return int(self._state[LEAVES])

    def nbytes(self) -> dict[str, int]:
        per_node = self._token.itemsize + 4 * self._box.itemsize + N_LINKS * self._links.itemsize
        return {
            "trie nodes": int(self._state[TOP]) * per_node,
            "trie lists": self.lists.nbytes,
            "ids": self.n_leaves * self._label.itemsize + self.label_of.nbytes,
        }

    # -- building ---------------------------------------------------------------------------------------

    def build(self, entries: Entries, numbers: NDArray[np.int64], paths: Paths) -> None:
        """Into an empty trie, level by level: siblings are the distinct keys of the entries of one parent."""
        path_from, path = paths
        lengths = np.diff(path_from)
        node = np.zeros(len(numbers), dtype=np.int64)
        alive = np.arange(len(numbers))
        boxes = outward(entries.boxes[numbers])
        self._bound(np.zeros(1, dtype=np.int64), boxes, np.zeros(1, dtype=np.int64))
        depth = 0
        while len(alive := alive[lengths[alive] > depth]):
            pairs = (node[alive] << 32) | path[path_from[alive] + depth]
            order = np.argsort(pairs, kind="stable")
            alive, pairs = alive[order], pairs[order]
            begins = np.flatnonzero(np.diff(pairs, prepend=-1))
            made = self._make_level(pairs[begins] >> 32, (pairs[begins] & MOST).astype(np.int32))
            self._bound(made, boxes[alive], begins)
            node[alive] = np.repeat(made, np.diff(begins, append=len(alive)))
            depth += 1
            self.levels[min(depth, N_LEVELS - 1)] += len(made)
        self._state[HEIGHT] = depth
        self._make_leaves(node, numbers, len(entries.term_count))

    def _make_level(self, parents: NDArray[np.int64], tokens: NDArray[np.int32]) -> NDArray[np.int64]:
        """Nodes for these (parent, token), which are in order; where they are."""
        firsts = np.flatnonzero(np.diff(parents, prepend=-1))
        counts = np.diff(firsts, append=len(parents))
        room = power_room(counts)
        top = int(self._state[TOP])
        blocks = top + np.cumsum(room) - room
        made = np.repeat(blocks - firsts, counts) + np.arange(len(parents))
        self._state[TOP] = top + int(room.sum())
        self._grow_nodes(int(self._state[TOP]))
        self._token[made] = tokens
        self._links[made, COUNT] = 0
        owners = parents[firsts]
        self._links[owners, FIRST], self._links[owners, COUNT] = blocks, counts
        self._links[owners, KLASS] = power_class(counts)
        return made

    def _bound(self, nodes: NDArray[np.int64], boxes: NDArray[np.float32], begins: NDArray[np.int64]) -> None:
        """Boxes of nodes, of which node i holds boxes[begins[i]:begins[i + 1]]."""
        self._box[nodes, :2] = np.minimum.reduceat(boxes[:, :2], begins)
        self._box[nodes, 2:] = np.maximum.reduceat(boxes[:, 2:], begins)

    def _make_leaves(self, node: NDArray[np.int64], numbers: NDArray[np.int64], top: int) -> None:
        order = np.argsort(node, kind="stable")
        begins = np.flatnonzero(np.diff(node[order], prepend=-1))
        n = len(begins)
        self._links[node[order][begins], LEAF] = np.arange(n)
        self._label = enlarged(self._label, n)
        self._state[LEAVES] = n
        self.lists.make_room(n)
        run_from = np.append(begins, len(order)).astype(np.int64)
        fill_lists(self.lists, np.arange(n), run_from, numbers[order].astype(np.int32))
        self.label_of = enlarged(self.label_of, top)
        self._number()

    def _number(self) -> None:
        """Ids for all leaves, evenly spread over the lower half: new tokens come last and get the upper one."""
        self._state[STEP], self._state[CROWDED] = (1 << 30) // (self.n_leaves + 1), 0
        trail = np.empty((2, self.height + 2), dtype=np.int64)
        kernels.relabel(self.arrays, self.lists.arrays, self.label_of, trail[0], trail[1])

    # -- changing ---------------------------------------------------------------------------------------

    def insert(self, entries: Entries, numbers: NDArray[np.int64], paths: Paths) -> None:
        """One by one, as the paper does (CIKM'15 3.1, Updates)."""
        self.label_of = enlarged(self.label_of, len(entries.term_count))
        trail = np.empty(int(np.diff(paths[0]).max(initial=0)) + 1, dtype=np.int64)
        done = 0
        while True:
            self._make_room(len(numbers) - done)
            args = (self.lists.arrays, self.label_of, entries.boxes, numbers, *paths, trail, done)
            done = kernels.insert(self.arrays, *args)
            if done == len(numbers):
                return
            if self._state[CROWDED]:
                self._number()
                self.renumbered += 1
            else:
                top = int(self._state[TOP])
                self._grow_nodes(top + 2 * int(self._links[:top, COUNT].max()) + 1)
                ensure_push(self.lists)

    def _make_room(self, n: int) -> None:
        self._label = enlarged(self._label, self.n_leaves + n)
        self.lists.make_room(len(self._label))

    def _grow_nodes(self, needed: int) -> None:
        self._token = enlarged(self._token, needed)
        self._box = enlarged(self._box, needed)
        self._links = enlarged(self._links, needed, NONE)

    def drop(self, numbers: NDArray[np.int64], paths: Paths) -> None:
        """From the lists of their leaves; nodes, boxes and ids stay until the next build."""
        leaves = np.empty(len(numbers), dtype=np.int64)
        kernels.find_leaves(self.arrays, *paths, leaves)
        self.lists.drop(leaves, numbers, len(self.label_of))

    # -- saving -----------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        top = int(self._state[TOP])
        arrays: dict[str, NDArray[Any]] = {
            "token": self._token[:top],
            "box": self._box[:top],
            "links": self._links[:top],
            "label": self._label,
            "levels": self.levels,
            "state": self._state,
            "label_of": self.label_of,
        }
        return arrays | {f"lists.{name}": array for name, array in self.lists.state().items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> TokenTrie:
        trie = cls()
        trie.lists = GrowingLists.restored({n[6:]: a for n, a in arrays.items() if n.startswith("lists.")})
        trie._token, trie._box, trie._links = arrays["token"], arrays["box"], arrays["links"]
        trie._label, trie.levels = arrays["label"], arrays["levels"]
        trie._state, trie.label_of = arrays["state"], arrays["label_of"]
        return trie
