"""Who reads: of all that matches, only what somebody is waiting for need become a delivery at once.

The others find it in the log when they come. A slot is *concerned* if its subscriber reads, or if its wish has an end
(a number of events, a time), because then each match must be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from nearcast.model import Id, Subscription

_READ, _ENDS = np.uint8(1), np.uint8(2)


class Watch:
    """Marks by slot, kept while subscriptions come and go."""

    def __init__(self) -> None:
        self._readers: dict[Id, int] = {}  # how many read, by subscriber
        self._marks = np.zeros(1024, np.uint8)  # by slot

    def __contains__(self, subscriber: Id) -> bool:
        return subscriber in self._readers

    def begin(self, subscriber: Id, slots: Iterable[int]) -> None:
        """One more reads; `slots` are all that the subscriber holds."""
        self._readers[subscriber] = self._readers.get(subscriber, 0) + 1
        for slot in slots:
            self._marks[slot] |= _READ

    def end(self, subscriber: Id, slots: Iterable[int]) -> None:
        """One less reads. Who never began (the store could not tell its slots) need not end."""
        if subscriber not in self._readers:
            return
        self._readers[subscriber] -= 1
        if not self._readers[subscriber]:
            del self._readers[subscriber]
            for slot in slots:
                self._marks[slot] &= ~_READ

    def hold(self, slot: int, wish: Subscription) -> None:
        if slot >= len(self._marks):
            self._marks = np.concatenate((self._marks, np.zeros(max(len(self._marks), slot), np.uint8)))
        ends = _ENDS if wish.max_events is not None or wish.expires is not None else 0
        self._marks[slot] = ends | (_READ if wish.receiver in self._readers else 0)

    def concerned(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        concerned: NDArray[np.bool_] = self._marks[slots] != 0
        return concerned
