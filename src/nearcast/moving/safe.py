"""`ap+safe`: an AP+-Tree whose subscribers keep silent while nothing can change (VLDBJ'17 5.2.3, AP+-Tree-Safe).

A subscriber knows its *slack*: how far each side of its box may move before a message could come or go. Within it no
location update is sent, and the server goes on with the box that it knows, the *anchor*: both have the same messages.
When a message arrives within the slack of an anchor (the *impact region*), the server asks where the subscriber is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.columns.seal import seal_boxes
from nearcast.geo import Space, earth
from nearcast.indexes.pool import reserved
from nearcast.indexes.strata import Strata
from nearcast.moving.ap_plus import ApPlus
from nearcast.moving.boxes import Moved
from nearcast.moving.changes import Changes

REACH = 0.5  # of a box' larger side: slack is not looked for beyond


class SafeApPlus(ApPlus):
    """As `ap+`, and counts what was said between subscribers and server."""

    name = "ap+safe"

    def __init__(self, space: Space = earth, *, most: int | None = None) -> None:
        super().__init__(space, most=most)
        self._impact = Strata()  # the same slots, anchors widened by their slack
        self._true = np.zeros((0, 4))  # by slot: where the subscriber is
        self._slack = np.zeros(0)  # by slot; 0: every update is sent
        self._sent = self._silent = self._asked = 0

    # -- subscriptions ------------------------------------------------------------------------------

    def follow(self, columns: SubscriptionColumns) -> NDArray[np.int32]:
        slots = super().follow(columns)
        again = self._impact.insert(columns)
        assert (again == slots).all()  # both hand out slots alike
        top = int(slots.max(initial=-1)) + 1
        self._true, self._slack = reserved(self._true, top), reserved(self._slack, top)
        rows, owner = self.index.table.rows_by_slot(slots)
        first = rows if owner is None else rows[np.flatnonzero(np.diff(owner, prepend=-1))]
        self._true[slots] = self.index.entries.boxes[first]
        self._find_slack(slots)
        return slots

    def unfollow(self, slots: ArrayLike) -> None:
        super().unfollow(slots)
        self._impact.remove(slots)

    def exchange(self, slots: ArrayLike, columns: SubscriptionColumns) -> Changes:
        self._impact.remove(slots)
        self._sent += len(columns)
        return super().exchange(slots, columns)

    def move(self, slots: ArrayLike, boxes: ArrayLike) -> Changes:
        moved, where = self._slots(slots), seal_boxes(boxes)
        if len(moved) != len(where):
            return super().move(moved, where)  # says what is wrong
        rows, owner = self._entries(moved)
        first = rows if owner is None else rows[np.flatnonzero(np.diff(owner, prepend=-1))]
        shift = np.abs(where - self.index.entries.boxes[first]).max(axis=1, initial=0.0)
        silent = self._one_box[moved] & (shift < self._slack[moved])
        changes = super().move(moved[~silent], where[~silent])
        self._true[moved] = where
        self._find_slack(moved[~silent])
        self._moves += int(silent.sum())
        self._sent, self._silent = self._sent + int((~silent).sum()), self._silent + int(silent.sum())
        return changes

    # -- messages -----------------------------------------------------------------------------------

    def _enter(self, batch: MessageBatch, seqs: NDArray[np.int64], ends: NDArray[np.float64]) -> Changes:
        asked = np.unique(self._impact.match(batch).slot) if len(batch) else np.zeros(0, np.int32)
        asked = asked[self._one_box[asked]]
        self._asked += len(asked)
        self._relocate(*self._boxes_of(asked, self._true[asked]))
        changes = super()._enter(batch, seqs, ends)
        self._find_slack(asked)
        return changes

    def _boxes_of(
        self, slots: NDArray[np.int32], boxes: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The entries of slots, each with the box of its slot."""
        rows, owner = self.index.table.rows_by_slot(slots)
        return rows, np.ascontiguousarray(boxes if owner is None else boxes[owner])

    # -- slack --------------------------------------------------------------------------------------

    def _find_slack(self, slots: NDArray[np.int32]) -> None:
        """How far the sides of these boxes may move: less than the least distance to a message's coming or going."""
        slots = slots[self._one_box[slots]]
        if not len(slots):
            return
        boxes = self._true[slots]
        reach = REACH * np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
        rows, wide = self._boxes_of(slots, _widened(boxes, reach))
        slack = reach.copy()
        place = np.searchsorted(slots, self.index.table.slots_of(rows), sorter=np.argsort(slots))
        place = np.argsort(slots)[place]
        for moves, found in self._messages_in(rows, wide):
            of = place[moves]
            np.minimum.at(slack, of, np.abs(_margin(boxes[of], self.live.rows.boxes[found])))
        self._slack[slots] = slack
        self._impact.relocate(*self._boxes_of(slots, _widened(boxes, slack)))

    def _messages_in(
        self, rows: NDArray[np.int64], boxes: NDArray[np.float64]
    ) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Live messages with the terms of entries in boxes: (place of the entry, row of the message)."""
        nowhere = np.empty_like(boxes)
        nowhere[:] = (np.inf, np.inf, -np.inf, -np.inf)
        return [(moves, found) for moves, found, _ in self._differences(Moved(rows, nowhere, boxes))]

    def _details(self) -> dict[str, Any]:
        told = self._sent + self._silent
        return super()._details() | {
            "updates sent": self._sent,
            "updates saved": self._silent,
            "share saved": self._silent / max(1, told),
            "asked by arrivals": self._asked,
        }


def _widened(boxes: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(boxes + by[:, None] * np.array([-1.0, -1.0, 1.0, 1.0]))


def _margin(boxes: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much two boxes touch on the side where they touch least; negative: how far apart they are."""
    sides = [places[:, 2] - boxes[:, 0], boxes[:, 2] - places[:, 0]]
    sides += [places[:, 3] - boxes[:, 1], boxes[:, 3] - places[:, 1]]
    return np.asarray(np.minimum.reduce(sides))
