"""Who may do what (keys, as digests only), and where deliveries are posted to."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import NamedTuple

from nearcast.model import Id
from nearcast.store.codec import id_of, key_of
from nearcast.store.database import Database, Transaction

PREFIX = "nck_"


class ApiKey(NamedTuple):
    """What a key allows. The key itself is known to its holder alone."""

    digest: str
    tenant: str
    name: str
    scopes: frozenset[str]
    quotas: Mapping[str, int]
    created: float


class ApiKeys:
    """A key has 256 random bits, so that its plain SHA-256 cannot be guessed back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, tenant: str, name: str, scopes: frozenset[str], quotas: Mapping[str, int], created: float) -> str:
        """A new key. It is shown once, here; the store keeps its digest."""
        key = PREFIX + secrets.token_urlsafe(32)
        row = (digest_of(key), tenant, name, json.dumps(sorted(scopes)), json.dumps(dict(quotas)), created)
        with self._database.transaction() as change:
            change.bulk("api_keys", ("digest", "tenant", "name", "scopes", "quotas", "created"), [row])
        return key

    def find(self, key: str) -> ApiKey | None:
        found = self._database.rows(
            "SELECT digest, tenant, name, scopes, quotas, created FROM api_keys WHERE digest = ?", (digest_of(key),)
        )
        return _api_key(*found[0]) if found else None

    def all(self) -> list[ApiKey]:
        found = self._database.rows(
            "SELECT digest, tenant, name, scopes, quotas, created FROM api_keys ORDER BY tenant, created, digest"
        )
        return [_api_key(*row) for row in found]

    def revoke(self, digest: str) -> bool:
        """Whether there was such a key."""
        with self._database.transaction() as change:
            return change.run("DELETE FROM api_keys WHERE digest = ?", (digest,)) > 0


class Webhook(NamedTuple):
    """An endpoint that gets a subscriber's deliveries. The secret signs them, so it is kept as it is."""

    tenant: str
    id: str
    subscriber: Id
    url: str
    secret: str
    disabled: str | None  # why; None: in use
    created: float


class DeadLetter(NamedTuple):
    """A message that an endpoint did not take. Its event is made again from the log."""

    seq: int
    reason: str  # of the last attempt
    attempts: int
    time: float


class Webhooks:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, webhook: Webhook) -> None:
        """New, or instead of the one with this id."""
        row = (
            *(webhook.tenant, webhook.id, key_of(webhook.subscriber), webhook.url, webhook.secret),
            *(webhook.disabled, webhook.created),
        )
        with self._database.transaction() as change:
            change.run("DELETE FROM webhooks WHERE tenant = ? AND id = ?", (webhook.tenant, webhook.id))
            change.bulk("webhooks", ("tenant", "id", "subscriber", "url", "secret", "disabled", "created"), [row])

    def all(self) -> list[Webhook]:
        found = self._database.rows(
            "SELECT tenant, id, subscriber, url, secret, disabled, created FROM webhooks ORDER BY tenant, created, id"
        )
        return [Webhook(tenant, identity, id_of(subscriber), *rest) for tenant, identity, subscriber, *rest in found]

    def disable(self, tenant: str, identity: str, why: str) -> None:
        with self._database.transaction() as change:
            change.run("UPDATE webhooks SET disabled = ? WHERE tenant = ? AND id = ?", (why, tenant, identity))

    def remove(self, tenant: str, identity: str) -> bool:
        with self._database.transaction() as change:
            change.run("DELETE FROM dead_letters WHERE tenant = ? AND webhook = ?", (tenant, identity))
            return change.run("DELETE FROM webhooks WHERE tenant = ? AND id = ?", (tenant, identity)) > 0

    def put_letter(self, tenant: str, identity: str, letter: DeadLetter) -> None:
        """Once for each message: after a crash the same one may fail again."""
        with self._database.transaction() as change:
            self._forget(change, tenant, identity, letter.seq)
            columns = ("tenant", "webhook", "seq", "reason", "attempts", "time")
            change.bulk("dead_letters", columns, [(tenant, identity, *letter)])

    def dead_letters(self, tenant: str, identity: str) -> list[DeadLetter]:
        found = self._database.rows(
            "SELECT seq, reason, attempts, time FROM dead_letters WHERE tenant = ? AND webhook = ? ORDER BY seq",
            (tenant, identity),
        )
        return [DeadLetter(*row) for row in found]

    def forget_letter(self, tenant: str, identity: str, seq: int) -> None:
        with self._database.transaction() as change:
            self._forget(change, tenant, identity, seq)

    def _forget(self, change: Transaction, tenant: str, identity: str, seq: int) -> None:
        change.run("DELETE FROM dead_letters WHERE tenant = ? AND webhook = ? AND seq = ?", (tenant, identity, seq))


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _api_key(digest: str, tenant: str, name: str, scopes: str, quotas: str, created: float) -> ApiKey:
    return ApiKey(digest, tenant, name, frozenset(json.loads(scopes)), json.loads(quotas), created)
