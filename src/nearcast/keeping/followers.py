"""Moving subscriptions that outlive their process: they come from the store, their live messages from the log."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from nearcast.keeping.keeper import Keeper
from nearcast.model import Id, Subscription
from nearcast.moving.tracker import Tracker
from nearcast.store.codec import message_from
from nearcast.text import analyzer

CHUNK = 10_000  # messages that are read at a time
PLACE = "moving window"  # the setting that says where live messages begin in the log, and the time


class FollowKeeper:
    """Writes for the tracker of a hub, and fills a new one.

    Who follows is on disk at once; where everybody is, at a checkpoint: places change all the time, and whoever moves
    will tell.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper, self._analyzer = keeper, analyzer(keeper.analysis)

    def begin(self, wishes: Sequence[Subscription], tracker: Tracker) -> None:
        if not tracker.arrived:
            self._note_window(tracker)  # it begins with the next message
        self._keeper.store.followers.begin(self._keeper.tenant, wishes, self._analyzer)

    def end(self, wish: Id) -> None:
        self._keeper.store.followers.end(self._keeper.tenant, [wish])

    def note(self, tracker: Tracker) -> None:
        """Where live messages begin in the log, and where those are who have moved."""
        self._note_window(tracker)
        self._keeper.store.followers.moved(self._keeper.tenant, tracker.take_moved(), self._analyzer)

    def _note_window(self, tracker: Tracker) -> None:
        oldest = self._keeper.next_seq if tracker.oldest_seq is None else tracker.oldest_seq
        now = tracker.now if math.isfinite(tracker.now) else None
        self._keeper.store.settings.put(self._keeper.tenant, {PLACE: json.dumps([oldest, now]).encode()})

    def wishes(self) -> list[Subscription]:
        return self._keeper.store.followers.live(self._keeper.tenant, self._analyzer)

    def fill(self, tracker: Tracker, wishes: Sequence[Subscription]) -> None:
        """Live messages, then those who follow. What the log forgot is missing; keep it as long as the window."""
        told = self._keeper.store.settings.get(self._keeper.tenant, PLACE)
        oldest, now = json.loads(told) if told else (self._keeper.next_seq, None)
        log, after = self._keeper.store.log, oldest - 1
        while rows := log.read(self._keeper.tenant, after, log.last_seq, CHUNK):
            messages = [message_from(row.body, self._analyzer) for row in rows]
            tracker.arrive(messages, [row.seq for row in rows])
            after = rows[-1].seq
        if now is not None and now > tracker.now:
            tracker.advance(now)
        tracker.follow(wishes)
