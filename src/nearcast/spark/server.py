"""Options of the data source `nearcast`: which server, and how much at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from nearcast.client import SERVER, Client, ServerError
from nearcast.errors import NearcastError

T = TypeVar("T")

LATEST = "latest"
COME_AGAIN = (429, 503)
"""Too many, or cannot be reached or written now."""

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between tries; then the task fails, and Spark tries it again."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server as the options name it; NEARCAST_SERVER and NEARCAST_KEY stand in for those that are not given."""

    url: str
    key: str | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Server:
        url = options.get("server") or os.environ.get("NEARCAST_SERVER") or SERVER
        return cls(url, options.get("key") or os.environ.get("NEARCAST_KEY"))

    def ask(self, call: Callable[[Client], T]) -> T:
        """Tried again while the server is busy or away."""
        with Client(self.url, key=self.key) as client:
            for wait in WAITS:
                try:
                    return call(client)
                except ServerError as error:
                    if error.status not in COME_AGAIN:
                        raise
                time.sleep(wait)
            return call(client)


def number(options: Mapping[str, str], name: str, least: int) -> int | None:
    """An option that is a whole number."""
    given = options.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and least <= int(given) < 2**62):
        raise NearcastError(f"option {name}: {given!r} given; a whole number from {least} needed")
    return int(given)


def flag(options: Mapping[str, str], name: str, otherwise: bool) -> bool:
    given = options.get(name, str(otherwise)).lower()
    if given not in ("true", "false"):
        raise NearcastError(f"option {name}: {given!r} given; true or false needed")
    return given == "true"
