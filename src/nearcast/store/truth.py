"""Who wants what, since when and until when; how far each subscriber has come; settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nearcast.model import Id
from nearcast.store.codec import id_of, key_of
from nearcast.store.database import Database, Row, Transaction


class Kept(NamedTuple):
    """A subscription in the store, valid for messages with from_seq <= seq < to_seq."""

    number: int  # of this registration: an id that is replaced gets another
    id: Id
    subscriber: Id
    from_seq: int
    to_seq: int | None  # None: still live
    spent: int  # events that were counted against its maximum
    body: bytes


class Ending(NamedTuple):
    number: int
    to_seq: int


_KEPT = "SELECT number, id, subscriber, from_seq, to_seq, spent, body FROM subscriptions"


class Subscriptions:
    """Registrations, each with a number that is never used again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        highest = database.rows("SELECT max(number) FROM subscriptions")[0][0] or 0
        told = database.rows("SELECT value FROM settings WHERE tenant = '' AND name = 'numbers'")
        self.last = max(highest, int(bytes(told[0][0])) if told else 0)

    def change(
        self, tenant: str, begin: Sequence[tuple[Id, Id, bytes]], from_seq: int, end: Iterable[Ending] = ()
    ) -> list[int]:
        """End some, then begin (id, subscriber, body), all or nothing; the numbers of those begun."""
        first = self.last + 1
        rows = [
            (number, tenant, key_of(identity), key_of(subscriber), from_seq, None, 0, body)
            for number, (identity, subscriber, body) in enumerate(begin, first)
        ]
        with self._database.transaction() as change:
            _end(change, end)
            change.bulk(
                "subscriptions",
                ("number", "tenant", "id", "subscriber", "from_seq", "to_seq", "spent", "body"),
                rows,
            )
            if rows:  # a purge may delete the highest number; it must not come back
                put_setting(change, "", "numbers", str(first + len(rows) - 1).encode())
        self.last += len(rows)
        return list(range(first, first + len(rows)))

    def count_events(self, tenant: str, spent: dict[int, int], end: Iterable[Ending], counted: int) -> None:
        """Events of limited subscriptions by number, up to message `counted`; those used up end."""
        with self._database.transaction() as change:
            change.many("UPDATE subscriptions SET spent = ? WHERE number = ?", [(n, s) for s, n in spent.items()])
            _end(change, end)
            put_setting(change, tenant, "counted", str(counted).encode())

    def live(self, tenant: str) -> list[Kept]:
        found = self._database.rows(f"{_KEPT} WHERE tenant = ? AND to_seq IS NULL ORDER BY number", (tenant,))
        return [_kept(row) for row in found]

    def of(self, tenant: str, subscriber: Id, after: int) -> list[Kept]:
        """Those of a subscriber that were valid for some message behind `after`, live or ended."""
        found = self._database.rows(
            f"{_KEPT} WHERE tenant = ? AND subscriber = ? AND (to_seq IS NULL OR to_seq > ?) ORDER BY number",
            (tenant, key_of(subscriber), after + 1),
        )
        return [_kept(row) for row in found]


class Cursors:
    """The last message that each subscriber acknowledged."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tenant: str, subscriber: Id) -> int | None:
        found = self._database.rows(
            "SELECT seq FROM cursors WHERE tenant = ? AND subscriber = ?", (tenant, key_of(subscriber))
        )
        return int(found[0][0]) if found else None

    def advance(self, tenant: str, subscriber: Id, seq: int) -> None:
        """Never backwards: an acknowledgement that comes late changes nothing."""
        with self._database.transaction() as change:
            change.run(
                "INSERT INTO cursors (tenant, subscriber, seq) VALUES (?, ?, ?) ON CONFLICT (tenant, subscriber) "
                "DO UPDATE SET seq = excluded.seq WHERE excluded.seq > cursors.seq",
                (tenant, key_of(subscriber), seq),
            )


class Settings:
    """Named values of a tenant: analyzer, space, recorded lexicon, …"""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tenant: str, name: str) -> bytes | None:
        found = self._database.rows("SELECT value FROM settings WHERE tenant = ? AND name = ?", (tenant, name))
        return bytes(found[0][0]) if found else None

    def put(self, tenant: str, values: dict[str, bytes]) -> None:
        with self._database.transaction() as change:
            for name, value in values.items():
                put_setting(change, tenant, name, value)


def put_setting(change: Transaction, tenant: str, name: str, value: bytes) -> None:
    change.run(
        "INSERT INTO settings (tenant, name, value) VALUES (?, ?, ?) "
        "ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value",
        (tenant, name, value),
    )


def _end(change: Transaction, endings: Iterable[Ending]) -> None:
    rows = [(to_seq, number) for number, to_seq in endings]
    if rows:
        change.many("UPDATE subscriptions SET to_seq = ? WHERE number = ?", rows)


def _kept(row: Row) -> Kept:
    number, identity, subscriber, from_seq, to_seq, spent, body = row
    return Kept(number, id_of(identity), id_of(subscriber), from_seq, to_seq, spent, bytes(body))
