"""The part of a hub that looks back: the log matched again, for those who were away and for wishes not yet left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nearcast.deliveries import Delivery
from nearcast.expression import parse
from nearcast.geo import Region, Space
from nearcast.keeping.keeper import Keeper
from nearcast.keeping.rematch import Chunk, Rematch, Valid
from nearcast.model import Id, Message, Subscription
from nearcast.store import StoreError
from nearcast.text import Analyzer


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a wish would have matched in a part of the log."""

    matched: int
    scanned: int  # messages that were looked at
    after: int  # the part begins behind this sequence number
    up_to: int
    examples: tuple[Delivery, ...]  # the newest of them


class LookingBack:
    """`replay` and `dry_run` of a hub that has a store."""

    space: Space
    _analyzer: Analyzer
    _keeper: Keeper | None = None

    def _kept(self) -> Keeper:
        if self._keeper is None:
            raise StoreError("this hub is in memory; Hub.open(url) gives one with a log to look back into")
        return self._keeper

    def replay(self, subscriber: Id, *, after: int | None = None, since: float | None = None) -> Iterator[Delivery]:
        """What a subscriber was sent before, in order: all behind sequence number `after`, or accepted at `since`
        or later, or (neither given) behind its cursor.

        Nothing of it was stored: the log is matched again, against the subscriber's own subscriptions as they
        were then.
        """
        keeper = self._kept()
        position = self._position(subscriber, after, since)
        past = keeper.past_of(subscriber, position)
        for chunk in past.chunks(position, keeper.store.log.last_seq):
            yield from self._deliveries(chunk)

    def dry_run(
        self,
        expression: str,
        within: Region,
        *,
        after: int | None = None,
        since: float | None = None,
        examples: int = 10,
    ) -> DryRun:
        """What a subscription would have matched, before it is registered: in the whole log, behind a sequence
        number, or since a time."""
        wish = Subscription("dry run", parse(expression, self._analyzer), self.space.check_region(within))
        return self.dry_run_of(wish, after=after, since=since, examples=examples)

    def dry_run_of(
        self, wish: Subscription, *, after: int | None = None, since: float | None = None, examples: int = 10
    ) -> DryRun:
        keeper = self._kept()
        start = self._position(None, after, since)
        matched, scanned, newest = 0, 0, list[Delivery]()
        last = keeper.store.log.last_seq
        for chunk in keeper.rematch([Valid(wish)]).chunks(start, last):
            matched, scanned = matched + len(chunk.found), scanned + chunk.scanned
            newest = (newest + list(self._deliveries(chunk)))[-examples:] if examples else []
        return DryRun(matched, scanned, start, last, tuple(newest))

    def mark_counted(self) -> None:
        """Events of limited subscriptions are counted up to here: the log may forget what lies before."""
        self._kept().count_events({}, (), self.last_seq)

    @property
    def last_seq(self) -> int:
        """Number of the last message in the log."""
        return self._kept().store.log.last_seq

    def past_of(self, subscriber: Id, after: int) -> Rematch:
        """For those who go through the log in steps: the subscriber's subscriptions, to be matched behind `after`."""
        return self._kept().past_of(subscriber, after)

    def acknowledge(self, subscriber: Id, seq: int) -> None:
        """The subscriber has everything up to this message; `replay` goes on behind it."""
        self._kept().store.cursors.advance(self._kept().tenant, subscriber, seq)

    def _position(self, subscriber: Id | None, after: int | None, since: float | None) -> int:
        keeper = self._kept()
        if after is not None and since is not None:
            raise StoreError("after and since given; one of them needed")
        if since is not None:
            return keeper.store.log.seq_before(since)
        if after is None and subscriber is not None:
            after = keeper.store.cursors.get(keeper.tenant, subscriber)
        return max(after or 0, keeper.store.log.first_seq - 1)

    def _deliveries(self, chunk: Chunk) -> Iterator[Delivery]:
        for found in chunk.found:
            for valid in found.wanted:
                yield self._delivery(valid.wish, found.message, found.seq)

    def _delivery(self, wish: Subscription, message: Message, seq: int | None) -> Delivery:
        return Delivery(wish.id, wish.receiver, message, "match", seq, None, wish, self.space)
