"""What every reader gives: rows with the line where they stand, good or broken, and how far it has come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from nearcast.errors import NearcastError

MAX_LINE = 1 << 24
"""Bytes in a line, characters in a CSV field or a GeoJSON feature: what one row may cost in memory."""

BATCH_TEXT = 8_000_000
"""Characters of text after which a batch ends early, so that long texts cannot fill the memory."""

BOM = b"\xef\xbb\xbf"
TOO_LONG = f"more than {MAX_LINE:,} bytes in one line"


class FileError(NearcastError):
    """A file that cannot be read or written at all; rows that are wrong never raise it."""


class Role(NamedTuple):
    """What the rows of a file are to become, and which columns that takes."""

    name: str
    columns: tuple[str, ...]  # all that are read; others are left out
    needed: tuple[tuple[str, ...], ...]  # of each group one; `a,b` are needed together

    def check(self, given: Sequence[str], file: str) -> None:
        """For files with a header: whether its columns can make a record, each named once."""
        twice = sorted({name for name in given if given.count(name) > 1 and name in self.columns})
        if twice:
            raise FileError(f"{file}: column {twice[0]!r} is there {given.count(twice[0])} times; once is allowed")
        missing = [group for group in self.needed if not any(set(way.split(",")) <= set(given) for way in group)]
        if missing:
            needed = "; ".join(" or ".join(group) for group in self.needed)
            names = ", ".join(name[:40] for name in given[:20]) or "none"
            raise FileError(
                f"{file}: {' or '.join(missing[0])} is missing. Columns given: {names}. "
                f"{self.name.capitalize()} need: {needed}"
            )


_SIDES = "west,south,east,north"
MESSAGES = Role(
    "messages",
    ("id", "text", "terms", "lon", "lat", "west", "south", "east", "north", "ts", "ttl"),
    (("id",), ("text", "terms"), ("lon,lat", _SIDES)),
)
SUBSCRIPTIONS = Role(
    "subscriptions",
    (
        *("id", "expression", "terms", "region", "west", "south", "east", "north", "lon", "lat", "radius_m"),
        *("subscriber", "expires", "max_events"),
    ),
    (("id",), ("expression", "terms"), ("region", _SIDES, "lon,lat,radius_m")),
)
RANKED_WISHES = Role(
    "wishes",
    ("id", "text", "terms", "lon", "lat", "k", "alpha", "subscriber"),
    (("id",), ("text", "terms"), ("lon,lat",)),
)
MOVES = Role(
    "moves",
    ("id", "ts", "region", "west", "south", "east", "north", "lon", "lat", "radius_m"),
    (("id",), ("ts",), ("region", _SIDES, "lon,lat,radius_m")),
)


class Row(NamedTuple):
    """One row of a file: its record, or the reason why it has none."""

    line: int  # from 1; the row's or feature's number where a file has no lines
    record: Mapping[str, Any] | None
    reason: str = ""
    source: Any = None  # what to show of the row: text as it stands in the file, or the record


class RowReader(ABC):
    """The rows of one file in order, never more than a few of them in memory."""

    def __init__(self, handle: BinaryIO, role: Role, file: str, size: int | None) -> None:
        self.handle = handle
        self.role = role
        self.file = file
        self.size = size  # bytes or rows, as `position`; None where nobody can know
        self.position = 0

    def __iter__(self) -> Iterator[Row]:
        try:
            yield from self._rows()
        except (OSError, pa.ArrowException) as error:
            raise unreadable(self.file, error) from error

    @abstractmethod
    def _rows(self) -> Iterator[Row]:
        """Rows as they come; OSError and ArrowException mean that the file itself is at fault."""

    def _line(self) -> tuple[bytes, bool]:
        """The next line, split at \\n only, and whether it is whole; the rest of a longer one is skipped."""
        line = self.handle.readline(MAX_LINE + 1)
        self.position += len(line)
        whole = len(line) <= MAX_LINE or line.endswith(b"\n")
        rest = b"" if whole else line
        while rest and not rest.endswith(b"\n"):
            rest = self.handle.readline(MAX_LINE)
            self.position += len(rest)
        return line, whole


def in_batches(rows: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """Lists of `most` rows, fewer where texts are long."""
    batch: list[Row] = []
    characters = 0
    for row in rows:
        batch.append(row)
        text = None if row.record is None else row.record.get("text")
        characters += len(text) if isinstance(text, str) else 0
        if len(batch) >= most or characters >= BATCH_TEXT:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def unreadable(file: str, error: Exception) -> FileError:
    why = (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())
    return FileError(f"{file}: cannot be read ({why})")
