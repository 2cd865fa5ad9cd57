"""PostgreSQL by psycopg 3 (`pip install 'nearcast[postgres]'`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from nearcast.store.database import SCHEMA, Row, StoreError

try:
    import psycopg
except ImportError as error:  # pragma: no cover  # the extra is not installed
    raise StoreError("postgresql:// needs psycopg: pip install 'nearcast[postgres]'") from error

WRITER_LOCK = 0x6E656172
"""Key of the advisory lock that makes a process the only writer of its database."""


class PostgresTransaction:
    def __init__(self, cursor: psycopg.Cursor[Row]) -> None:
        self._cursor = cursor

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._cursor.execute(_marked(sql), values).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(_marked(sql), rows)

    def bulk(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        with self._cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)


class PostgresDatabase:
    """One connection writes and holds the writer's lock, another reads. Both are made again when they broke."""

    folder: str | None = None

    def __init__(self, url: str) -> None:
        self._url = url
        self._writing, self._reading = threading.RLock(), threading.RLock()
        self._writer: psycopg.Connection[Row] | None = None
        self._reader: psycopg.Connection[Row] | None = None
        with self.transaction() as change:
            for statement in SCHEMA:
                change.run(statement.format(blob="BYTEA", key="BIGINT"))

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        with self._writing, _translated():
            if self._writer is None or self._writer.closed:
                self._writer = self._connected_as_writer()
            with self._writer.transaction(), self._writer.cursor() as cursor:
                yield PostgresTransaction(cursor)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._reading, _translated():
            if self._reader is None or self._reader.closed:
                self._reader = psycopg.connect(self._url, autocommit=True)
            return self._reader.execute(_marked(sql), values).fetchall()

    def _connected_as_writer(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(self._url, autocommit=True)
        held = connection.execute("SELECT pg_try_advisory_lock(%s)", (WRITER_LOCK,)).fetchone()
        if held != (True,):
            connection.close()
            raise StoreError("the PostgreSQL database is open in another process or hub; one at a time can write to it")
        return connection

    def close(self) -> None:
        with self._writing, self._reading:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()


def _marked(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL: {' '.join(str(error).split())}") from error
