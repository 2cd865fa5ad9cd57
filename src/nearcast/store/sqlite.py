"""SQLite: one file, write-ahead log, every commit on disk. `memory:` is the same without the file."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from nearcast.store.database import SCHEMA, Row, StoreError


class SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(sql, values).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def bulk(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(columns))
        self.many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


class SqliteDatabase:
    """One connection writes, another reads, so that a reader never waits for the disk.

    A lock on the file beside the database keeps a second process from writing to it: sequence numbers have
    one author. The lock goes with the process, however it ends.
    """

    def __init__(self, path: Path | None) -> None:
        self.folder = None if path is None else str(path)
        self._lock_file = None if path is None else _locked(path)
        self._writing, self._reading = threading.RLock(), threading.RLock()
        self._connections: list[sqlite3.Connection] = []
        try:
            self._connect(path)
        except BaseException:
            self.close()
            raise

    def _connect(self, path: Path | None) -> None:
        with _translated(path):
            self._writer = self._opened(path)
            if path is None:  # memory cannot be shared by connections
                self._reader, self._reading = self._writer, self._writing
            else:
                self._reader = self._opened(path)
        with self.transaction() as change:
            for statement in SCHEMA:
                change.run(statement.format(blob="BLOB", key="INTEGER"))

    def _opened(self, path: Path | None) -> sqlite3.Connection:
        name = ":memory:" if path is None else str(path)
        connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False, timeout=30.0)
        self._connections.append(connection)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # an answered publisher's message survives a power cut
        return connection

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        with self._writing, _translated(self.folder):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(self._writer)
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:  # a full disk may have ended it already
                    self._writer.execute("ROLLBACK")
                raise

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._reading, _translated(self.folder):
            return self._reader.execute(sql, values).fetchall()

    def close(self) -> None:
        with self._writing, self._reading:
            for connection in self._connections:
                connection.close()
        if self._lock_file is not None:
            self._lock_file.close()


@contextmanager
def _translated(path: Path | str | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path or 'memory'}: {error}") from error


def _locked(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = open(f"{path}.lock", "a")  # noqa: SIM115  # held open as long as the store is
    except OSError as error:
        raise StoreError(f"{path}: cannot be opened ({error.strerror})") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise StoreError(f"{path}: open in another process or hub; one at a time can write to it") from None
    os.truncate(held.fileno(), 0)
    return held
