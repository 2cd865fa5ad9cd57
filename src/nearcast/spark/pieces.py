"""What a Python worker reads by itself: rows of Parquet files, as Arrow batches of a size that suits the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from nearcast.files import MESSAGES, FileError
from nearcast.files.rows import unreadable
from nearcast.spark.session import ROWS_A_BATCH
from nearcast.spark.shard import Job, match_batches
from nearcast.spark.splits import Piece, Split

BYTES_A_BATCH = 1 << 26
"""Up to which small row groups are put together."""


def match_files(job: Job, splits: Sequence[Split], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replicated: the messages of the splits whose numbers come, against all subscriptions."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from match_batches(job, read_pieces(splits[number]))


def read_pieces(split: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
    """The columns of messages, of each file those that it has; FileError where a file is not what it was."""
    return _together(
        batch for path, pieces in groupby(split, lambda piece: piece.group.path) for batch in _read(path, pieces)
    )


def filesystem_of(path: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path or address, and the path in it."""
    try:
        return fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None


def _read(path: str, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
    filesystem, place = filesystem_of(path)
    try:
        with filesystem.open_input_file(place) as source, pq.ParquetFile(source) as file:
            columns = [name for name in file.schema_arrow.names if name in MESSAGES.columns]
            for piece in pieces:
                _check(file, source.size(), piece)
                yield from _rows(file, columns, piece)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def _check(file: pq.ParquetFile, size: int, piece: Piece) -> None:
    group, told = piece.group, file.metadata
    same = size == group.size and group.number < told.num_row_groups
    if not same or told.row_group(group.number).num_rows != group.rows:
        raise FileError(f"{group.path}: not what it was when it was listed; files must not change while they are read")


def _rows(file: pq.ParquetFile, columns: list[str], piece: Piece) -> Iterator[pa.RecordBatch]:
    """Parquet cannot be entered in the middle of a group: what comes before is decoded, and left out."""
    at = 0
    for batch in file.iter_batches(ROWS_A_BATCH, [piece.group.number], columns, use_threads=False):
        start, stop = max(piece.start - at, 0), min(piece.stop - at, len(batch))
        if start < stop:
            yield _decoded(batch.slice(start, stop - start))
        at += len(batch)
        if at >= piece.stop:
            return


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Columns that pandas calls categorical, as their values."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, fewer batches."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if held and not _is_room(held, batch):
            yield pa.concat_batches(held)
            held = []
        held.append(batch)
    if held:
        yield pa.concat_batches(held)


def _is_room(held: Sequence[pa.RecordBatch], batch: pa.RecordBatch) -> bool:
    return (
        held[0].schema.equals(batch.schema)
        and sum(map(len, held)) + len(batch) <= ROWS_A_BATCH
        and sum(one.nbytes for one in held) + batch.nbytes <= BYTES_A_BATCH
    )
