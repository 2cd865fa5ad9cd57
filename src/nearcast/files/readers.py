"""Readers of NDJSON, CSV and Parquet, and the choice among all readers by a file's ending.

Blank lines are no rows: they are skipped and counted nowhere. In CSV an empty field, in Parquet a null,
means that the row does not have this value.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.errors import RowError
from nearcast.files.geojson import GeoJsonRows
from nearcast.files.rows import BOM, MAX_LINE, TOO_LONG, FileError, Role, Row, RowReader, unreadable
from nearcast.files.strict import NOT_UTF8, StrictDecoder

STANDARD_INPUT = "-"
PARQUET_ROWS = 1024  # decoded at a time
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # per second
NUMBERS = ("lon", "lat", "west", "south", "east", "north", "radius_m", "max_events")


@contextmanager
def open_rows(path: Path, role: Role) -> Iterator[RowReader]:
    """The reader of a file; `-` is NDJSON from standard input."""
    if str(path) == STANDARD_INPUT:
        yield NdjsonRows(sys.stdin.buffer, role, STANDARD_INPUT, None)
        return
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise FileError(f"{path}: the ending says what a file is; one of {', '.join(READERS)} needed")
    try:
        handle = path.open("rb")
        size = path.stat().st_size
    except OSError as error:
        raise unreadable(str(path), error) from None
    with handle:
        yield kind(handle, role, str(path), size)


class NdjsonRows(RowReader):
    """One JSON object a line. Lines end with \\n; a byte order mark may stand at the start of the file."""

    def _rows(self) -> Iterator[Row]:
        number = 0
        decoder = StrictDecoder()
        while True:
            line, whole = self._line()
            if not line:
                return
            number += 1
            line = line.removeprefix(BOM) if number == 1 else line
            if line.strip(b" \t\r\n"):
                yield json_row(number, line.rstrip(b"\r\n"), whole, decoder)


def json_row(number: int, line: bytes, whole: bool, decoder: StrictDecoder) -> Row:
    text = ""
    try:
        if not whole:
            raise RowError(TOO_LONG)
        text = _utf8(line)
        if text.startswith("\ufeff"):
            raise RowError("a byte order mark; it may stand only at the start of the file")
        record = decoder.whole(text)
        if not isinstance(record, dict):
            raise RowError(f"a JSON {_json_kind(record)}; an object with named fields needed")
    except RowError as error:
        return Row(number, None, str(error), text or line[:1000].decode(errors="backslashreplace"))
    return Row(number, record, source=record)


def _utf8(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise RowError(f"{NOT_UTF8} (at byte {error.start + 1})") from None


def _json_kind(value: Any) -> str:
    kinds = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")


class CsvRows(RowReader):
    """Comma-separated values with a header, read by the csv module, so that every field stays as written."""

    def _rows(self) -> Iterator[Row]:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
        lines = _CsvLines(self)
        parser = csv.reader(lines, strict=True)
        header = self._header(parser, lines)
        while True:
            lines.start_row()
            try:
                fields = next(parser)
                lines.refuse_bytes()
                if fields:
                    yield Row(lines.first, self._record(header, fields), source=lines.shown())
            except StopIteration:
                return
            except (csv.Error, RowError) as error:
                yield Row(lines.first, None, lines.reason(error), lines.shown())

    def _header(self, parser: Iterator[list[str]], lines: _CsvLines) -> list[str]:
        try:
            header = [name.strip() for name in next((row for row in parser if row), [])]
            lines.refuse_bytes()
        except (csv.Error, RowError) as error:
            raise FileError(f"{self.file}: the header cannot be read ({lines.reason(error)})") from None
        self.role.check(header, self.file)
        return header

    def _record(self, header: list[str], fields: list[str]) -> dict[str, str]:
        if len(fields) != len(header):
            raise RowError(f"{len(fields)} fields given; the header has {len(header)}")
        columns = self.role.columns
        return {name: field for name, field in zip(header, fields, strict=True) if field and name in columns}


class _CsvLines:
    """Lines for the csv module, which takes more than one where a quoted field has line ends.

    Not a generator: after an exception the next row goes on with the next line.
    """

    def __init__(self, reader: CsvRows) -> None:
        self._reader = reader
        self._next = 1
        self.start_row()

    def start_row(self) -> None:
        self.first = self._next
        self._taken: list[str] = []
        self._is_utf8 = True

    def __iter__(self) -> _CsvLines:
        return self

    def __next__(self) -> str:
        line, whole = self._reader._line()
        if not line:
            raise StopIteration
        line = line.removeprefix(BOM) if self._next == 1 else line
        self._next += 1
        try:
            text = line.decode()
        except UnicodeDecodeError:
            self._is_utf8 = False
            text = line.decode(errors="backslashreplace")
        self._taken.append(text if whole else text[:1000])
        if not whole:
            raise RowError(TOO_LONG)
        return text

    def refuse_bytes(self) -> None:
        if not self._is_utf8:
            raise RowError(NOT_UTF8)

    def shown(self) -> str:
        return "".join(self._taken).rstrip("\r\n")

    def reason(self, error: Exception) -> str:
        why = f"not CSV: {error}" if isinstance(error, csv.Error) else str(error)
        return why if len(self._taken) < 2 else f"{why} (lines {self.first} to {self._next - 1})"


class ParquetRows(RowReader):
    """Rows of a Parquet file, numbered from 1."""

    def _rows(self) -> Iterator[Row]:
        file = pq.ParquetFile(self.handle)
        names = file.schema_arrow.names
        self.role.check(names, self.file)
        self.size = file.metadata.num_rows
        columns = [name for name in names if name in self.role.columns]
        for batch in file.iter_batches(batch_size=PARQUET_ROWS, columns=columns):
            for row in arrow_rows(pa.record_batch([plain_column(batch[n], n) for n in columns], columns)):
                self.position += 1
                yield row._replace(line=self.position)


def arrow_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """All rows at once; one by one where a value among them does not exist in Python."""
    try:
        records = batch.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        if len(batch) == 1:
            reason = NOT_UTF8 if isinstance(error, UnicodeDecodeError) else " ".join(str(error).split())
            yield Row(0, None, reason)
            return
        for start in range(len(batch)):
            yield from arrow_rows(batch.slice(start, 1))
        return
    for record in records:
        given = {name: value for name, value in record.items() if value is not None}
        yield Row(0, given, source=given)


def plain_column(column: pa.Array, name: str) -> pa.Array:
    """Times as seconds since 1970 (Python's own have a smaller range), decimal coordinates as float64."""
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms"))
        kind = column.type
    if pa.types.is_timestamp(kind):
        return pc.divide(column.cast(pa.int64()).cast(pa.float64(), safe=False), UNITS[kind.unit])
    if pa.types.is_decimal(kind) and name in NUMBERS:
        return column.cast(pa.float64())
    return column


READERS: dict[str, type[RowReader]] = {
    ".parquet": ParquetRows,
    ".csv": CsvRows,
    ".ndjson": NdjsonRows,
    ".jsonl": NdjsonRows,
    ".geojson": GeoJsonRows,
    ".json": GeoJsonRows,
}
