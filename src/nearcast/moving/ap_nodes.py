"""An AP-Tree that moves (VLDBJ'17 4): the m-lists of its nodes, and what it knows of motion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.ap_tree import ApTree
from nearcast.indexes.lists import GrowingLists
from nearcast.indexes.pool import reserved
from nearcast.kernels import ap_moves
from nearcast.kernels.ap_build import MAX_DEPTH
from nearcast.kernels.ap_layout import ROOT
from nearcast.kernels.ap_moves import GONE
from nearcast.kernels.ap_task import LATEST, MESSAGES, N_TASK, UPDATES
from nearcast.kernels.layout import Entries
from nearcast.kernels.move_layout import Differences
from nearcast.moving.boxes import Moved
from nearcast.moving.live import LiveMessages

FIRST_TRAIL = 256
LATEST_RECONSTRUCTION = 16.0  # timestamps: Tmax of Algorithm 8
SWEEP_FROM = 1024  # tickets


class MovingTree(ApTree):
    """The tree of `ap+`. A move keeps the nodes that are on the old and on the new way.

    Messages are where the cuts sent them, so cuts stay as they are between reconstructions: the entries with a keyword
    that no cut holds are in the dummy cut, where every message comes by, until the node is built again.
    """

    may_cut = False

    def __init__(self, live: LiveMessages, limit: int, **options: Any) -> None:
        super().__init__(**options)
        self._live, self._limit = live, limit
        self._velocity = np.zeros((0, 2))
        self._rates = np.array([0.0, 0.0, LATEST_RECONSTRUCTION])
        self._trails = np.zeros((2, FIRST_TRAIL, N_TASK), np.int64)
        self._empty()

    def _empty(self) -> None:
        self._lists = GrowingLists()
        self._tickets = np.zeros(0, np.int32)  # row of a message, or GONE
        self._ticket_of = np.zeros(0, np.int32)  # by row
        self._n_tickets = self._n_gone = 0
        self._seen = np.zeros(0, np.int32)  # by ticket: see kernels.ap_moves.collect
        self._turn = 0
        self._is_dirty = False
        self._waiting: dict[int, NDArray[np.int32]] = {}  # by node that is built again: its tickets

    # -- messages -----------------------------------------------------------------------------------

    def put(self, rows: NDArray[np.int64]) -> None:
        """Messages into the m-lists of all nodes that they come to."""
        if self._is_dirty:
            self._fill_again()
        else:
            self._sink(self._new_tickets(rows), ROOT)

    def take(self, rows: NDArray[np.int64]) -> None:
        """Lazy deletion: tickets are marked, and dropped where they are met."""
        if self._is_dirty:
            self._fill_again()
        self._tickets[self._ticket_of[rows]] = GONE
        self._n_gone += len(rows)
        if self._n_gone > max(SWEEP_FROM, self._n_tickets // 2):
            self._sweep()

    def _new_tickets(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        first, self._n_tickets = self._n_tickets, self._n_tickets + len(rows)
        self._tickets = reserved(self._tickets, self._n_tickets)
        self._seen = reserved(self._seen, self._n_tickets)
        self._ticket_of = reserved(self._ticket_of, int(rows.max(initial=-1)) + 1)
        self._tickets[first : self._n_tickets] = rows
        self._ticket_of[rows] = np.arange(first, self._n_tickets)
        return np.arange(first, self._n_tickets, dtype=np.int32)

    def _fill_again(self) -> None:
        """The tree was built anew: all messages from the root on."""
        self._empty()
        self._sink(self._new_tickets(self._live.table.live_entries()), ROOT)

    def _sink(self, tickets: NDArray[np.int32], node: int) -> None:
        self._lists.make_room(len(self._tree.parts))
        rows, done = self._live.rows, 0
        words = np.zeros(int(rows.term_count.max(initial=0)) + 1, np.int64)
        stack, targets = np.zeros(self._limit + 4, np.int64), np.zeros(self._limit + 4, np.int64)
        while True:
            done = ap_moves.sink(
                self._tree,
                self._order.ranks,
                self._lists.arrays,
                rows,
                self._tickets,
                tickets,
                done,
                node,
                self._limit,
                words,
                stack,
                targets,
            )
            if done == len(tickets):
                return
            self._lists.enlarge_pool(len(tickets))

    def _sweep(self) -> None:
        used = self._tickets[: self._n_tickets]
        alive = used != GONE
        renumbered = (np.cumsum(alive) - 1).astype(np.int32)
        ap_moves.sweep(self._lists.arrays, self._tickets, renumbered)
        self._n_tickets = int(alive.sum())
        self._tickets[: self._n_tickets] = used[alive]
        self._ticket_of[self._tickets[: self._n_tickets]] = np.arange(self._n_tickets)
        self._seen[:], self._turn, self._n_gone = 0, 0, 0

    # -- the tree changes ---------------------------------------------------------------------------

    def _add(self, entries: NDArray[np.int64]) -> None:
        n_later = self._order.n_later
        super()._add(entries)
        if self._order.n_later != n_later:  # messages may have come with keywords that had no key then
            self._is_dirty = True

    def _build(self, live: NDArray[np.int64]) -> None:
        self._is_dirty = True
        super()._build(live)

    def _before_rebuild(self, nodes: NDArray[np.int64]) -> None:
        if self._is_dirty:
            return
        self._lists.make_room(len(self._tree.parts))
        out, path = np.zeros(max(1, self._n_tickets), np.int32), np.zeros((MAX_DEPTH + 2, 2), np.int64)
        for node in nodes.tolist():
            self._turn += 1
            n = ap_moves.collect(self._tree, self._lists.arrays, node, self._tickets, self._seen, self._turn, out, path)
            self._waiting[node] = out[:n].copy()

    def _after_rebuild(self, nodes: NDArray[np.int64]) -> None:
        for node in nodes.tolist():
            if node in self._waiting:
                self._sink(self._waiting.pop(node), node)

    # -- moves --------------------------------------------------------------------------------------

    def set_rates(self, messages: float, updates: float) -> None:
        """Messages in a timestamp, and location updates of a subscription."""
        self._rates[MESSAGES], self._rates[UPDATES] = messages, updates
        self._rates[LATEST] = LATEST_RECONSTRUCTION

    def build_again(self) -> None:
        """With what is known of motion by now."""
        self._build(self.table.live_entries())

    def relocate(self, entries: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
        if not len(entries):
            return
        old = self.entries.boxes[entries]
        self._velocity = reserved(self._velocity, len(self.entries.term_count))
        self._velocity[entries] = 0.5 * (boxes[:, :2] + boxes[:, 2:] - old[:, :2] - old[:, 2:])
        done = 0
        while True:
            done = ap_moves.relocate(
                self._tree, self._plan, self.entries, self._order.keys, entries, boxes, done, *self._both_trails()
            )
            if done == len(entries):
                break
            self._enlarge()
            self._enlarge_trails()
        self._settle(np.zeros(0, np.int64))

    def _both_trails(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._trails[0], self._trails[1]

    def _enlarge_trails(self) -> None:
        self._trails = np.zeros((2, 2 * self._trails.shape[1], N_TASK), np.int64)

    def differ(
        self,
        moved: Moved,
        first: int,
        rows: Entries,
        out: Differences,
        counters: NDArray[np.int64],
    ) -> tuple[int, int]:
        if self._is_dirty:
            self._fill_again()
        self._lists.make_room(len(self._tree.parts))
        while True:
            done, n = ap_moves.differ(
                self._tree,
                self._plan,
                self.entries,
                self._order.keys,
                self._lists.arrays,
                self._tickets,
                *moved,
                first,
                self._trails[0],
                rows,
                out,
                counters,
            )
            if done >= 0:
                return int(done), int(n)
            self._enlarge_trails()

    def message_bytes(self) -> dict[str, int]:
        return {"m-lists": self._lists.nbytes, "tickets": 12 * self._n_tickets, "velocity": 16 * self.table.n_entries}

    def message_details(self) -> dict[str, Any]:
        lengths = self._lists.arrays.length
        live = max(1, self._n_tickets - self._n_gone)
        return {
            "message copies": int(lengths.sum()) / live,
            "longest m-list": int(lengths.max(initial=0)),
            "tickets gone": self._n_gone,
        }
