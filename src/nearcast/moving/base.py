"""The protocol of a mover, and the part that all of them share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.columns.seal import refuse, seal, seal_boxes
from nearcast.errors import CatalogueError, ColumnsError, NearcastError
from nearcast.geo import Space, earth
from nearcast.indexes.base import EntryIndex
from nearcast.indexes.pool import reserved
from nearcast.kernels.layout import CANDIDATES, COUNTERS, NODES
from nearcast.kernels.move_layout import NOWHERE, Differences
from nearcast.moving.boxes import Moved, one_box_each, sealed_boxes, touching
from nearcast.moving.changes import Changes
from nearcast.moving.live import LiveMessages, chosen
from nearcast.moving.report import MoveReport

FIRST_ROOM = 4096


class TimeError(NearcastError):
    """A time that does not follow the one before, or is none."""


class Mover(ABC):
    """Knows at every moment which live messages every moving subscription has, and tells what changes.

    No set of messages is kept for anybody: on a move, the messages of the old and the new box are compared; on
    an arrival and at an end, the message is matched with the subscriptions as they are. Subclasses have an index of
    subscriptions and one of live messages. Times are arguments; steps are atomic: what enters and leaves
    within one step is not told. Not thread-safe.
    """

    name: ClassVar[str]
    may_repeat: ClassVar[bool] = False  # `_differ` may tell a change of a message that is no point twice

    def __init__(self, space: Space = earth, *, most: int | None = None) -> None:
        """`most`: only the last so many messages live."""
        if most is not None and most < 1:
            raise CatalogueError(f"most: {most} given; a whole number of at least 1 needed")
        self.space = space
        self.most = most
        self.now = -math.inf
        self.live = LiveMessages(space, is_counted=most is not None)
        self.index = self._new_index()
        self._one_box = np.zeros(0, np.bool_)  # by slot: the region is one box
        self._arrived = self._expired = self._late = self._moves = self._entered = self._left = 0
        self._moved_changes = 0
        self._gone: list[NDArray[np.int64]] = []
        self._counters = np.zeros(len(COUNTERS), np.int64)
        self._room = FIRST_ROOM

    # -- what a mover adds --------------------------------------------------------------------------

    @abstractmethod
    def _new_index(self) -> EntryIndex:
        """An empty index of subscriptions; `live` is there already."""

    def _put(self, rows: NDArray[np.int64]) -> None:  # noqa: B027  # a scan has no structure
        """Take live messages (in the table already) into the structure."""

    def _take(self, rows: NDArray[np.int64]) -> None:  # noqa: B027
        """Forget messages that ended; they are in the table still."""

    @abstractmethod
    def _differ(self, moved: Moved, first: int, out: Differences) -> tuple[int, int]:
        """Messages with an entry's terms in one of two boxes, from entries[first] on; how far it came, and how many.

        Called before the entries are in their new boxes. A box that is NOWHERE is empty.
        """

    def _bytes(self) -> dict[str, int]:
        return {}

    def _details(self) -> dict[str, Any]:
        return {}

    # -- subscriptions ------------------------------------------------------------------------------

    def follow(self, columns: SubscriptionColumns) -> NDArray[np.int32]:
        """Take subscriptions in; the slot of each, in order. What they have already: `current`."""
        slots = self.index.insert(columns)
        self._one_box = reserved(self._one_box, int(slots.max(initial=-1)) + 1)
        self._one_box[slots] = one_box_each(columns)
        return slots

    def unfollow(self, slots: ArrayLike) -> None:
        self.index.remove(slots)

    def move(self, slots: ArrayLike, boxes: ArrayLike) -> Changes:
        """Subscriptions, each of which has one box as its region, to new boxes; each once."""
        moved, where = self._slots(slots), sealed_boxes(seal_boxes(boxes))
        if len(moved) != len(where):
            raise ColumnsError(f"{len(moved)} slots and {len(where)} boxes given; one box for each slot needed")
        rows, owner = self._entries(moved)
        if not self._one_box[moved].all():
            raise CatalogueError("move takes subscriptions whose region is one box; exchange takes the others")
        new = where if owner is None else np.ascontiguousarray(where[owner])
        old = np.ascontiguousarray(self.index.table.entries.boxes[rows])
        changes = self._compare(Moved(rows, old, new))
        self._relocate(rows, new)
        self._moves += len(moved)
        self._moved_changes += len(changes.slot)
        return self._told(changes)

    def exchange(self, slots: ArrayLike, columns: SubscriptionColumns) -> Changes:
        """Subscriptions, each given once, for others in the same slots: any region, any words."""
        moved = self._slots(slots)
        if len(moved) != len(columns):
            raise ColumnsError(f"{len(moved)} slots and {len(columns)} subscriptions given; as many needed")
        before = self._sets(moved)
        self.index.remove(moved)
        again = self.follow(columns)
        assert (again == moved).all()  # freed slots are used first, in their order
        self._moves += len(moved)
        return self._told(Changes.between(before, self._sets(moved)))

    def current(self, slot: int) -> NDArray[np.int64]:
        """Numbers of the messages that a subscription has now, ascending."""
        return np.sort(self._sets(self._slots([slot])).seq)

    # -- messages -----------------------------------------------------------------------------------

    def arrive(self, batch: MessageBatch, ends: ArrayLike, now: float) -> Changes:
        """Messages come, all at `now`; each lives until its end, which is excluded."""
        until = seal(ends, np.float64, "ends")
        if until.shape != (len(batch),):
            raise ColumnsError(f"ends: shape {until.shape} given, [{len(batch)}] needed")
        refuse(np.isnan(until), "an end must be a time; infinity means never")
        self._pass(now)
        seqs = np.arange(self._arrived, self._arrived + len(batch), dtype=np.int64)
        self._arrived += len(batch)
        left = self._end(now)
        is_late = until <= now
        self._late += int(is_late.sum())
        keep = ~is_late & _has_terms(batch)
        if self.most is not None:
            keep &= seqs >= self._arrived - self.most
        self._gone.append(seqs[~keep])
        return self._told(Changes.joined([left, self._enter(chosen(batch, keep), seqs[keep], until[keep])]))

    def advance(self, now: float) -> Changes:
        """Time passes; messages that end go."""
        self._pass(now)
        return self._told(self._end(now))

    def take_gone(self) -> NDArray[np.int64]:
        """Numbers of the messages that ended (or never lived) since this was asked last."""
        gone, self._gone = self._gone, []
        return np.concatenate([np.zeros(0, np.int64), *gone])

    def _pass(self, now: float) -> None:
        if not math.isfinite(now):
            raise TimeError(f"now: {now!r} given; a finite number needed")
        if now < self.now:
            raise TimeError(f"now: {now!r} given; it is {self.now!r} already; time does not run back")
        self.now = now

    def _enter(self, batch: MessageBatch, seqs: NDArray[np.int64], ends: NDArray[np.float64]) -> Changes:
        if not len(batch):
            return Changes.none()
        rows, _ = self.live.add(batch, seqs, ends)
        pairs = self._matched(batch, rows)
        return Changes(pairs[1], seqs[pairs[0]], np.ones(len(pairs[0]), np.bool_))

    def _matched(self, batch: MessageBatch, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Who wants arriving messages (number in the batch, slot); they join the structure."""
        pairs = self.index.match(batch)
        self._put(rows)
        return pairs.message, pairs.slot

    def _end(self, now: float) -> Changes:
        slots = self.live.due(now)
        if self.most is not None:
            slots = np.unique(np.concatenate([slots, self.live.before(self._arrived - self.most)]))
        if not len(slots):
            return Changes.none()
        batch, seqs = self.live.batch(slots), self.live.seqs(slots)
        pairs = self.index.match(batch)
        rows, _ = self.live.table.rows_by_slot(slots)
        self._take(rows)
        self.live.forget(slots, rows)
        self._expired += len(slots)
        self._gone.append(seqs)
        return Changes(pairs.slot, seqs[pairs.message], np.zeros(len(pairs.slot), np.bool_))

    # -- help ---------------------------------------------------------------------------------------

    def _slots(self, slots: ArrayLike) -> NDArray[np.int32]:
        return np.atleast_1d(np.asarray(slots, dtype=np.int32))

    def _entries(self, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32] | None]:
        """The entries of slots that must be in use, each given once, and the place of the slot of each."""
        self.index.table.entries_of(slots)
        return self.index.table.rows_by_slot(slots)

    def _relocate(self, entries: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
        self.index.relocate(entries, boxes)

    def _sets(self, slots: NDArray[np.int32]) -> Changes:
        """All that these subscriptions have, written as entered."""
        rows, _ = self._entries(slots)
        new = np.ascontiguousarray(self.index.table.entries.boxes[rows])
        nowhere = np.empty_like(new)
        nowhere[:] = NOWHERE
        return self._compare(Moved(rows, nowhere, new))

    def _compare(self, moved: Moved) -> Changes:
        """What has to enter and to leave when entries go from one box to the other."""
        parts = [(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.bool_))]
        parts += self._differences(moved)
        moves, rows, entered = (np.concatenate(column) for column in zip(*parts, strict=True))
        if self.live.table.has_several:
            moves, rows, entered = self._of_whole_messages(moves, rows, moved)
        return self._settle(moved.entries[moves].astype(np.int32), rows, entered)

    def _differences(self, moved: Moved) -> list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]]:
        """What `_differ` finds, in parts."""
        parts: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]] = []
        first = 0
        while first < len(moved.entries):
            room = self._room
            out = Differences(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.bool_))
            following, n = self._differ(moved, first, out)
            parts.append((out.moves[:n], out.rows[:n], out.entered[:n]))
            if following < len(moved.entries):
                self._room *= 2
            first = following
        return parts

    def _of_whole_messages(
        self, moves: NDArray[np.int32], rows: NDArray[np.int32], moved: Moved
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
        """A message with several coordinates may leave by one and stay, or come, by another."""
        all_rows, owner = self.live.table.rows_by_slot(self.live.table.slots_of(rows))
        assert owner is not None
        boxes = self.live.rows.boxes[all_rows]
        was, comes = (np.zeros(len(moves), np.bool_) for _ in range(2))
        np.logical_or.at(was, owner, touching(moved.old[moves[owner]], boxes))
        np.logical_or.at(comes, owner, touching(moved.new[moves[owner]], boxes))
        differ = was != comes
        return moves[differ], rows[differ], comes[differ]

    def _settle(self, entries: NDArray[np.int32], rows: NDArray[np.int32], entered: NDArray[np.bool_]) -> Changes:
        """Candidates that are exact on boxes and terms, to changes: further conditions, each once."""
        messages = self.live.table.slots_of(rows)
        table = self.index.table
        if table.has_conditions and len(rows):
            distinct, place = np.unique(messages, return_inverse=True)
            batch = self.live.batch(distinct)
            row_of = _rows_in(batch, place, rows, self.live.table.rows_by_slot(distinct)[0])
            keep = table.holds(batch, row_of, place.astype(np.int32), entries)
            entries, messages, entered = entries[keep], messages[keep], entered[keep]
        slots = table.slots_of(entries)
        if table.has_several or self.live.table.has_several or (self.may_repeat and self.live.has_boxes):
            _, once = np.unique((slots.astype(np.int64) << 32) | messages, return_index=True)
            slots, messages, entered = slots[once], messages[once], entered[once]
        return Changes(slots, self.live.seqs(messages), entered)

    def _told(self, changes: Changes) -> Changes:
        n_entered = int(changes.entered.sum())
        self._entered += n_entered
        self._left += len(changes.slot) - n_entered
        return changes

    def report(self) -> MoveReport:
        return MoveReport(
            name=self.name,
            live=self.index.table.n_live,
            messages=len(self.live),
            bytes=self.index.report().bytes | self.live.nbytes() | self._bytes(),
            arrived=self._arrived,
            expired=self._expired,
            late=self._late,
            moves=self._moves,
            entered=self._entered,
            left=self._left,
            moved_changes=self._moved_changes,
            candidates=int(self._counters[CANDIDATES]),
            nodes=int(self._counters[NODES]),
            details=self._details(),
        )


def _has_terms(batch: MessageBatch) -> NDArray[np.bool_]:
    """Messages without a term can match nothing, and are not kept."""
    has = np.diff(batch.term_from) > 0
    if batch.message is None:
        return np.asarray(has)
    first = np.flatnonzero(np.diff(batch.message, prepend=-1))
    return np.asarray(has[first])


def _rows_in(
    batch: MessageBatch, place: NDArray[np.intp], rows: NDArray[np.int32], of_batch: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Where in the batch the rows of a table stand; of_batch[i] is the table's row of the batch's row i."""
    if batch.message is None:
        return place.astype(np.int32)
    order = np.argsort(of_batch)
    return order[np.searchsorted(of_batch[order], rows)].astype(np.int32)
