"""Moving subscriptions in the store: who follows what, and where each was last written down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nearcast.model import Id, Subscription
from nearcast.store.codec import id_of, key_of, subscription_bytes, subscription_from
from nearcast.store.database import Database
from nearcast.text import Analyzer


class Followers:
    """Those that are live; an ended one leaves nothing behind."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last = database.rows("SELECT max(number) FROM followers")[0][0] or 0

    def begin(self, tenant: str, wishes: Sequence[Subscription], analysis: Analyzer) -> None:
        """All or none."""
        rows = [
            (number, tenant, key_of(wish.id), key_of(wish.receiver), subscription_bytes(wish, analysis))
            for number, wish in enumerate(wishes, self._last + 1)
        ]
        with self._database.transaction() as change:
            change.bulk("followers", ("number", "tenant", "id", "subscriber", "body"), rows)
        self._last += len(rows)

    def moved(self, tenant: str, wishes: Iterable[Subscription], analysis: Analyzer) -> None:
        """Where each of these is now."""
        rows = [(subscription_bytes(wish, analysis), tenant, key_of(wish.id)) for wish in wishes]
        with self._database.transaction() as change:
            change.many("UPDATE followers SET body = ? WHERE tenant = ? AND id = ?", rows)

    def end(self, tenant: str, ids: Iterable[Id]) -> None:
        with self._database.transaction() as change:
            change.many("DELETE FROM followers WHERE tenant = ? AND id = ?", [(tenant, key_of(one)) for one in ids])

    def live(self, tenant: str, analysis: Analyzer) -> list[Subscription]:
        """In the order in which they came."""
        found = self._database.rows(
            "SELECT id, subscriber, body FROM followers WHERE tenant = ? ORDER BY number", (tenant,)
        )
        return [subscription_from(id_of(one), id_of(who), bytes(body), analysis) for one, who, body in found]
