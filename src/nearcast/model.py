"""Values: what a message and a subscription are, before they become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearcast.expression import Expression
from nearcast.geo import Box, Region
from nearcast.text import Token

Id = str | int


@dataclass(frozen=True, slots=True)
class Message:
    """Words at a place. `ts` is event time in seconds since 1970 (UTC); nothing reads a clock.

    `ttl` is for moving subscriptions: at ts + ttl the message has ended.
    """

    id: Id
    tokens: Sequence[Token]
    place: Box
    ts: float | None = None
    text: str | None = None
    payload: Mapping[str, Any] | None = field(default=None, compare=False)
    ttl: float | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing wish: an expression that must be true in a region that must be touched."""

    id: Id
    expression: Expression
    region: Region
    subscriber: Id | None = None
    expires: float | None = None
    max_events: int | None = None

    @property
    def receiver(self) -> Id:
        """The subscriber; a subscription without one stands for itself."""
        return self.id if self.subscriber is None else self.subscriber

    def has_expired(self, ts: float | None) -> bool:
        """Whether a message of this event time comes too late."""
        return self.expires is not None and ts is not None and ts >= self.expires


@dataclass(frozen=True, slots=True)
class Move:
    """From `ts` on, the region of a moving subscription is another."""

    id: Id
    ts: float
    region: Region


MAX_K = 10_000
"""Results that one wish may ask for."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The k best recent messages about these words near this point; alpha weighs place against words.

    A word that is written twice weighs twice.
    """

    id: Id
    words: tuple[str, ...]
    x: float
    y: float
    k: int
    alpha: float
    subscriber: Id | None = None

    @property
    def receiver(self) -> Id:
        """The subscriber; a wish without one stands for itself."""
        return self.id if self.subscriber is None else self.subscriber
