"""Writers of pairs and records. A file appears under its name only when it is whole."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from nearcast.columns import Pairs
from nearcast.files.rows import FileError
from nearcast.model import Id

STANDARD = "-"
"""Standard output, as NDJSON."""

ROW_GROUP = 131_072
"""Pairs in a row group of Parquet: small batches are gathered until then."""

T = TypeVar("T")

_NAMES = ("message_id", "subscription_id")
_encode = json.JSONEncoder(ensure_ascii=False).encode


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to: it takes that name when all went well, else it is removed."""
    target = path.resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.exists() and not target.is_file():
            raise FileError(f"{path}: is not a file")
        part.touch()
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield part
        os.replace(part, target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        part.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> FileError:
    return FileError(f"{path}: cannot be written ({error.strerror or error})")


def check_apart(**paths: Path) -> None:
    """No file may have two roles in a run, because writing one would destroy the other."""
    roles: dict[Path, str] = {}
    for role, path in paths.items():
        if str(path) == STANDARD:
            continue
        other = roles.setdefault(path.resolve(), role)
        if other != role:
            raise FileError(f"{path}: given as {other} and as {role}; two files needed")


# -- pairs ----------------------------------------------------------------------------------------------


class PairWriter(ABC):
    """Columns message_id and subscription_id. After `begin`, `write` takes one batch after the other."""

    def __init__(self, part: Path | None) -> None:
        self.part = part
        self.count = 0

    @abstractmethod
    def begin(self, subscription_ids: Sequence[Id]) -> None:
        """Say the ids of the subscriptions by slot."""

    def write(self, message_ids: Sequence[Id], pairs: Pairs) -> None:
        """The pairs of a batch; `message_ids` are those of all its messages, by position."""
        self._write(message_ids, pairs)
        self.count += len(pairs.slot)

    @abstractmethod
    def _write(self, message_ids: Sequence[Id], pairs: Pairs) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Write what was kept back, and let go of the file."""


@contextmanager
def open_pairs(out: Path) -> Iterator[PairWriter]:
    """The writer for a file of this ending; `-` is NDJSON on standard output."""
    if str(out) == STANDARD:
        yield NdjsonPairs(None)
        return
    kind = _by_ending(out, PAIR_WRITERS)
    with complete(out) as part:
        writer = kind(part)
        try:
            yield writer
        finally:
            writer.close()


class NdjsonPairs(PairWriter):
    """One object a line; every id as it came, text or number."""

    def __init__(self, part: Path | None) -> None:
        super().__init__(part)
        self._handle: BinaryIO = sys.stdout.buffer if part is None else part.open("wb")

    def begin(self, subscription_ids: Sequence[Id]) -> None:
        self._slots = [_encode(identity) for identity in subscription_ids]

    def _write(self, message_ids: Sequence[Id], pairs: Pairs) -> None:
        messages, slots = [_encode(identity) for identity in message_ids], self._slots
        self._handle.writelines(
            f'{{"message_id": {messages[message]}, "subscription_id": {slots[slot]}}}\n'.encode()
            for message, slot in zip(pairs.message.tolist(), pairs.slot.tolist(), strict=True)
        )
        self._handle.flush()

    def close(self) -> None:
        if self.part is not None:
            self._handle.close()


class CsvPairs(PairWriter):
    """With a header; text in quotation marks, integers without."""

    def __init__(self, part: Path) -> None:
        super().__init__(part)
        self._handle = part.open("wb")

    def begin(self, subscription_ids: Sequence[Id]) -> None:
        self._slots = _ids(subscription_ids)
        self._handle.write(f"{','.join(_NAMES)}\n".encode())

    def _write(self, message_ids: Sequence[Id], pairs: Pairs) -> None:
        for table in _tables(_ids(message_ids), self._slots, pairs):
            pacsv.write_csv(table, self._handle, pacsv.WriteOptions(include_header=False))

    def close(self) -> None:
        self._handle.close()


class ParquetPairs(PairWriter):
    """A column is int64 if all ids are integers, those of messages without a match too; else it is text.

    Messages' ids are written as integers until the first text comes; then what was written is turned to
    text, once.
    """

    def __init__(self, part: Path) -> None:
        super().__init__(part)
        self._path = part
        self._kind = pa.int64()
        self._kept: list[pa.Table] = []
        self._n_kept = 0
        self._writer: pq.ParquetWriter | None = None

    def begin(self, subscription_ids: Sequence[Id]) -> None:
        self._slots = _ids(subscription_ids)
        self._writer = self._started()

    def _started(self) -> pq.ParquetWriter:
        self._schema = pa.schema(zip(_NAMES, (self._kind, self._slots.type), strict=True))
        return pq.ParquetWriter(self._path, self._schema)

    def _write(self, message_ids: Sequence[Id], pairs: Pairs) -> None:
        ids = _ids(message_ids)
        if self._kind == pa.int64() != ids.type:
            self._turn_to_text()
        self._kept += _tables(ids.cast(self._kind), self._slots, pairs)
        self._n_kept += len(pairs.slot)
        if self._n_kept >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._n_kept and self._writer is not None:
            self._writer.write_table(pa.concat_tables(self._kept), row_group_size=ROW_GROUP)
        self._kept, self._n_kept = [], 0

    def _turn_to_text(self) -> None:
        self.close()
        numbers = self._path.with_name(self._path.name + ".numbers")
        os.replace(self._path, numbers)
        try:
            self._kind = pa.string()
            writer = self._writer = self._started()
            with pq.ParquetFile(numbers) as written:
                for batch in written.iter_batches(batch_size=ROW_GROUP):
                    writer.write_table(pa.Table.from_batches([batch]).cast(self._schema))
        finally:
            numbers.unlink()

    def close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()


def _ids(ids: Sequence[Id]) -> pa.Array:
    if all(isinstance(identity, int) for identity in ids):
        return pa.array(ids, pa.int64())
    return pa.array([str(identity) for identity in ids], pa.string())


def _tables(messages: pa.Array, slots: pa.Array, pairs: Pairs) -> Iterator[pa.Table]:
    """Pairs by id, in pieces, so that long ids do not overflow one array of text."""
    for start in range(0, len(pairs.slot), ROW_GROUP):
        piece = slice(start, start + ROW_GROUP)
        columns = messages.take(pa.array(pairs.message[piece])), slots.take(pa.array(pairs.slot[piece]))
        yield pa.table(dict(zip(_NAMES, columns, strict=True)))


PAIR_WRITERS: dict[str, Callable[[Path], PairWriter]] = {
    ".parquet": ParquetPairs,
    ".csv": CsvPairs,
    ".ndjson": NdjsonPairs,
    ".jsonl": NdjsonPairs,
}


# -- records --------------------------------------------------------------------------------------------

Records = Iterable[Mapping[str, Any]]


def write_records(out: Path, records: Records, columns: Sequence[str]) -> None:
    """Records as a file that `readers` read: `columns` are the header where the format has one.

    Columns called id, text or expression are text, all others numbers.
    """
    if str(out) == STANDARD:
        _write_ndjson(sys.stdout.buffer, records, columns)
        return
    write = _by_ending(out, RECORD_WRITERS)
    with complete(out) as part, part.open("wb") as handle:
        write(handle, records, columns)


def _write_ndjson(handle: BinaryIO, records: Records, columns: Sequence[str]) -> None:
    for record in records:
        fields = {name: record[name] for name in columns if name in record}
        handle.write(f"{_encode(fields)}\n".encode())
    handle.flush()


def _write_csv(handle: BinaryIO, records: Records, columns: Sequence[str]) -> None:
    text = io.TextIOWrapper(handle, encoding="utf-8", newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(records)
    text.detach()


def _write_parquet(handle: BinaryIO, records: Records, columns: Sequence[str]) -> None:
    texts = ("id", "text", "expression")
    schema = pa.schema([(name, pa.string() if name in texts else pa.float64()) for name in columns])
    rows = iter(records)
    with pq.ParquetWriter(handle, schema) as writer:
        while group := list(islice(rows, ROW_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))


RECORD_WRITERS: dict[str, Callable[[BinaryIO, Records, Sequence[str]], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".ndjson": _write_ndjson,
    ".jsonl": _write_ndjson,
}


def _by_ending(out: Path, writers: Mapping[str, T]) -> T:
    if out.suffix.lower() not in writers:
        raise FileError(f"{out}: the ending says what a file is; one of {', '.join(writers)} needed")
    return writers[out.suffix.lower()]
