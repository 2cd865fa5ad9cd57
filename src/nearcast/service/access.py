"""Who asks: keys, scopes, quotas and rates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from nearcast.service.faults import ForbiddenError, TooManyError, UnauthorizedError
from nearcast.store import Store

SCOPES = frozenset({"publish", "subscribe", "read", "admin"})
QUOTAS = frozenset({"subscriptions", "messages_per_second"})


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: str
    scopes: frozenset[str] = SCOPES
    quotas: dict[str, int] = field(default_factory=dict)
    key: str = ""  # digest

    def need(self, scope: str) -> None:
        if scope not in self.scopes and "admin" not in self.scopes:
            raise ForbiddenError(f"this key has {', '.join(sorted(self.scopes)) or 'no scope'}; {scope} needed")

    def room_for(self, more: int, held: int) -> None:
        """Subscriptions beyond the tenant's quota are refused."""
        most = self.quotas.get("subscriptions")
        if most is not None and held + more > most:
            raise TooManyError(f"{held:,} subscriptions held and {more:,} more asked for; at most {most:,} allowed", 60)


class Gate:
    """Lets callers in. Without any key in the store everybody is the tenant without a name and may do all."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._buckets: dict[str, tuple[float, float]] = {}  # by key: messages left, when
        self.is_open = not store.api_keys.all()

    def caller(self, authorization: str | None) -> Caller:
        if self.is_open:
            return Caller("")
        scheme, _, key = (authorization or "").partition(" ")
        found = self._store.api_keys.find(key.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise UnauthorizedError("no known key given; the header Authorization: Bearer KEY needed")
        return Caller(found.tenant, found.scopes, dict(found.quotas), found.digest)

    def spend(self, caller: Caller, messages: int) -> None:
        """Token bucket: a second's worth may come at once; a larger request is let in when the bucket is full."""
        rate = caller.quotas.get("messages_per_second")
        if rate is None:
            return
        now = self._clock()
        left, since = self._buckets.get(caller.key, (float(rate), now))
        left = min(float(rate), left + (now - since) * rate)
        if left < min(messages, rate):
            wait = (min(messages, rate) - left) / rate
            raise TooManyError(f"{messages:,} messages sent; {rate:,} a second allowed", wait)
        self._buckets[caller.key] = left - messages, now
