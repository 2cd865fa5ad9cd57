"""From an address to a database."""

from __future__ import annotations

from pathlib import Path

from nearcast.store.database import Database, StoreError
from nearcast.store.sqlite import SqliteDatabase

ALLOWED = "sqlite:///relative/path, sqlite:////absolute/path, postgresql://user@host/database or memory:"


def open_database(url: str) -> Database:
    if url == "memory:":
        return SqliteDatabase(None)
    if url.startswith("sqlite:///") and url != "sqlite:///":
        return SqliteDatabase(Path(url.removeprefix("sqlite:///")))
    if url.startswith(("postgresql://", "postgres://")):
        from nearcast.store.postgres import PostgresDatabase

        return PostgresDatabase(url)
    raise StoreError(f"store {url.split('@')[-1]!r} given; {ALLOWED} needed")
