"""Rows of an Arrow batch to messages and subscriptions, in a Python worker: the rules of `nearcast match`.

A table has the columns that a file would have, or one column `value` with a JSON object in each row (lines of
a text file, records of Kafka).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.files import Role, Row
from nearcast.files.readers import arrow_rows, json_row, plain_column
from nearcast.files.rejections import shown_source
from nearcast.files.rows import MAX_LINE
from nearcast.files.strict import StrictDecoder
from nearcast.records import MAX_ID

RAW = "value"
CORRUPT = "_corrupt_record"
SIDES = ("west", "south", "east", "north")
EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_800.0  # years 1 to 9999, what `records` takes as a time
LONGEST_SOURCE = 10_000


class Refused(NamedTuple):
    """A row that cannot be used: why, and what it was."""

    reason: str
    source: str


def is_raw(names: Sequence[str]) -> bool:
    return RAW in names and "id" not in names


def rows_of(batch: pa.RecordBatch, role: Role) -> Iterator[tuple[int, Row]]:
    """Number in the batch, and the row. Blank lines of text are no rows."""
    if is_raw(batch.schema.names):
        yield from _json_rows(batch[RAW])
        return
    broken = _broken(batch)
    names = [name for name in batch.schema.names if name in role.columns]
    plain = pa.record_batch([plain_column(batch[name], name) for name in names], names)
    for number, row in enumerate(arrow_rows(plain)):
        yield (
            number,
            (
                Row(0, None, f"not CSV: {len(row.record or {})} fields could be read", broken[number])
                if broken is not None and broken[number] is not None
                else row
            ),
        )


def _broken(batch: pa.RecordBatch) -> list[str | None] | None:
    if CORRUPT not in batch.schema.names:
        return None
    return list(batch[CORRUPT].to_pylist())


def _json_rows(values: pa.Array) -> Iterator[tuple[int, Row]]:
    decoder = StrictDecoder()
    for number, line in enumerate(values.cast(pa.binary()).to_pylist()):
        if line is None:
            yield number, Row(0, None, "nothing given; a JSON object needed")
        elif line.strip(b" \t\r\n"):
            yield number, json_row(0, line.rstrip(b"\r\n"), len(line) <= MAX_LINE, decoder)


def refused(row: Row, reason: str) -> Refused:
    shown = shown_source(row.source)
    source = shown.get("raw", json.dumps(shown["record"], ensure_ascii=False, default=str) if "record" in shown else "")
    return Refused(reason, source[:LONGEST_SOURCE].encode(errors="backslashreplace").decode())


def ordinary_rows(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Rows with id, text, place and time of the types that they should have: kernels read them."""
    names = batch.schema.names
    places = place_names(batch)
    if not {"id", "text", *places} <= set(names) or not _is_text(batch["text"].type) or CORRUPT in names:
        return np.zeros(len(batch), np.bool_)
    if not all(_is_number(batch[name].type) for name in places):
        return np.zeros(len(batch), np.bool_)
    good = _good_ids(batch["id"]) & _flags(pc.greater(pc.binary_length(batch["text"]), 0))
    for name in places:
        good &= _flags(pc.is_valid(batch[name]))
    if len(places) == 2:  # a side that is given would make the place a box
        for name in set(SIDES) & set(names):
            good &= _flags(pc.is_null(batch[name]))
    if "ts" in names:
        good &= _good_times(batch["ts"])
    if "ttl" in names:  # for `records` to judge
        good &= _flags(pc.is_null(batch["ttl"]))
    return good


def place_names(batch: pa.RecordBatch) -> tuple[str, ...]:
    """The columns to read places from: those of points, unless there are none."""
    return ("lon", "lat") if {"lon", "lat"} <= set(batch.schema.names) else SIDES


def _good_ids(ids: pa.Array) -> NDArray[np.bool_]:
    if pa.types.is_signed_integer(ids.type):
        return _flags(pc.is_valid(ids))
    if not _is_text(ids.type):
        return np.zeros(len(ids), np.bool_)
    length = pc.binary_length(ids)  # bytes; the rule is of characters, which are not more
    return _flags(pc.and_(pc.greater(length, 0), pc.less_equal(length, MAX_ID)))


def _good_times(times: pa.Array) -> NDArray[np.bool_]:
    seconds = plain_column(times, "ts")
    if not _is_number(seconds.type):
        return _flags(pc.is_null(times))
    values = floats(seconds)
    inside = (values >= EARLIEST) & (values < LATEST)
    return np.asarray(inside | _flags(pc.is_null(times)))


def times(batch: pa.RecordBatch) -> NDArray[np.float64]:
    if "ts" not in batch.schema.names:
        return np.full(len(batch), -np.inf)
    seconds = plain_column(batch["ts"], "ts")
    values = floats(seconds) if _is_number(seconds.type) else np.full(len(batch), np.nan)
    return np.where(np.isnan(values), -np.inf, values)


def floats(column: pa.Array) -> NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def _flags(column: Any) -> NDArray[np.bool_]:
    return np.array(column.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
