"""What match, move and rank mean, in plain Python. Slow and obvious on purpose: every index must agree.

Nothing here is used at run time; the laws compare everything else with it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nearcast.geo import Region, Space, earth
from nearcast.model import Id, Message, Subscription, Wish

# -- match ------------------------------------------------------------------------------------------


def matches(subscription: Subscription, message: Message, space: Space = earth) -> bool:
    """The region touches the place and some clause is true of the words."""
    return space.intersects(subscription.region, message.place) and subscription.expression.accepts(message.tokens)


def match(
    subscriptions: Sequence[Subscription], messages: Sequence[Message], space: Space = earth
) -> set[tuple[int, int]]:
    """All (message number, subscription number) that match."""
    return {
        (m, s)
        for m, message in enumerate(messages)
        for s, subscription in enumerate(subscriptions)
        if matches(subscription, message, space)
    }


# -- move -------------------------------------------------------------------------------------------

Change = tuple[Id, str, Id]
"""(subscription, "+" or "-", message)"""


class Current:
    """Who holds which live message now; every step returns what changed.

    A message lives from its arrival until `expires`, which is excluded: at that moment it is gone. With `most`,
    only the last so many that arrived live at all. A message that arrives after its end never comes.
    """

    def __init__(self, space: Space = earth, *, most: int | None = None) -> None:
        self._space = space
        self._most = most
        self._arrived: list[Id] = []
        self.late = 0
        self._subscriptions: dict[Id, Subscription] = {}
        self._messages: dict[Id, tuple[Message, float]] = {}
        self._held: set[tuple[Id, Id]] = set()

    def current(self, subscription: Id) -> set[Id]:
        return {m for s, m in self._held if s == subscription}

    def subscribe(self, subscription: Subscription) -> set[Change]:
        self._subscriptions[subscription.id] = subscription
        return self._changes()

    def unsubscribe(self, subscription: Id) -> set[Change]:
        del self._subscriptions[subscription]
        return self._changes()

    def move(self, regions: Mapping[Id, Region]) -> set[Change]:
        """Each of these subscriptions to its new region, all at once."""
        for subscription, region in regions.items():
            before = self._subscriptions[subscription]
            self._subscriptions[subscription] = Subscription(before.id, before.expression, region, before.subscriber)
        return self._changes()

    def arrive(self, messages: Iterable[tuple[Message, float]], now: float) -> set[Change]:
        """Messages with their ends, all at `now`."""
        for message, expires in messages:
            self._arrived.append(message.id)
            self._messages[message.id] = (message, expires)
            self.late += expires <= now
        return self.advance(now)

    def advance(self, now: float) -> set[Change]:
        newest = set(self._arrived if self._most is None else self._arrived[-self._most :])
        self._messages = {m: kept for m, kept in self._messages.items() if kept[1] > now and m in newest}
        return self._changes()

    def _changes(self) -> set[Change]:
        held = {
            (s.id, message.id)
            for s in self._subscriptions.values()
            for message, _ in self._messages.values()
            if matches(s, message, self._space)
        }
        entered = {(s, "+", m) for s, m in held - self._held}
        left = {(s, "-", m) for s, m in self._held - held}
        self._held = held
        return entered | left


# -- rank -------------------------------------------------------------------------------------------


def unit_vector(words: Iterable[str], idf: Mapping[str, float]) -> dict[str, float]:
    """tf-idf weights of length one. A word that the recorded lexicon lacks weighs nothing."""
    weights = {word: n * idf.get(word, 0.0) for word, n in sorted(Counter(words).items())}
    total = 0.0
    for weight in weights.values():  # one after the other, in the order of words: no other sum has the same bits
        total += weight * weight
    length = math.sqrt(total)
    return {word: weight / length for word, weight in weights.items() if weight > 0}


def score(wish: Wish, message: Message, idf: Mapping[str, float], space: Space = earth) -> float | None:
    """alpha * proximity + (1 - alpha) * cosine; None when no word is shared."""
    words = [token.word for token in message.tokens]
    if not set(wish.words) & set(words):
        return None
    distance = min(space.distance_to_box(wish.x, wish.y, part) for part in space.place_boxes(message.place))
    proximity = max(0.0, 1.0 - distance / space.max_distance)
    wanted, given = unit_vector(wish.words, idf), unit_vector(words, idf)
    cosine = 0.0
    for word, weight in wanted.items():
        cosine += weight * given.get(word, 0.0)
    return wish.alpha * proximity + (1.0 - wish.alpha) * cosine


class Rankings:
    """The k best of the window for every wish, from scratch after every step.

    The window is the last `count` messages, or those with ts > now - `seconds`. Of equal scores the message that
    arrived later comes first. In a time window a message that is older than one before it is late, and dropped.
    """

    def __init__(
        self,
        idf: Mapping[str, float],
        space: Space = earth,
        *,
        count: int | None = None,
        seconds: float | None = None,
    ) -> None:
        if (count is None) == (seconds is None):
            raise ValueError("either count or seconds needed")
        self._idf, self._space, self._count, self._seconds = idf, space, count, seconds
        self._wishes: dict[Id, Wish] = {}
        self._window: list[Message] = []
        self._now = -math.inf
        self.late = 0
        self._best: dict[Id, list[Id]] = {}

    def rank(self, wish: Wish) -> None:
        self._wishes[wish.id] = wish
        self._best[wish.id] = self._ranking(wish)

    def unrank(self, wish: Id) -> None:
        del self._wishes[wish], self._best[wish]

    def ranking(self, wish: Id) -> list[Id]:
        return self._best[wish]

    def arrive(self, message: Message) -> set[tuple[Id, str, Id]]:
        """Message into the window; (wish, "entered" or "left", message) changes."""
        if self._seconds is not None and message.ts is not None and message.ts < self._now:
            self.late += 1
            return set()
        self._window.append(message)
        return self.advance(self._now if message.ts is None else message.ts)

    def advance(self, now: float) -> set[tuple[Id, str, Id]]:
        self._now = max(self._now, now)
        self._window = [m for i, m in enumerate(self._window) if self._stays(i, m)]
        before, self._best = self._best, {w: self._ranking(wish) for w, wish in self._wishes.items()}
        changes: set[tuple[Id, str, Id]] = set()
        for w, best in self._best.items():
            changes |= {(w, "entered", m) for m in set(best) - set(before[w])}
            changes |= {(w, "left", m) for m in set(before[w]) - set(best)}
        return changes

    def _stays(self, place: int, message: Message) -> bool:
        if self._count is not None:
            return place >= len(self._window) - self._count
        assert self._seconds is not None
        return message.ts is not None and message.ts > self._now - self._seconds

    def _ranking(self, wish: Wish) -> list[Id]:
        scored = [
            (value, place, message.id)
            for place, message in enumerate(self._window)
            if (value := score(wish, message, self._idf, self._space)) is not None
        ]
        return [identity for _, _, identity in sorted(scored, reverse=True)[: wish.k]]
