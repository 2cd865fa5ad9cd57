"""What the store needs of a database, and the schema. SQL is written once; a database fills in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from nearcast.errors import NearcastError

VERSION = 1

Row = tuple[Any, ...]


class StoreError(NearcastError):
    """A store that cannot be opened, read or written; what was committed before is safe."""


class Transaction(Protocol):
    """Statements that take effect together, or not at all. Parameters are written `?`."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Execute one statement; how many rows it changed."""

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute one statement for every row."""

    def bulk(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows in the fastest way the database has."""


class Database(Protocol):
    """SQLite or PostgreSQL. One writer at a time; readers see what is committed."""

    folder: str | None
    """Where files may lie beside the database: the path they start with; None: nowhere."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Committed and on disk when the block ends; undone when it raises."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]: ...

    def close(self) -> None: ...


SCHEMA = (
    """CREATE TABLE IF NOT EXISTS settings (
        tenant TEXT NOT NULL, name TEXT NOT NULL, value {blob} NOT NULL, PRIMARY KEY (tenant, name))""",
    # `upto` is the size of all bodies so far: the size of any range is one subtraction.
    """CREATE TABLE IF NOT EXISTS log (
        seq {key} PRIMARY KEY, tenant TEXT NOT NULL, time DOUBLE PRECISION NOT NULL,
        upto BIGINT NOT NULL, body {blob} NOT NULL)""",
    # Valid for messages with from_seq <= seq < to_seq; to_seq NULL: still live.
    """CREATE TABLE IF NOT EXISTS subscriptions (
        number {key} PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, subscriber TEXT NOT NULL,
        from_seq BIGINT NOT NULL, to_seq BIGINT, spent BIGINT NOT NULL, body {blob} NOT NULL)""",
    "CREATE UNIQUE INDEX IF NOT EXISTS live_subscription ON subscriptions (tenant, id) WHERE to_seq IS NULL",
    "CREATE INDEX IF NOT EXISTS subscriptions_of ON subscriptions (tenant, subscriber)",
    "CREATE INDEX IF NOT EXISTS ended_subscription ON subscriptions (to_seq) WHERE to_seq IS NOT NULL",
    """CREATE TABLE IF NOT EXISTS wishes (
        number {key} PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, body {blob} NOT NULL, UNIQUE (tenant, id))""",
    """CREATE TABLE IF NOT EXISTS followers (
        number {key} PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, subscriber TEXT NOT NULL,
        body {blob} NOT NULL, UNIQUE (tenant, id))""",
    """CREATE TABLE IF NOT EXISTS cursors (
        tenant TEXT NOT NULL, subscriber TEXT NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (tenant, subscriber))""",
    """CREATE TABLE IF NOT EXISTS api_keys (
        digest TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
        quotas TEXT NOT NULL, created DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS webhooks (
        tenant TEXT NOT NULL, id TEXT NOT NULL, subscriber TEXT NOT NULL, url TEXT NOT NULL, secret TEXT NOT NULL,
        disabled TEXT, created DOUBLE PRECISION NOT NULL, PRIMARY KEY (tenant, id))""",
    """CREATE TABLE IF NOT EXISTS dead_letters (
        tenant TEXT NOT NULL, webhook TEXT NOT NULL, seq BIGINT NOT NULL, reason TEXT NOT NULL,
        attempts BIGINT NOT NULL, time DOUBLE PRECISION NOT NULL, PRIMARY KEY (tenant, webhook, seq))""",
)
