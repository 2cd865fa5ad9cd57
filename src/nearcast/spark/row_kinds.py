"""Rows of an Arrow batch, told apart: those that kernels can read, and those that `records` must judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.files import MESSAGES, Row
from nearcast.spark.edge import is_raw, ordinary_rows, rows_of
from nearcast.spark.lines import is_plain, plain_columns


class RowKinds(NamedTuple):
    """Rows of messages. Blank lines are none."""

    ordinary: pa.RecordBatch
    numbers: NDArray[np.intp]  # of the ordinary ones: where each stood
    rows_at: Callable[[Sequence[int]], Iterable[Row]]  # some ordinary ones, as `records` would have them
    odd: Sequence[tuple[int, Row]]  # where each stood, and the row


def told_apart(batch: pa.RecordBatch) -> RowKinds:
    return _of_lines(batch) if is_raw(batch.schema.names) else _of_columns(batch)


def _of_columns(batch: pa.RecordBatch) -> RowKinds:
    is_ordinary = ordinary_rows(batch)
    numbers, others = np.flatnonzero(is_ordinary), np.flatnonzero(~is_ordinary)
    chosen = batch if not len(others) else batch.take(pa.array(numbers))
    odd = rows_of(batch.take(pa.array(others)), MESSAGES) if len(others) else ()
    return RowKinds(chosen, numbers, partial(_rows_at, chosen), [(int(others[number]), row) for number, row in odd])


def _of_lines(batch: pa.RecordBatch) -> RowKinds:
    """JSON is parsed line by line; of ordinary records the texts go to the encoder together."""
    plain: list[tuple[int, Row]] = []
    odd: list[tuple[int, Row]] = []
    for number, row in rows_of(batch, MESSAGES):
        (plain if row.record is not None and is_plain(row.record) else odd).append((number, row))
    numbers = np.array([number for number, _ in plain], np.intp)
    columns = plain_columns([row.record or {} for _, row in plain])
    return RowKinds(columns, numbers, lambda at: [plain[i][1] for i in at], odd)


def _rows_at(batch: pa.RecordBatch, numbers: Sequence[int]) -> Iterator[Row]:
    for _, row in rows_of(batch.take(pa.array(numbers)), MESSAGES):
        yield row
