"""The protocol of a ranker, and the part that all of them share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast.errors import CatalogueError, ColumnsError
from nearcast.geo import Plane, Space, earth
from nearcast.kernels import rank_settle
from nearcast.kernels.rank_heap import Heap
from nearcast.kernels.rank_layout import (
    BASE,
    BATCH,
    CANDIDATE,
    COUNT,
    EXPIRED,
    FRESH,
    INSERTED,
    IS_EARTH,
    LAST_ROW,
    MAX_DISTANCE,
    N_FRESH,
    N_MOVED,
    N_OUT,
    N_SPACE,
    NEXT,
    NOW,
    OLDEST,
    REFILLS,
    ROW,
    SCANNED,
    SHELVED,
    SWEPT,
    TO_NET,
    TOUCHED,
    TRIMMED,
    Candidates,
)
from nearcast.kernels.rank_refill import EXPIRY_SHARE
from nearcast.kernels.rank_settle import Out
from nearcast.ranking.changes import Changes, Ranking
from nearcast.ranking.columns import PostColumns, WishColumns
from nearcast.ranking.refill import Pace, find_refill
from nearcast.ranking.report import RankReport
from nearcast.ranking.table import WishTable
from nearcast.ranking.window import Window, WindowError, WindowStore, fresh_state

CHUNK = 512  # rows that are probed at a time
FIRST_ROOM = 1 << 14
LAST_ROOM = 1 << 21  # candidates; with more the rows are probed in smaller chunks
RENUMBER_FROM = 1 << 30  # messages are numbered by 32 bits inside


class Ranker(ABC):
    """Keeps the k best of the window for every wish. Subclasses find who wants a message; the rest is here.

    Not thread-safe. Times are arguments, never read from a clock.
    """

    name: ClassVar[str]

    def __init__(self, window: Window, space: Space = earth, *, refill: str = "cskyband") -> None:
        self.window = window
        self.table = WishTable()
        self.refill_name = refill
        self._refill = find_refill(refill)
        self._policy = self._refill.policy()
        self._pace = Pace(window.seconds)
        self._state = fresh_state()
        self._space = np.zeros(N_SPACE)
        self._space[IS_EARTH] = 0.0 if isinstance(space, Plane) else 1.0
        self._space[MAX_DISTANCE] = space.max_distance
        self._space[NOW] = -math.inf
        self.store = WindowStore(space, self._space)
        window.begin(self._state, self._space)
        self._heap = Heap(np.zeros(16), np.zeros(16, np.int32))
        self._room = Candidates(np.zeros(FIRST_ROOM, np.int32), np.zeros(FIRST_ROOM, np.int32), np.zeros(FIRST_ROOM))
        self._out = _room_for_changes(FIRST_ROOM)
        self._counters = np.zeros(3, np.int64)  # candidates, nodes, postings
        self._late = 0
        self._past = 0  # messages before number 0 of the state
        self.renumber_from = RENUMBER_FROM

    # -- what a ranker adds -------------------------------------------------------------------------

    def _add(self, slots: NDArray[np.int32]) -> None:  # noqa: B027  # a scan has no structure
        """Take new wishes into the structure; they have thresholds already."""

    def _drop(self, slots: NDArray[np.int32]) -> None:  # noqa: B027
        """Forget wishes, which are still in the table."""

    def _moved(self, slots: NDArray[np.int32]) -> None:  # noqa: B027
        """Thresholds of these slots have changed."""

    @abstractmethod
    def _probe(self, first_post: int, row: int, last_row: int, room: Candidates) -> tuple[int, int]:
        """Find all slots whose threshold a row reaches: the next row, and how many were found.

        Row r of the batch is row first_post + r of the store. Returns early where there is no room.
        """

    def _bytes(self) -> dict[str, int]:
        return {}

    def _details(self) -> dict[str, Any]:
        return {}

    # -- wishes -------------------------------------------------------------------------------------

    def subscribe(self, columns: WishColumns) -> NDArray[np.int32]:
        """Take wishes in; the slot of each. Their first results come from the window: ask `ranking`."""
        rooms = self._refill.rooms(columns.k, int(self._state[COUNT]))
        slots = self.table.add(columns, rooms)
        if len(slots):
            self._make_heap()
            self._begin(slots)
            self._add(slots)
        return slots

    def _begin(self, slots: NDArray[np.int32]) -> None:
        """First results. Wishes with a common term come one after the other, and those near each other: they
        read the same messages.
        """
        store, table = self.store, self.table
        wants = table.wants
        store.shelves.follow(store.posts, self._state)  # the last batch may have brought most of the window
        slots = slots[np.lexsort((wants.points[slots, 0], wants.terms[wants.term_from[slots]]))]
        rank_settle.begin(
            table.wants,
            table.buffers,
            table.calendar(store.head),
            store.posts,
            store.finder(self._heap, table.most_terms),
            slots,
            self._policy,
            table.notes,
            self._state,
            self._space,
        )

    def unsubscribe(self, slots: ArrayLike) -> None:
        """Forget the wishes in these slots."""
        chosen = np.ascontiguousarray(np.atleast_1d(np.asarray(slots, dtype=np.int32)))
        self.table.check(chosen)
        if len(chosen):
            self._drop(chosen)
            calendar = self.table.calendar(self.store.head)
            rank_settle.forget(self.table.buffers, calendar, chosen, self.table.notes, self._state)
            self.table.release(chosen)

    def ranking(self, slot: int) -> Ranking:
        """The current best of a wish."""
        self.table.check(np.array([slot], np.int32))
        buffers, k = self.table.buffers, int(self.table.wants.k[slot])
        start = int(buffers.start[slot])
        best = slice(start, start + min(k, int(buffers.size[slot])))
        return Ranking(buffers.seqs[best].astype(np.int64) + self._past, buffers.scores[best].copy())

    # -- messages -----------------------------------------------------------------------------------

    def load(self, columns: PostColumns) -> None:
        """Messages that arrived in the past: the window as if they had come one by one, without telling changes.

        Much quicker than `arrive` where they fill the window; quickest before wishes come.
        """
        kept = columns.cut(self._in_time(columns))
        if not len(kept):
            return
        self._renumber()
        self.store.append(kept, self._state)
        live = self.table.live()
        rank_settle.forget(
            self.table.buffers, self.table.calendar(self.store.head), live, self.table.notes, self._state
        )
        rank_settle.pass_over(self.store.posts, len(kept), self._state, self._space)
        if len(live):
            self._begin(live)
            self._moved(live)

    def take_over(self, other: Ranker) -> None:
        """Go on with wishes, window and buffers of another ranker, which is not used any more."""
        mine, its = (self.window, self.refill_name), (other.window, other.refill_name)
        if mine != its or self.table.n_live or self.arrived:
            raise CatalogueError(
                f"{its} given to a ranker with {mine}; it must be new, with the same window and refill"
            )
        self.table, self.store, self._state, self._space = other.table, other.store, other._state, other._space
        self._policy, self._past, self._late = other._policy, other._past, other._late
        self._make_heap()
        if len(self.table.live()):
            self._add(self.table.live())

    def seal_from(self, messages: int) -> None:
        """From so many messages on the window is put on shelves; fewer are read as they came."""
        self.store.shelves.seal_from = messages

    @property
    def arrived(self) -> int:
        """Messages so far; the next one gets this number."""
        return int(self._state[NEXT]) + self._past

    @property
    def oldest(self) -> int:
        """Number of the first message in the window."""
        return int(self._state[OLDEST]) + self._past

    @property
    def now(self) -> float:
        """The latest time of a message or of `advance`."""
        return float(self._space[NOW])

    def arrive(self, columns: PostColumns) -> Changes:
        """Messages in order of arrival; all changes that they and the expiries they bring make.

        In a time window a message older than one before it is late: it is dropped and counted. `step` counts
        the rows of `columns`, `seq` those that were taken.
        """
        taken = self._in_time(columns)
        kept = columns.cut(taken)
        if not len(kept):
            return Changes.none()
        self._renumber()
        first_post, expired = self.store.append(kept, self._state), int(self._state[EXPIRED])
        changes = self._all_changes(self._settle_rows(first_post, len(kept)))
        self._keep_pace(len(kept), expired)
        if len(kept) < len(columns):
            changes = changes._replace(step=np.flatnonzero(taken).astype(np.int32)[changes.step])
        return changes

    def advance(self, now: float) -> Changes:
        """Time passes without a message. A count window does not care."""
        if not math.isfinite(now):
            raise WindowError(f"now: {now!r} given; a finite number of seconds needed")
        if now < self._space[NOW]:
            raise WindowError(f"now: {now!r} given, but the window is at {self.now!r} already; time does not run back")
        self._space[NOW], expired = now, int(self._state[EXPIRED])
        changes = self._all_changes(self._settle(0, 0, 0))
        self._keep_pace(0, expired)
        return changes

    def _keep_pace(self, arrived: int, expired_before: int) -> None:
        """Refills that follow know how quickly the window grows or shrinks."""
        share = self._pace.share_of_expiries(arrived, int(self._state[EXPIRED]) - expired_before, self.now)
        self._policy[EXPIRY_SHARE] = share

    def _in_time(self, columns: PostColumns) -> NDArray[np.bool_]:
        """Rows that are taken: all of a count window; in a time window those that are not late."""
        if self.window.seconds is None or not len(columns):
            return np.ones(len(columns), np.bool_)
        without = ~np.isfinite(columns.ts)
        if without.any():
            raise ColumnsError(f"row {int(np.argmax(without))}: no time given; a time window needs ts of every message")
        before = np.maximum.accumulate(np.concatenate([[self._space[NOW]], columns.ts]))[:-1]
        taken = columns.ts >= before
        self._late += int(len(taken) - taken.sum())
        return taken

    def _settle_rows(self, first_post: int, n: int) -> list[Changes]:
        parts: list[Changes] = []
        row = 0
        while row < n:
            last, found = self._probe(first_post, row, min(n, row + CHUNK), self._room)
            if last == row:
                self._enlarge_room()
                continue
            if last < min(n, row + CHUNK) and len(self._room.rows) < LAST_ROOM:
                self._enlarge_room(found)
            parts += self._settle(row, last, found)
            row = int(self._state[ROW])
        return parts

    def _settle(self, row: int, last_row: int, n_found: int) -> list[Changes]:
        """Let the probed rows arrive; stops early (see state[ROW]) where a new probe is better."""
        state, table, store = self._state, self.table, self.store
        state[ROW], state[LAST_ROW], state[CANDIDATE] = row, last_row, 0
        self._new_batch()
        finder = store.finder(self._heap, table.most_terms)
        parts: list[Changes] = []
        while True:
            is_done = rank_settle.settle(
                table.wants,
                table.buffers,
                table.calendar(store.head),
                store.posts,
                finder,
                self._room,
                n_found,
                self._policy,
                table.notes,
                self._out,
                state,
                self._space,
            )
            if state[N_OUT]:
                parts.append(Changes.taken(self._out, int(state[N_OUT]), self._past))
                state[N_OUT] = 0
            self._tell_moved()
            if is_done:
                return parts
            if 2 * state[N_FRESH] > len(table.notes.fresh):
                if last_row == row:  # nothing arrives: finish the expiries, nobody has to be probed
                    self._new_batch()
                elif state[CANDIDATE] < 0:  # the row is in; finish its expiries, then probe anew
                    state[LAST_ROW] = state[ROW] + 1
                    self._new_batch()
                elif state[FRESH] == 0 and self._at_row_start():
                    return parts

    def _at_row_start(self) -> bool:
        at = int(self._state[CANDIDATE])
        return at == 0 or self._room.rows[at - 1] < self._state[ROW]

    def _new_batch(self) -> None:
        self._state[BATCH] += 1
        self._state[N_FRESH] = self._state[FRESH] = 0

    def _tell_moved(self) -> None:
        n = int(self._state[N_MOVED])
        if n:
            self._state[N_MOVED] = 0
            self._moved(np.unique(self.table.notes.moved[:n]))

    def _all_changes(self, parts: list[Changes]) -> Changes:
        changes = Changes.joined(parts)
        if self._state[TO_NET]:
            self._state[TO_NET] = 0
            changes = changes.netted()
        return changes

    # -- room ---------------------------------------------------------------------------------------

    def _enlarge_room(self, keep: int = 0) -> None:
        old, size = self._room, 2 * len(self._room.rows)
        self._room = Candidates(np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size))
        self._room.rows[:keep], self._room.slots[:keep] = old.rows[:keep], old.slots[:keep]
        self._room.scores[:keep] = old.scores[:keep]

    def _make_heap(self) -> None:
        most = self.table.most_k
        if len(self._heap.scores) < self._refill.reach(most):
            reach = 2 * self._refill.reach(most)
            self._heap = Heap(np.zeros(reach), np.zeros(reach, np.int32))
        if len(self._out.steps) < 4 * most:
            self._out = _room_for_changes(8 * most)

    def _renumber(self) -> None:
        """Before numbers outgrow 32 bits, count from the oldest message of the store."""
        base = int(self._state[BASE])
        if base < self.renumber_from:
            return
        buffers, calendar = self.table.buffers, self.table.calendar(self.store.head)
        buffers.seqs[:] -= np.int32(base)
        calendar.due[calendar.due >= 0] -= np.int32(base)
        self.table.notes.changed_in[:] = -1
        self.store.shelves.renumber(base)
        for at in (BASE, OLDEST, NEXT, SWEPT, SHELVED):
            self._state[at] -= base
        self._past += base

    # -- questions ----------------------------------------------------------------------------------

    def report(self) -> RankReport:
        state = self._state
        return RankReport(
            name=self.name,
            live=self.table.n_live,
            window=int(state[NEXT] - state[OLDEST]),
            bytes=self.table.nbytes() | {"window": self.store.nbytes} | self._bytes(),
            messages=self.arrived,
            late=self._late,
            expired=int(state[EXPIRED]),
            candidates=int(self._counters[0]),
            nodes=int(self._counters[1]),
            postings=int(self._counters[2]),
            inserted=int(state[INSERTED]),
            touched=int(state[TOUCHED]),
            refills=int(state[REFILLS]),
            scanned=int(state[SCANNED]),
            trimmed=int(state[TRIMMED]),
            buffered=self.table.buffered(),
            details=self._details(),
        )


def _room_for_changes(n: int) -> Out:
    return Out(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.bool_), np.zeros(n))
