"""What a hub hands out, and the ids that it does not know."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearcast.errors import NearcastError
from nearcast.explain import Explanation, explain
from nearcast.geo import Space, earth
from nearcast.model import Id, Message, Subscription


class UnknownSubscriptionError(NearcastError):
    """A subscription id that nobody holds."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message for one subscription (`match`), or into or out of a ranking or the current messages of a moving
    subscription (`enter`, `leave`).

    `why` is worked out when it is asked for; a ranking has scores instead, and what leaves has no reason.
    """

    subscription: Id
    subscriber: Id
    message: Message
    operation: str = "match"
    seq: int | None = None  # number of the message in the log; None without a store
    score: float | None = None  # of a ranking
    _wish: Subscription | None = field(default=None, repr=False, compare=False)
    _space: Space = field(default=earth, repr=False, compare=False)

    @property
    def why(self) -> Explanation:
        if self._wish is None and self.score is not None:
            raise NearcastError(f"a delivery of operation {self.operation!r} has a score ({self.score}), no reason")
        if self._wish is None:
            raise NearcastError(f"a delivery of operation {self.operation!r} has no reason: it is not wanted any more")
        return explain(self._wish, self.message, self._space)
