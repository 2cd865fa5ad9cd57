"""Subscriptions of a file, batch by batch, as one set of columns; and when each of them ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import Pairs, SubscriptionColumns
from nearcast.columns.parts import join_columns
from nearcast.errors import RowError
from nearcast.geo import Space, earth
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Subscription


class Wishes:
    """Takes subscriptions in batches, whose values can be forgotten. Number i gets slot i of a fresh index."""

    def __init__(self, lexicon: Lexicon, space: Space = earth) -> None:
        self.ids: list[Id] = []
        self._lexicon = lexicon
        self._space = space
        self._parts: list[SubscriptionColumns] = []
        self._lines: dict[str, int] = {}
        self._expires: list[float] = []
        self._most: list[float] = []

    def claim(self, identity: Id, line: int) -> None:
        """Ids are unique as a file shows them: the number 1 and the text "1" are the same."""
        first = self._lines.setdefault(str(identity), line)
        if first != line:
            raise RowError(f"id: {identity!r} given; the subscription of line {first} has it already")

    def add(self, subscriptions: Sequence[Subscription]) -> None:
        for wish in subscriptions:
            self.ids.append(wish.id)
            self._expires.append(np.inf if wish.expires is None else wish.expires)
            self._most.append(np.inf if wish.max_events is None else wish.max_events)
        self._parts.append(SubscriptionColumns.from_values(subscriptions, self._lexicon, space=self._space))

    def columns(self) -> SubscriptionColumns:
        """All of them at once, so that an index can be built in bulk."""
        if not self._parts:
            self.add([])
        return self._parts[0] if len(self._parts) == 1 else join_columns(self._parts, self._space)

    def endings(self) -> Endings:
        return Endings(np.array(self._expires), np.array(self._most))


class Endings:
    """Subscriptions that end, at a time or after a number of events: the hub's rules, for arrays."""

    def __init__(self, expires: NDArray[np.float64], most: NDArray[np.float64]) -> None:
        self._expires = expires  # [slot]  seconds since 1970; inf: never
        self._left = most.copy()  # [slot]  events still allowed
        self._some_end = bool(np.isfinite(expires).any() or np.isfinite(most).any())

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """By slot: `expires` and `most`, inf where a subscription has none."""
        return {"expires": self._expires, "most": self._left.copy()}

    def apply(self, pairs: Pairs, times: Sequence[float | None]) -> Pairs:
        """The pairs of the next batch that are still wanted; a message without a time is before every end."""
        if not self._some_end:
            return pairs
        ts = np.array([-np.inf if time is None else time for time in times])
        message, slot = pairs.by_message()
        in_time = ts[message] < self._expires[slot]
        message, slot = message[in_time], slot[in_time]
        kept = np.flatnonzero(_rank(slot) < self._left[slot])
        np.subtract.at(self._left, slot[kept], 1)
        return Pairs(message[kept], slot[kept])


def _rank(slot: NDArray[np.int32]) -> NDArray[np.int64]:
    """[n] how many times the same slot stands before each place."""
    order = np.argsort(slot, kind="stable")
    starts = np.flatnonzero(np.diff(slot[order], prepend=-1))
    rank = np.empty(len(slot), dtype=np.int64)
    rank[order] = np.arange(len(slot)) - np.repeat(starts, np.diff(starts, append=len(slot)))
    return rank
