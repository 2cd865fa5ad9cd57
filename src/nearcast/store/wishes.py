"""Rankings in the store: who wants the best of what. Their window comes back from the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nearcast.model import Id, Wish
from nearcast.store.codec import id_of, key_of, wish_bytes, wish_from
from nearcast.store.database import Database


class Wishes:
    """Those that are live; an ended one leaves nothing behind."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.last = database.rows("SELECT max(number) FROM wishes")[0][0] or 0

    def begin(self, tenant: str, wishes: Sequence[Wish]) -> None:
        """All or none."""
        rows = [
            (number, tenant, key_of(wish.id), wish_bytes(wish)) for number, wish in enumerate(wishes, self.last + 1)
        ]
        with self._database.transaction() as change:
            change.bulk("wishes", ("number", "tenant", "id", "body"), rows)
        self.last += len(rows)

    def end(self, tenant: str, ids: Iterable[Id]) -> None:
        with self._database.transaction() as change:
            change.many("DELETE FROM wishes WHERE tenant = ? AND id = ?", [(tenant, key_of(one)) for one in ids])

    def live(self, tenant: str) -> list[Wish]:
        """In the order in which they came."""
        found = self._database.rows("SELECT id, body FROM wishes WHERE tenant = ? ORDER BY number", (tenant,))
        return [wish_from(id_of(identity), bytes(body)) for identity, body in found]
