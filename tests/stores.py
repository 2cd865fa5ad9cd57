"""Every kind of store, for tests that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests import postgres

KINDS = ("memory", "sqlite", "postgres")
Urls = Callable[[], str]
"""Gives the address of a new, empty store at every call."""

_numbers = count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    folder = postgres.binaries()
    if folder is None:
        pytest.skip("no PostgreSQL on this machine (initdb, pg_ctl)")
    with postgres.server(folder) as url:
        yield url


def new_database(server: str) -> str:
    import psycopg

    name = f"store{next(_numbers)}"
    with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.format(name)


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.xdist_group("stores")) for kind in KINDS])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Urls:
    if request.param == "memory":
        return lambda: "memory:"
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        return lambda: new_database(server)
    return lambda: f"sqlite:///{tmp_path}/{next(_numbers)}.db"
