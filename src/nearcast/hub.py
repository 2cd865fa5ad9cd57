"""`Hub`: subscriptions in, messages in, deliveries out; all in this process, nothing else to start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from nearcast import indexes
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import NearcastError
from nearcast.explain import Explanation, explain
from nearcast.expression import parse
from nearcast.geo import Box, Region, Space, earth, point
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Message, Subscription
from nearcast.records import read_id, read_message
from nearcast.text import analyzer


class UnknownSubscriptionError(NearcastError):
    """A subscription id that nobody holds."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message for one subscription. `why` is worked out when it is asked for."""

    subscription: Id
    subscriber: Id
    message: Message
    operation: str = "match"
    _wish: Subscription | None = field(default=None, repr=False, compare=False)
    _space: Space = field(default=earth, repr=False, compare=False)

    @property
    def why(self) -> Explanation:
        assert self._wish is not None
        return explain(self._wish, self.message, self._space)


@dataclass(slots=True)
class _Held:
    """A subscription in the hub: where it sits, and how many events it may still get."""

    wish: Subscription
    slot: int
    left: float  # events still allowed; inf without a maximum


class Hub:
    """A location-aware publish/subscribe hub in memory.

    One hub has one space and one analyzer. Not thread-safe: give each thread its own, or take turns.
    """

    def __init__(
        self,
        *,
        space: Space = earth,
        analysis: str = "unicode",
        index: str = indexes.DEFAULT,
        **options: Any,
    ) -> None:
        self.space = space
        self.lexicon = Lexicon(analysis)
        self._analyzer = analyzer(analysis)
        self._index = indexes.create(index, **options)
        self._held: dict[Id, _Held] = {}
        self._by_slot: dict[int, _Held] = {}
        self._numbers = count(1)

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
        for identity in known:
            self.unsubscribe(identity)
        for wish, slot in zip(wishes, self._index.insert(columns).tolist(), strict=True):
            held = _Held(wish, slot, np.inf if wish.max_events is None else wish.max_events)
            self._held[wish.id] = self._by_slot[slot] = held

    def unsubscribe(self, subscription: Id) -> None:
        held = self._held.pop(self._known(subscription).wish.id)
        del self._by_slot[held.slot]
        self._index.remove([held.slot])

    def subscription(self, subscription: Id) -> Subscription:
        return self._known(subscription).wish

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
        payload: Mapping[str, Any] | None = None,
    ) -> Message:
        """A checked message of this hub's space and analyzer."""
        place = at if isinstance(at, Box) else point(*at)
        sides = {"west": place.west, "south": place.south, "east": place.east, "north": place.north}
        identity = next(self._numbers) if id is None else id
        read = read_message({"id": identity, "text": text, "ts": ts, **sides}, self.space, self._analyzer)
        return Message(read.id, read.tokens, read.place, read.ts, read.text, payload)

    def publish(
        self,
        text: str,
        at: Box | tuple[float, float],
        *,
        id: Id | None = None,
        ts: float | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> list[Delivery]:
        """Post one message; who gets it."""
        return self.publish_all([self.message(text, at, id=id, ts=ts, payload=payload)])

    def publish_all(self, messages: Iterable[Message]) -> list[Delivery]:
        """Post messages as one batch; deliveries in message order."""
        posted = list(messages)
        batch = MessageBatch.from_values(posted, self.lexicon, space=self.space)
        self.lexicon.count(batch.terms_once(), len(posted))
        pairs = self._index.match(batch).by_message()
        return [
            delivery
            for number, slot in zip(pairs.message.tolist(), pairs.slot.tolist(), strict=True)
            if (delivery := self._deliver(slot, posted[number])) is not None
        ]

    def _deliver(self, slot: int, message: Message) -> Delivery | None:
        """The delivery, unless the subscription has ended (before, or by an earlier message of the batch)."""
        held = self._by_slot.get(slot)
        if held is None or _has_expired(held.wish, message):
            return None
        held.left -= 1
        if held.left <= 0:
            self.unsubscribe(held.wish.id)
        wish = held.wish
        subscriber = wish.id if wish.subscriber is None else wish.subscriber
        return Delivery(wish.id, subscriber, message, "match", wish, self.space)

    # -- questions ----------------------------------------------------------------------------------

    def explain(self, subscription: Id, text: str, at: Box | tuple[float, float]) -> Explanation:
        """Would this text at this place match, and which clause, words and distance decide?"""
        return explain(self._known(subscription).wish, self.message(text, at), self.space)

    def report(self) -> indexes.IndexReport:
        return self._index.report()


def _has_expired(wish: Subscription, message: Message) -> bool:
    return wish.expires is not None and message.ts is not None and message.ts >= wish.expires
