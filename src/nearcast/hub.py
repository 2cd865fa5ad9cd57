"""`Hub`: subscriptions in, messages in, deliveries out; all in this process, nothing else to start.

`Hub()` is in memory; `Hub.open(url)` keeps everything in a store and is there again after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, repeat
from typing import Any, NamedTuple, Self

import numpy as np

from nearcast import indexes
from nearcast.columns import Pairs, SubscriptionColumns
from nearcast.columns.encoder import TextEncoder
from nearcast.deliveries import Delivery, UnknownSubscriptionError
from nearcast.errors import NearcastError
from nearcast.explain import Explanation, explain
from nearcast.expression import parse
from nearcast.following import Following
from nearcast.geo import Box, Region, Space, earth, point
from nearcast.keeping.followers import FollowKeeper
from nearcast.keeping.keeper import Keeper
from nearcast.keeping.rankings import RankKeeper
from nearcast.lexicon import Lexicon
from nearcast.lookback import DryRun, LookingBack
from nearcast.model import Id, Message, Subscription
from nearcast.ranking import Window
from nearcast.rankings import Rankings
from nearcast.records import read_id, read_message
from nearcast.store import Store, open_store
from nearcast.store.truth import Ending
from nearcast.text import analyzer
from nearcast.watching import Watch

DEFAULT_WINDOW = Window(count=10_000)

__all__ = ["DEFAULT_WINDOW", "Delivery", "DryRun", "Hub", "UnknownSubscriptionError"]


@dataclass(slots=True)
class _Held:
    """A subscription in the hub: where it sits, and how many events it may still get."""

    wish: Subscription
    slot: int
    left: float  # events still allowed; inf without a maximum
    number: int = 0  # of its registration in the store


class _Limited(NamedTuple):
    """A subscription with a maximum of events: how many it had, and where it ended."""

    spent: int
    to_seq: int | None


class Hub(Following, Rankings, LookingBack):
    """A location-aware publish/subscribe hub.

    One hub has one space and one analyzer. Not thread-safe: give each thread its own, or take turns.
    """

    _owns_store = False

    def __init__(
        self,
        *,
        space: Space = earth,
        analysis: str = "unicode",
        index: str = indexes.DEFAULT,
        window: Window = DEFAULT_WINDOW,
        recorded: Lexicon | None = None,
        **options: Any,
    ) -> None:
        """`window` is what rankings choose from, and where messages live for moving subscriptions; `recorded` says how
        much each word weighs in rankings."""
        self.space = space
        self._window, self._recorded = window, recorded
        self.lexicon = Lexicon(analysis)
        self._analyzer = analyzer(analysis)
        self._encoder = TextEncoder(self.lexicon, space)
        self._index = indexes.create(index, **options)
        self._held: dict[Id, _Held] = {}
        self._by_slot: dict[int, _Held] = {}
        self._watch = Watch()
        self._numbers = count(1)

    @classmethod
    def open(
        cls,
        url: str | Store,
        *,
        tenant: str = "",
        space: Space | None = None,
        analysis: str | None = None,
        index: str = indexes.DEFAULT,
        clock: Callable[[], float] = time.time,
        **options: Any,
    ) -> Self:
        """A hub that keeps everything: `sqlite:///path`, `postgresql://…` or `memory:`.

        Space and analyzer are recorded when the store is made. `clock` gives the times at which messages are
        accepted. Close it, or use it as a context manager: then the next opening is quick.
        """
        store = open_store(url) if isinstance(url, str) else url
        try:
            keeper = Keeper(store, tenant, space, analysis, clock)
            hub = cls(space=keeper.space, analysis=keeper.analysis, index=index, **options)
            hub._owns_store = isinstance(url, str)
            hub._restore(keeper)
        except BaseException:
            if isinstance(url, str):
                store.close()
            raise
        return hub

    def _restore(self, keeper: Keeper) -> None:
        self._keeper, self.lexicon = keeper, keeper.lexicon()
        self._encoder = TextEncoder(self.lexicon, self.space)
        self._index, restored = keeper.restore(self.lexicon, self._index)
        for wish, slot, number, spent in restored:
            self._hold(wish, slot, number, spent)
        self._restore_rankings(keeper)
        self._restore_followers(keeper)
        self._numbers = count(keeper.store.subscriptions.last + keeper.store.wishes.last + keeper.next_seq)

    def checkpoint(self) -> None:
        """Write lexicon and index beside the store, so that opening need not build them."""
        self._kept().save(self._index, self.lexicon, {slot: held.number for slot, held in self._by_slot.items()})
        if self._board is not None:
            RankKeeper(self._kept()).note(self._board)
        if self._tracker is not None:
            FollowKeeper(self._kept()).note(self._tracker)

    def close(self) -> None:
        """Write a checkpoint and close the store. What was published and subscribed is safe without it."""
        if self._keeper is not None:
            self.checkpoint()
            if self._owns_store:
                self._keeper.store.close()
            self._keeper = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, subscription: Id) -> bool:
        return subscription in self._held

    # -- subscriptions ------------------------------------------------------------------------------

    def subscribe(
        self,
        subscriber: Id,
        expression: str,
        within: Region,
        *,
        id: Id | None = None,
        expires: float | None = None,
        max_events: int | None = None,
        replace: bool = False,
    ) -> Id:
        """Leave a standing wish; its id (`subscriber/1`, … unless given).

        `expires` is event time: messages with a later or equal ts are not delivered. With `replace` a
        subscription of the same id is exchanged, otherwise that is an error.
        """
        identity = f"{subscriber}/{next(self._numbers)}" if id is None else read_id({"id": id})
        wish = Subscription(
            identity,
            parse(expression, self._analyzer),
            self.space.check_region(within),
            read_id({"subscriber": subscriber}, "subscriber"),
            expires,
            max_events,
        )
        self.subscribe_all([wish], replace=replace)
        return identity

    def subscribe_all(self, wishes: Sequence[Subscription], *, replace: bool = False) -> None:
        """Many at once, much faster than one by one. All or nothing: on an error none is taken."""
        known = [wish.id for wish in wishes if wish.id in self._held]
        if known and not replace:
            raise NearcastError(f"subscription {known[0]!r} exists; give replace=True to exchange it")
        if len({wish.id for wish in wishes}) < len(wishes):
            raise NearcastError("the same subscription id is given twice")
        columns = SubscriptionColumns.from_values(wishes, self.lexicon, space=self.space)
        numbers: Iterable[int] = repeat(0, len(wishes))
        if self._keeper is not None:
            numbers = self._keeper.begin(wishes, [self._held[identity].number for identity in known])
        for identity in known:
            self._forget(self._held[identity])
        for wish, slot, number in zip(wishes, self._index.insert(columns).tolist(), numbers, strict=True):
            self._hold(wish, slot, number)

    def unsubscribe(self, subscription: Id) -> None:
        held = self._known(subscription)
        if self._keeper is not None:
            self._keeper.end(held.number)
        self._forget(held)

    def _hold(self, wish: Subscription, slot: int, number: int, spent: int = 0) -> None:
        held = _Held(wish, slot, np.inf if wish.max_events is None else wish.max_events - spent, number)
        self._held[wish.id] = self._by_slot[slot] = held
        self._watch.hold(slot, wish)

    def _forget(self, held: _Held) -> None:
        del self._held[held.wish.id], self._by_slot[held.slot]
        self._index.remove([held.slot])

    def subscription(self, subscription: Id) -> Subscription:
        return self._known(subscription).wish

    def subscriptions(self) -> list[Subscription]:
        return [held.wish for held in self._held.values()]

    def subscriptions_of(self, subscriber: Id) -> list[Subscription]:
        """Those of one subscriber. With a store it is asked; in memory all are looked at."""
        if self._keeper is None:
            return [wish for wish in self.subscriptions() if wish.receiver == subscriber]
        kept = self._keeper.store.subscriptions.of(self._keeper.tenant, subscriber, self.last_seq)
        return [self._held[row.id].wish for row in kept if row.to_seq is None]

    def _known(self, subscription: Id) -> _Held:
        if subscription not in self._held:
            raise UnknownSubscriptionError(f"subscription {subscription!r} given; no such one of {len(self)} is held")
        return self._held[subscription]

    # -- messages -----------------------------------------------------------------------------------

    def message(
        self,
        text: str,
        at: Box | tuple[float, float],
        *,
        id: Id | None = None,
        ts: float | None = None,
        ttl: float | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> Message:
        """A checked message of this hub's space and analyzer."""
        place = at if isinstance(at, Box) else point(*at)
        sides = {"west": place.west, "south": place.south, "east": place.east, "north": place.north}
        identity = next(self._numbers) if id is None else id
        read = read_message({"id": identity, "text": text, "ts": ts, "ttl": ttl, **sides}, self.space, self._analyzer)
        return replace(read, payload=payload)

    def publish(
        self,
        text: str,
        at: Box | tuple[float, float],
        *,
        id: Id | None = None,
        ts: float | None = None,
        ttl: float | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> list[Delivery]:
        """Post one message; who gets it. `ttl`: how many seconds from its ts it lives for moving subscriptions."""
        return self.publish_all([self.message(text, at, id=id, ts=ts, ttl=ttl, payload=payload)])

    def publish_all(self, messages: Iterable[Message]) -> list[Delivery]:
        """Post messages as one batch; deliveries in message order. With a store: logged first, in one transaction."""
        posted = list(messages)
        if self._board is not None:
            self._board.check(posted)
        if self._tracker is not None:
            self._tracker.check(posted)
        return self.deliver(posted, None if self._keeper is None else self._keeper.append(posted))

    def deliver(self, posted: Sequence[Message], first_seq: int | None) -> list[Delivery]:
        """Match messages that are in the log already, the first of them as `first_seq`."""
        deliveries = self._matched(posted, self._pairs(posted).by_message(), first_seq)
        return deliveries + self._changed(posted, first_seq)

    def deliver_watched(self, posted: Sequence[Message], first_seq: int) -> tuple[list[Delivery], int]:
        """The same, but only the deliveries of subscribers that are watched, and how many there are for all."""
        pairs = self._pairs(posted)
        concerned = self._watch.concerned(pairs.slot)
        few = Pairs(pairs.message[concerned], pairs.slot[concerned]).by_message()
        deliveries = self._matched(posted, few, first_seq) + self._changed(posted, first_seq)
        total = len(pairs.slot) - len(few.slot) + len(deliveries)
        return [delivery for delivery in deliveries if delivery.subscriber in self._watch], total

    def watch(self, subscriber: Id) -> None:
        """Somebody reads what this subscriber gets; `unwatch` as often."""
        self._watch.begin(subscriber, self._slots_of(subscriber))

    def unwatch(self, subscriber: Id) -> None:
        self._watch.end(subscriber, self._slots_of(subscriber))

    def _slots_of(self, subscriber: Id) -> list[int]:
        return [self._held[wish.id].slot for wish in self.subscriptions_of(subscriber)]

    def _pairs(self, posted: Sequence[Message]) -> Pairs:
        batch = self._encoder.from_values(posted)
        self.lexicon.count(batch.terms_once(), len(posted))
        return self._index.match(batch)

    def _matched(self, posted: Sequence[Message], pairs: Pairs, first_seq: int | None) -> list[Delivery]:
        limited: dict[int, _Limited] = {}
        deliveries = []
        for number, slot in zip(pairs.message.tolist(), pairs.slot.tolist(), strict=True):
            seq = None if first_seq is None else first_seq + number
            held = self._by_slot.get(slot)  # None: ended by an earlier message of the batch
            if held is not None and not held.wish.has_expired(posted[number].ts):
                deliveries.append(self._delivery(held.wish, posted[number], seq))
                if held.wish.max_events is not None:
                    limited[held.number] = self._count_event(held, seq)
        if limited and self._keeper is not None and first_seq is not None:
            spent = {number: event.spent for number, event in limited.items()}
            endings = [Ending(number, event.to_seq) for number, event in limited.items() if event.to_seq]
            self._keeper.count_events(spent, endings, first_seq + len(posted) - 1)
        return deliveries

    def _changed(self, posted: Sequence[Message], first_seq: int | None) -> list[Delivery]:
        """What enters and leaves rankings and followers."""
        deliveries = []
        if self._board is not None:
            deliveries += self._ranked(self._board.arrive(posted, first_seq), first_seq)
        if self._tracker is not None:
            seqs = None if first_seq is None else (first_seq, first_seq + len(posted) - 1)
            logged = () if seqs is None else range(seqs[0], seqs[1] + 1)
            deliveries += self._followed(self._tracker.arrive(posted, logged), seqs)
        return deliveries

    def advance(self, now: float) -> list[Delivery]:
        """Time passes without a message: what a window of seconds loses leaves the rankings, and messages that end
        leave moving subscriptions."""
        ranked = [] if self._board is None else self._ranked(self._board.advance(now), None)
        return ranked if self._tracker is None else ranked + self._followed(self._tracker.advance(now), None)

    def _count_event(self, held: _Held, seq: int | None) -> _Limited:
        """One event less; the last one ends the subscription."""
        held.left -= 1
        if held.left <= 0:
            self._forget(held)
        spent = (held.wish.max_events or 0) - int(held.left)
        return _Limited(spent, None if held.left > 0 or seq is None else seq + 1)

    # -- questions ----------------------------------------------------------------------------------

    def explain(self, subscription: Id, text: str, at: Box | tuple[float, float]) -> Explanation:
        """Would this text at this place match, and which clause, words and distance decide?"""
        return self.explain_message(subscription, self.message(text, at))

    def explain_message(self, subscription: Id, message: Message) -> Explanation:
        return explain(self._known(subscription).wish, message, self.space)

    def report(self) -> indexes.IndexReport:
        return self._index.report()
