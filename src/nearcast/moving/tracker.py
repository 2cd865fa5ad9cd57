"""Moving subscriptions of values: regions that move and messages in, what came and what went out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from nearcast import moving
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import NearcastError
from nearcast.geo import Box, Region, Space, earth
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Message, Subscription
from nearcast.moving.base import Mover
from nearcast.moving.changes import Changes
from nearcast.moving.report import MoveReport


class UnknownFollowerError(NearcastError):
    """A moving subscription that nobody holds."""


@dataclass(frozen=True, slots=True)
class MoveChange:
    """A message came to a subscription, or went. `number` is its place in the batch that it came with, else None."""

    subscription: Subscription
    entered: bool
    message: Message
    number: int | None


class Tracker:
    """A mover with the ids and texts of its subscriptions and messages.

    A message lives for its `ttl`, else for `seconds`, from its `ts` on; of all messages only the last `count` live.
    """

    def __init__(self, mover: Mover, *, seconds: float | None = None) -> None:
        self._mover, self._seconds = mover, seconds
        self._lexicon = Lexicon()
        self._slots: dict[Id, int] = {}
        self._wishes: dict[int, Subscription] = {}  # by slot
        self._of: dict[Id, dict[Id, None]] = {}  # ids by subscriber, in order
        self._messages: dict[int, Message] = {}  # by number
        self._arrived = 0
        self._logged: dict[int, int] = {}  # by number of a live message: its number in the log
        self._moved: set[Id] = set()

    @classmethod
    def create(
        cls, space: Space = earth, *, count: int | None = None, seconds: float | None = None, mover: str | None = None
    ) -> Tracker:
        return cls(moving.create(mover or moving.DEFAULT, space, most=count), seconds=seconds)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, subscription: Id) -> bool:
        return subscription in self._slots

    @property
    def now(self) -> float:
        return self._mover.now

    def subscription(self, subscription: Id) -> Subscription:
        return self._wishes[self._slot(subscription)]

    def subscriptions(self, most: int | None = None) -> list[Subscription]:
        """All, or the first so many."""
        return [self._wishes[slot] for slot in islice(self._slots.values(), most)]

    def subscriptions_of(self, subscriber: Id) -> list[Subscription]:
        return [self.subscription(identity) for identity in self._of.get(subscriber, ())]

    @property
    def arrived(self) -> int:
        """Messages so far."""
        return self._arrived

    @property
    def oldest_seq(self) -> int | None:
        """Number in the log of the oldest live message; None: there is none."""
        return next(iter(self._logged.values()), None)

    def take_moved(self) -> list[Subscription]:
        """Those who moved since this was asked last, as they are now."""
        moved, self._moved = self._moved, set()
        return [self.subscription(one) for one in moved]

    # -- subscriptions ------------------------------------------------------------------------------

    def follow(self, wishes: Sequence[Subscription]) -> None:
        """Take subscriptions in, all or none; ask `current` for what they have already."""
        self.check_new(wishes)
        slots = self._mover.follow(self._columns(wishes))
        for wish, slot in zip(wishes, slots.tolist(), strict=True):
            self._slots[wish.id], self._wishes[slot] = slot, wish
            self._of.setdefault(wish.receiver, {})[wish.id] = None

    def check_new(self, wishes: Sequence[Subscription]) -> None:
        """Raise if one of them cannot be taken in."""
        ids = [wish.id for wish in wishes]
        known = [identity for identity in ids if identity in self._slots]
        if known or len(set(ids)) < len(ids):
            which = known[0] if known else next(identity for identity in ids if ids.count(identity) > 1)
            raise NearcastError(f"moving subscription {which!r} {'exists' if known else 'is given twice'}")

    def unfollow(self, subscription: Id) -> None:
        slot = self._slot(subscription)
        self._mover.unfollow([slot])
        receiver = self._wishes[slot].receiver
        self._moved.discard(subscription)
        del self._slots[subscription], self._wishes[slot], self._of[receiver][subscription]
        if not self._of[receiver]:
            del self._of[receiver]

    def move(self, regions: Mapping[Id, Region]) -> list[MoveChange]:
        """Each subscription to its new region; what changes for it. All or none, as one step."""
        checked = {self._slot(identity): self._mover.space.check_region(region) for identity, region in regions.items()}
        boxes = {slot: box for slot, region in checked.items() if (box := self._box_to_box(slot, region)) is not None}
        others = [slot for slot in checked if slot not in boxes]
        moved = {slot: replace(self._wishes[slot], region=region) for slot, region in checked.items()}
        self._wishes |= moved
        self._moved |= regions.keys()
        sides = np.array([(b.west, b.south, b.east, b.north) for b in boxes.values()], np.float64).reshape(-1, 4)
        changes = [self._mover.move(list(boxes), sides)] if boxes else []
        if others:
            changes.append(self._mover.exchange(others, self._columns([moved[slot] for slot in others])))
        return self._told(Changes.joined(changes))

    def current(self, subscription: Id) -> list[Message]:
        """The live messages of a subscription where it is now, in the order in which they came."""
        return [self._messages[seq] for seq in self._mover.current(self._slot(subscription)).tolist()]

    def _box_to_box(self, slot: int, region: Region) -> Box | None:
        """The new region, where both it and the old one are one box: then words need not be looked at."""
        space = self._mover.space
        for each in (self._wishes[slot].region, region):
            if not isinstance(each, Box) or len(space.region_boxes(each)) > 1:
                return None
        return space.region_boxes(region)[0]

    def _columns(self, wishes: Sequence[Subscription]) -> SubscriptionColumns:
        return SubscriptionColumns.from_values(wishes, self._lexicon, space=self._mover.space)

    # -- messages -----------------------------------------------------------------------------------

    def check(self, messages: Iterable[Message]) -> None:
        """Raise if a message has an end but no beginning."""
        for message in messages:
            if message.ts is None and (message.ttl is not None or self._seconds is not None):
                life = "a time to live" if message.ttl is not None else "a window of seconds"
                raise NearcastError(f"message {message.id!r} has no ts; {life} needs the time of the message")

    def arrive(self, messages: Sequence[Message], seqs: Iterable[int] = ()) -> list[MoveChange]:
        """Messages as one step, at the latest of their times; those that have ended by then are counted as late.

        `seqs`: their numbers in the log.
        """
        self.check(messages)
        for message in messages:
            self._lexicon.intern_all([token.word for token in message.tokens])  # a later wish may ask for them
        now = max((m.ts for m in messages if m.ts is not None), default=self.now)
        batch = MessageBatch.from_values(messages, self._lexicon, space=self._mover.space)
        first, self._arrived = self._arrived, self._arrived + len(messages)
        self._messages |= dict(enumerate(messages, first))
        self._logged |= dict(enumerate(seqs, first))
        ends = np.array([self._end(message) for message in messages], np.float64)
        changes = self._mover.arrive(batch, ends, max(now, self.now, NO_TIME))
        return self._told(changes, first)

    def advance(self, now: float) -> list[MoveChange]:
        """Time passes: messages that end go."""
        return self._told(self._mover.advance(now))

    def _end(self, message: Message) -> float:
        life = self._seconds if message.ttl is None else message.ttl
        return math.inf if life is None or message.ts is None else message.ts + life

    def report(self) -> MoveReport:
        return self._mover.report()

    def _told(self, changes: Changes, first: int | None = None) -> list[MoveChange]:
        told = [
            MoveChange(self._wishes[slot], entered, self._messages[seq], None if first is None else seq - first)
            for slot, seq, entered in zip(*(column.tolist() for column in changes), strict=True)
        ]
        for seq in self._mover.take_gone().tolist():
            del self._messages[seq]
            self._logged.pop(seq, None)
        if first is None:
            return told
        told.sort(key=lambda change: (change.entered, change.number))
        return [change if change.entered else replace(change, number=None) for change in told]

    def _slot(self, subscription: Id) -> int:
        if subscription not in self._slots:
            raise UnknownFollowerError(
                f"moving subscription {subscription!r} given; no such one of {len(self)} is held"
            )
        return self._slots[subscription]


NO_TIME = -1e300
"""Where no message had a time yet: before every time."""
