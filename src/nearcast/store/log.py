"""The log: accepted messages in the order of their sequence numbers, without gaps, kept for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nearcast.store.database import Database

COLUMNS = ("seq", "tenant", "time", "upto", "body")


class Logged(NamedTuple):
    """One message as it was accepted. `time` is when, in seconds since 1970."""

    seq: int
    time: float
    body: bytes


class Log:
    """Appending is one transaction for all that is given: group commit. Times never run backwards.

    Tenants share the sequence; each reads only its own messages.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._appending = threading.Lock()
        last = database.rows("SELECT seq, time, upto FROM log ORDER BY seq DESC LIMIT 1")
        purged = database.rows("SELECT value FROM settings WHERE tenant = '' AND name = 'purged'")
        behind, before, upto = bytes(purged[0][0]).split() if purged else (b"0", b"-inf", b"0")
        self.first_seq = int(behind) + 1  # of what is kept; last_seq + 1 when nothing is
        found = last[0] if last else (behind, before, upto)
        self.last_seq, self._time, self._upto = int(found[0]), float(found[1]), int(found[2])

    @property
    def nbytes(self) -> int:
        """Size of the bodies that are kept."""
        return self._upto - self._upto_before(self.first_seq)

    def append(self, bodies: Sequence[tuple[str, bytes]], time: float) -> int:
        """(tenant, body) pairs accepted at `time`; the sequence number of the first. On disk when it returns."""
        with self._appending:
            first, moment, upto = self.last_seq + 1, max(time, self._time), self._upto
            rows = []
            for seq, (tenant, body) in enumerate(bodies, first):
                upto += len(body)
                rows.append((seq, tenant, moment, upto, body))
            if rows:
                with self._database.transaction() as change:
                    change.bulk("log", COLUMNS, rows)
                self.last_seq, self._time, self._upto = first + len(rows) - 1, moment, upto
            return first

    def read(self, tenant: str, after: int, up_to: int, limit: int) -> list[Logged]:
        """The tenant's messages with after < seq <= up_to, in order, the first `limit` of them."""
        found = self._database.rows(
            "SELECT seq, time, body FROM log WHERE seq > ? AND seq <= ? AND tenant = ? ORDER BY seq LIMIT ?",
            (after, up_to, tenant, limit),
        )
        return [Logged(seq, time, bytes(body)) for seq, time, body in found]

    def seq_before(self, time: float) -> int:
        """The last sequence number accepted before this time; what comes after it is of that time or later."""
        return self._last_where(lambda seq: self._at(seq, "time") < time)

    def purge(self, *, before: float | None = None, max_bytes: int | None = None) -> int:
        """Forget what was accepted before a time, and the oldest beyond a size; how many messages."""
        last = self.first_seq - 1
        if before is not None:
            last = max(last, self.seq_before(before))
        if max_bytes is not None:
            excess = self._upto - max_bytes
            last = max(last, self._last_where(lambda seq: self._upto_before(seq) < excess))
        return self._forget_up_to(last)

    def _forget_up_to(self, last: int) -> int:
        gone = last - self.first_seq + 1
        if gone <= 0:
            return 0
        state = f"{last} {self._at(last, 'time')!r} {self._at(last, 'upto')}".encode()
        with self._database.transaction() as change:
            change.run("DELETE FROM log WHERE seq <= ?", (last,))
            change.run("DELETE FROM subscriptions WHERE to_seq IS NOT NULL AND to_seq <= ?", (last + 1,))
            change.run(
                "INSERT INTO settings (tenant, name, value) VALUES ('', 'purged', ?) "
                "ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value",
                (state,),
            )
        self.first_seq = last + 1
        return gone

    def _last_where(self, holds: Callable[[int], bool]) -> int:
        """The last kept seq of which `holds` is true, first_seq - 1 if of none; it is never true after false."""
        low, high = self.first_seq - 1, self.last_seq
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if holds(middle) else (low, middle - 1)
        return low

    def _at(self, seq: int, column: str) -> float:
        value: float = self._database.rows(f"SELECT {column} FROM log WHERE seq = ?", (seq,))[0][0]
        return value

    def _upto_before(self, seq: int) -> int:
        found = self._database.rows("SELECT upto, length(body) FROM log WHERE seq = ?", (seq,))
        return int(found[0][0]) - int(found[0][1]) if found else self._upto
