"""The quadtree of the PT-Quadtree, from Python: division, pivotal sets, growth. See `kernels.pivotal_quadtree`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.filled import ensure_push, fill_lists
from nearcast.indexes.lists import GrowingLists
from nearcast.indexes.pivotal_sets import Sets, choose, cover_sets
from nearcast.indexes.pool import enlarged
from nearcast.indexes.trie_order import rarest_terms
from nearcast.kernels import pivotal_quadtree as kernels
from nearcast.kernels.layout import Entries
from nearcast.kernels.pivotal_quadtree import N_HINTS, NONE, ROOT, Quad
from nearcast.kernels.pt_quadtree import Walk, walk

CHUNK = 4096  # entries inserted before full leaves are divided
APART = 2.5  # a leaf is divided if its children together hold at most this many times its list

Runs = tuple[NDArray[np.int64], NDArray[np.int32]]


def csr(runs: list[NDArray[np.int32]]) -> Runs:
    run_from = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum([len(r) for r in runs], dtype=np.int64)])
    return run_from, np.concatenate([np.zeros(0, dtype=np.int32), *runs])


class PivotalQuadtree:
    """Nodes with a list of entries and two token sets: list n, cover set 2n, non-cover set 2n + 1.

    Divided until a list is shorter than tau_num or the cell smaller than tau_area of the root's region, or
    nothing is gained by it. once: MX-CIF, every entry in the one smallest cell that holds it.
    """

    def __init__(self, tau_num: int, tau_area: float, once: bool) -> None:
        self.tau_num, self.once = tau_num, once
        self.most_levels = max(0, int(np.floor(-np.log2(tau_area) / 2 + 1e-9)))
        self.lists, self.sets = GrowingLists(), GrowingLists()
        self.n = 1
        self.size = np.zeros(2)  # of the root's region
        self._centre = np.zeros((1, 2))
        self._cell = np.array([[-np.inf, -np.inf, np.inf, np.inf]])
        self._child = np.full(1, NONE, dtype=np.int32)
        self.depth = np.zeros(1, dtype=np.int32)
        self._retry = np.zeros(1, dtype=np.int64)  # by leaf: list length at which to think again
        self.frequency = np.zeros(0, dtype=np.int64)  # by term
        self._hint = np.zeros(0, dtype=np.uint16)  # by entry
        self._make_lists()

    @property
    def arrays(self) -> Quad:
        return Quad(self._centre, self._cell, self._child, self._hint)

    @property
    def child(self) -> NDArray[np.int32]:
        return self._child[: self.n]

    @property
    def height(self) -> int:
        return int(self.depth[: self.n].max())

    def walk(self) -> Walk:
        return walk(self.n, self.height)

    def nbytes(self) -> dict[str, int]:
        per_node = (2 + 4) * 8 + 4 + 4 + 8
        return {
            "quadtree nodes": self.n * per_node,
            "quadtree lists": self.lists.nbytes,
            "pivotal sets": self.sets.nbytes,
            "frequencies": self.frequency.nbytes,
            "hints": self._hint.nbytes,
        }

    # -- building ---------------------------------------------------------------------------------------

    def build(self, entries: Entries, numbers: NDArray[np.int64], frequency: NDArray[np.int64]) -> None:
        """Into an empty tree; the entries ascend by id, then by number."""
        boxes = entries.boxes[numbers]
        low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
        self._centre[ROOT], self.size = low / 2 + high / 2, high - low
        self.frequency = frequency
        self._note_hints(entries, numbers)
        run_from = np.array([0, len(numbers)], dtype=np.int64)
        self._divide(entries, np.zeros(1, dtype=np.int64), (run_from, numbers.astype(np.int32)))

    def _divide(self, entries: Entries, nodes: NDArray[np.int64], runs: Runs) -> None:
        """Give each leaf its run, divided as far as the thresholds say; then choose pivotal tokens."""
        tops, top = nodes, self.n
        settled: list[tuple[int, NDArray[np.int32]]] = []
        while len(nodes):
            counts = np.zeros((len(nodes), 5), dtype=np.int64)
            kernels.count_shares(self.arrays, nodes, *runs, entries.boxes, self.once, counts)
            divided = self._worth(nodes, np.diff(runs[0]), counts)
            settled += [(int(nodes[i]), _run(runs, i)) for i in np.flatnonzero(~divided).tolist()]
            chosen = csr([_run(runs, i) for i in np.flatnonzero(divided).tolist()])
            stay, nodes, runs = self._deal(entries, nodes[divided], chosen, counts[divided])
            settled += stay
        targets = np.array([node for node, _ in settled], dtype=np.int64)
        lists = csr([run for _, run in settled])
        fill_lists(self.lists, targets, *lists)
        sets = cover_sets(self.child, [*tops.tolist(), *range(top, self.n)], targets, choose(entries, *lists))
        self._put_sets(sets)

    def _worth(
        self, nodes: NDArray[np.int64], lengths: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Which leaves to divide (CIKM'15 4.1), given how many entries each quadrant gets, and the node keeps."""
        apart = (counts[:, :4].sum(axis=1) <= APART * lengths) & (counts[:, 4] < lengths)
        full = (lengths >= self.tau_num) & (self.depth[nodes] < self.most_levels)
        self._retry[nodes] = np.where(full & ~apart, 2 * lengths, 0)
        return np.asarray(full & apart)

    def _deal(
        self, entries: Entries, nodes: NDArray[np.int64], runs: Runs, counts: NDArray[np.int64]
    ) -> tuple[list[tuple[int, NDArray[np.int32]]], NDArray[np.int64], Runs]:
        """Make four children of each node: what stays with the nodes, the children, the children's runs."""
        if not len(nodes):
            return [], nodes, runs
        children = self._make_children(nodes)
        ends = np.cumsum(counts.ravel())
        begins = np.concatenate([np.zeros(1, dtype=np.int64), ends])
        dealt = np.empty(int(ends[-1]), dtype=np.int32)
        cursor = begins[:-1].reshape(-1, 5).copy()
        kernels.deal(self.arrays, nodes, *runs, entries.boxes, self.once, cursor, dealt)
        parts = [dealt[begins[i] : begins[i + 1]] for i in range(len(begins) - 1)]
        stay = [(int(node), parts[5 * i + 4]) for i, node in enumerate(nodes)]
        return stay, children, csr([part for i, part in enumerate(parts) if i % 5 < 4])

    def _make_children(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        children = np.arange(self.n, self.n + 4 * len(nodes), dtype=np.int64)
        self.n += 4 * len(nodes)
        self._centre, self._cell = enlarged(self._centre, self.n), enlarged(self._cell, self.n)
        self._child, self.depth = enlarged(self._child, self.n, NONE), enlarged(self.depth, self.n)
        self._retry = enlarged(self._retry, self.n)
        self._child[nodes] = children[::4]
        self._make_lists()
        self.depth[children] = np.repeat(self.depth[nodes] + 1, 4)
        middle = np.repeat(self._centre[nodes], 4, axis=0)
        side = np.tile(np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]]), (len(nodes), 1))
        quarter = self.size / 2.0 ** (self.depth[children] + 1)[:, None]
        self._centre[children] = middle + side * quarter
        cells = np.repeat(self._cell[nodes], 4, axis=0)
        cells[:, :2] = np.where(side > 0, middle, cells[:, :2])
        cells[:, 2:] = np.where(side < 0, middle, cells[:, 2:])
        self._cell[children] = cells
        return children

    def _make_lists(self) -> None:
        self.lists.make_room(self.n)
        self.sets.make_room(2 * self.n)

    def _put_sets(self, sets: Sets) -> None:
        nodes = np.array(list(sets), dtype=np.int64)
        targets = np.stack([2 * nodes, 2 * nodes + 1], axis=1).ravel()
        fill_lists(self.sets, targets, *csr([part for pair in sets.values() for part in pair]))

    def _note_hints(self, entries: Entries, numbers: NDArray[np.int64]) -> None:
        self._hint = enlarged(self._hint, len(entries.term_count))
        self._hint[numbers] = rarest_terms(entries, numbers, self.frequency) & (N_HINTS - 1)

    # -- changing ---------------------------------------------------------------------------------------

    def insert(self, entries: Entries, numbers: NDArray[np.int64], label_of: NDArray[np.int32]) -> None:
        """One by one (CIKM'15 4.1, Updates), and divide the leaves that have become full."""
        self._note_hints(entries, numbers)
        for first in range(0, len(numbers), CHUNK):
            self._insert(entries, numbers[first : first + CHUNK], label_of)
            lengths = self.lists.arrays.length
            full = (self.child == NONE) & (lengths >= self.tau_num) & (lengths >= self._retry[: self.n])
            nodes = np.flatnonzero(full & (self.depth[: self.n] < self.most_levels))
            if len(nodes):
                runs = csr([self.lists.values(int(node)).copy() for node in nodes])
                self._divide(entries, nodes, runs)

    def _insert(self, entries: Entries, numbers: NDArray[np.int64], label_of: NDArray[np.int32]) -> None:
        stack, done = self.walk().stack, 0
        while True:
            where = (self.arrays, self.lists.arrays, self.sets.arrays)
            done = kernels.insert(*where, entries, numbers, label_of, self.frequency, self.once, stack, done)
            if done == len(numbers):
                return
            ensure_push(self.lists)
            ensure_push(self.sets)

    def drop(self, entries: Entries, numbers: NDArray[np.int64], label_of: NDArray[np.int32]) -> None:
        """Out of the lists; the paper marks deletions, here the numbers may be used again at once."""
        stack = self.walk().stack
        kernels.remove(self.arrays, self.lists.arrays, entries, numbers, label_of, self.once, stack)

    # -- saving -----------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        arrays = {
            "centre": self._centre[: self.n],
            "cell": self._cell[: self.n],
            "child": self.child,
            "depth": self.depth[: self.n],
            "retry": self._retry[: self.n],
            "size": self.size,
            "frequency": self.frequency,
            "hint": self._hint,
        }
        arrays |= {f"lists.{name}": array for name, array in self.lists.state().items()}
        return arrays | {f"sets.{name}": array for name, array in self.sets.state().items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._centre, self._cell, self._child = arrays["centre"], arrays["cell"], arrays["child"]
        self.depth, self._retry = arrays["depth"], arrays["retry"]
        self.size, self.frequency, self._hint = arrays["size"], arrays["frequency"], arrays["hint"]
        self.n = len(self._child)
        self.lists = GrowingLists.restored({n[6:]: a for n, a in arrays.items() if n.startswith("lists.")})
        self.sets = GrowingLists.restored({n[5:]: a for n, a in arrays.items() if n.startswith("sets.")})


def _run(runs: Runs, i: int) -> NDArray[np.int32]:
    return runs[1][runs[0][i] : runs[0][i + 1]]
