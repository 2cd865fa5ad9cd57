"""`ap-tree`: an adaptive tree of keyword and space partitions, chosen by expected cost (VLDBJ'17 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.ap_census import census
from nearcast.indexes.ap_order import KeywordOrder, Workload
from nearcast.indexes.base import EntryIndex
from nearcast.indexes.pool import enlarged
from nearcast.indexes.report import IndexReport
from nearcast.kernels import ap_build, ap_due, ap_tree, ap_update
from nearcast.kernels.ap_build import MAX_DEPTH
from nearcast.kernels.ap_layout import (
    HEIGHT,
    KEYWORD,
    LAST_STEP,
    N_CLASSES,
    NOTHING,
    PART_RUNS,
    POOL_RUNS,
    ROOT,
    SPACE,
    WHAT,
    Tree,
    empty_tree,
)
from nearcast.kernels.ap_task import HIGH, LOW, N_TASK, NODE, TRIE, Plan, make_desk, root_task
from nearcast.kernels.layout import Rows

PARTITIONS = ("heuristic", "optimal")
PRIORITIES = ("adaptive", "keyword", "space")  # in the order of the kernels' numbers
ORDERS = ("rare", "frequent")
MAX_FANOUT = 10_000
FIRST_ROWS = 64
SPLITS, MERGES, REBUILDS, BUILDS = range(4)  # what became of due nodes; BUILDS: of the whole tree


class ApTree(EntryIndex):
    """Keyword nodes cut the ordered keywords at one offset, space nodes cut space, leaves hold what is left.

    f: cuts or cells of a node. theta_p: a leaf with more entries is divided. theta_kl: a node whose parts have
    changed more (Kullback-Leibler divergence of their weights) is built again. keyword_partition: `heuristic`
    or `optimal`. priority: which partition a node gets, by cost or always the same if possible. order of
    keywords: `rare` first, or `frequent` first as in the paper. recut: a cut of several keywords may be cut
    again at the same offset; False as in the paper. trie_quadtree: Trie-Qd of 5.1.2, one cut a keyword and
    quarters of space.
    """

    name = "ap-tree"
    may_cut = True  # a keyword that no cut holds changes the cuts at once; else it waits in the dummy cut

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        f: int = 200,
        theta_p: int = 40,
        theta_kl: float = 0.001,
        keyword_partition: str = "heuristic",
        priority: str = "adaptive",
        order: str = "rare",
        recut: bool = True,
        trie_quadtree: bool = False,
    ) -> None:
        super().__init__(history=history)
        self._check(2 <= f <= MAX_FANOUT, f"f={f} given; 2 to {MAX_FANOUT} is allowed")
        self._check(theta_p >= 1, f"theta_p={theta_p} given; 1 or more is allowed")
        self._check(theta_kl >= 0, f"theta_kl={theta_kl} given; 0 or more is allowed")
        for option, value, allowed in (
            ("keyword_partition", keyword_partition, PARTITIONS),
            ("priority", priority, PRIORITIES),
            ("order", order, ORDERS),
        ):
            self._check(value in allowed, f"{option}={value!r} given; there are {', '.join(allowed)}")
        self.f, self.theta_p, self.theta_kl = int(f), int(theta_p), float(theta_kl)
        self.keyword_partition, self.priority = keyword_partition, priority
        self.order, self.recut, self.trie_quadtree = order, bool(recut), bool(trie_quadtree)
        self._past = Workload.of_messages(history)
        self._order = KeywordOrder(order == "rare")
        self._tree = empty_tree(0, 0, np.zeros(4))
        self._places = np.zeros((0, 2), dtype=np.int64)
        self._changes = np.zeros(4, dtype=np.int64)
        self._stamps = np.zeros(0, dtype=np.int32)  # by entry; see kernels.ap_due.gather
        self._stamp = 1
        self._velocity, self._rates = np.zeros((0, 2)), np.zeros(3)  # `ap+` has them

    def _check(self, is_good: bool, message: str) -> None:
        if not is_good:
            raise CatalogueError(f"{self.name}: {message}")

    @property
    def _plan(self) -> Plan:
        priority = TRIE if self.trie_quadtree else PRIORITIES.index(self.priority)
        return Plan(
            self.f,
            self.theta_p,
            self.theta_kl,
            priority,
            self.keyword_partition == "optimal",
            self._order.rare_first,
            self.recut,
            self._order.chances,
            self._places,
            self._velocity,
            self._rates,
        )

    # -- changes ------------------------------------------------------------------------------------

    def _add(self, entries: NDArray[np.int64]) -> None:
        n_before = self.table.n_entries - len(entries)
        if len(entries) > n_before or self._order.is_exhausted:
            self._build(self.table.live_entries())
            return
        self._order.put(self.entries, entries)
        self._change(entries, 1)
        self._settle(np.zeros(0, dtype=np.int64))

    def _drop(self, entries: NDArray[np.int64]) -> None:
        if 2 * len(entries) > self.table.n_entries:
            self._build(np.setdiff1d(self.table.live_entries(), entries))
            return
        self._change(entries, -1)
        self._settle(entries)

    def _build(self, live: NDArray[np.int64]) -> None:
        """Everything anew: order of keywords, frame of coordinates, tree (3.3.4)."""
        workload = self._past or Workload.of_entries(self.entries, live)
        self._order.start(self.entries, live, workload)
        frame = _frame_of(self.entries.boxes[live])
        self._places = _steps_of(workload.places, frame)
        self._tree = empty_tree(len(live) // 2, 2 * len(live), frame)
        self._changes[BUILDS] += 1
        tasks = np.zeros((1, N_TASK), dtype=np.int64)
        root_task(tasks[0], len(live))
        self._grow(tasks, live.astype(np.int32))

    def _grow(self, tasks: NDArray[np.int64], work: NDArray[np.int32]) -> None:
        """Do the tasks; `work` holds their entries, one task's after the other's."""
        largest = int((tasks[:, HIGH] - tasks[:, LOW]).max())
        desk = make_desk(largest, self.f, self.keyword_partition == "optimal")
        left, plan = len(tasks), self._plan
        entries, keys = self.entries, self._order.keys
        most_parts = largest if self.trie_quadtree else self.f
        tasks, work = enlarged(tasks, left + 4 + most_parts), enlarged(work, 2 * len(work))
        while left := ap_build.grow(self._tree, plan, entries, keys, tasks, left, work, desk):
            self._enlarge()
            tasks, work = enlarged(tasks, len(tasks) + self.f), enlarged(work, len(work) + FIRST_ROWS)

    def _change(self, entries: NDArray[np.int64], by: int) -> None:
        """Insert (1) or remove (-1) entries one by one (3.3.5)."""
        done, plan = 0, self._plan
        trail = np.zeros((FIRST_ROWS, N_TASK), dtype=np.int64)
        while True:
            may_cut = by > 0 and self.may_cut
            keys = self._order.keys
            done = ap_update.change(self._tree, plan, self.entries, keys, entries, done, by, may_cut, trail)
            if done == len(entries):
                return
            self._enlarge()
            trail = enlarged(trail, 2 * len(trail))

    def _settle(self, gone: NDArray[np.int64]) -> None:
        """Divide, melt down or build again what is due; `gone` are entries that the table still has."""
        tasks = np.zeros((FIRST_ROWS, N_TASK), dtype=np.int64)
        while (n := ap_due.find_due(self._tree, self._plan, tasks)) == NOTHING:
            tasks = enlarged(tasks, 2 * len(tasks))
        if n == 0:
            return
        if tasks[0, NODE] == ROOT:
            self._build(np.setdiff1d(self.table.live_entries(), gone))
            return
        tasks = np.ascontiguousarray(tasks[:n])
        self._count_changes(tasks)
        work = np.zeros(int(tasks[:, HIGH].sum()), dtype=np.int32)
        self._stamps = enlarged(self._stamps, len(self.entries.term_count))
        if self._stamp + n >= np.iinfo(np.int32).max:
            self._stamps[:], self._stamp = 0, 1
        path = np.zeros((MAX_DEPTH + 2, 2), dtype=np.int64)
        nodes = tasks[:, NODE].copy()
        self._before_rebuild(nodes)
        ap_due.gather(self._tree, tasks, n, work, self._stamps, self._stamp, path)
        self._stamp += n
        self._grow(tasks, work)
        self._after_rebuild(nodes)

    def _before_rebuild(self, nodes: NDArray[np.int64]) -> None:
        """For indexes that keep more in nodes than the tree does."""

    def _after_rebuild(self, nodes: NDArray[np.int64]) -> None:
        """The same nodes, built again."""

    def _count_changes(self, tasks: NDArray[np.int64]) -> None:
        kinds = self._tree.parts[tasks[:, NODE], WHAT] & 3
        is_inner = (kinds == KEYWORD) | (kinds == SPACE)
        is_small = 2 * tasks[:, HIGH] <= max(2, self.theta_p)
        self._changes[SPLITS] += np.count_nonzero(~is_inner)
        self._changes[MERGES] += np.count_nonzero(is_inner & is_small)
        self._changes[REBUILDS] += np.count_nonzero(is_inner & ~is_small)

    def _enlarge(self) -> None:
        parts, last, care, pool, state, frame = self._tree
        n = len(parts) + FIRST_ROWS
        pool = enlarged(pool, len(pool) + FIRST_ROWS)
        self._tree = Tree(enlarged(parts, n), enlarged(last, n), enlarged(care, n), pool, state, frame)

    # -- matching -----------------------------------------------------------------------------------

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        tree, entries, keys, ranks = self._tree, self.entries, self._order.keys, self._order.ranks
        longest = int(np.diff(rows.term_from).max(initial=0))
        scratch = ap_tree.make_scratch(longest, self.f, int(tree.state[HEIGHT]))
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: ap_tree.probe(
                tree, entries, keys, ranks, rows, scratch, first, found, counters
            ),
        )

    # -- report and snapshot ------------------------------------------------------------------------

    def report(self) -> IndexReport:
        rebuilds = int(self._changes[REBUILDS] + max(0, self._changes[BUILDS] - 1))
        return replace(super().report(), rebuilds=rebuilds)

    def _used(self) -> tuple[int, int]:
        """Rows of parts and of pool that were ever used."""
        state = self._tree.state
        return int(state[PART_RUNS + N_CLASSES]), int(state[POOL_RUNS + N_CLASSES])

    def _bytes(self) -> dict[str, int]:
        n_parts, n_pool = self._used()
        return {
            "nodes": sum(array[:n_parts].nbytes for array in self._tree[:3]),
            "leaves": n_pool * self._tree.pool[:1].nbytes,
            "keys": 4 * int(self.entries.term_count.sum()),
            "order": self._order.nbytes,
            "places": self._places.nbytes,
        }

    def _details(self) -> dict[str, Any]:
        names = ("splits", "merges", "node_rebuilds", "builds")
        return (
            census(self._tree)
            | dict(zip(names, self._changes.tolist(), strict=True))
            | {"f": self.f, "theta_p": self.theta_p, "theta_kl": self.theta_kl}
            | {"messages_known": self._past.size if self._past else 0}
        )

    def _options(self) -> dict[str, Any]:
        names = ("f", "theta_p", "theta_kl", "keyword_partition", "priority", "order", "recut", "trie_quadtree")
        return {name: getattr(self, name) for name in names}

    def _state(self) -> dict[str, NDArray[Any]]:
        n_parts, n_pool = self._used()
        arrays: dict[str, NDArray[Any]] = {
            "parts": self._tree.parts[:n_parts],
            "last": self._tree.last[:n_parts],
            "care": self._tree.care[:n_parts],
            "pool": self._tree.pool[:n_pool],
            "state": self._tree.state,
            "frame": self._tree.frame,
            "places": self._places,
            "changes": self._changes,
        }
        if self._past:
            arrays |= {"past.counts": self._past.counts, "past.places": self._past.places}
            arrays["past.size"] = np.array([self._past.size])
        return arrays | {f"order.{name}": array for name, array in self._order.state().items()}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._tree = Tree(*(arrays[name] for name in Tree._fields))
        self._places, self._changes = arrays["places"], arrays["changes"]
        if "past.size" in arrays:
            self._past = Workload(int(arrays["past.size"][0]), arrays["past.counts"], arrays["past.places"])
        order = {name[6:]: array for name, array in arrays.items() if name.startswith("order.")}
        self._order.restore(order, self.entries, self.table.live_entries())


def _frame_of(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """West and south of all boxes, steps per unit of x and of y; 0 where there is no extent."""
    if not len(boxes):
        return np.zeros(4)
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    with np.errstate(divide="ignore", over="ignore"):
        scale = LAST_STEP / (high - low)
    return np.concatenate([low, np.where(np.isfinite(scale), scale, 0.0)])


def _steps_of(places: NDArray[np.float64], frame: NDArray[np.float64]) -> NDArray[np.int64]:
    """As kernels.ap_layout.step; a place only counts for probabilities."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.nan_to_num((places - frame[:2]) * frame[2:])
    return np.clip(scaled, 0, LAST_STEP).astype(np.int64)
