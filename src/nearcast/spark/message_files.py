"""Files of messages that the workers read themselves: Spark is told which rows of which file a task takes.

A row that goes through Spark is decoded by Java, written as Arrow, read by Python; that costs more than finding
those who want it. What a worker reads from the file costs a tenth of it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from nearcast.files import MESSAGES, FileError
from nearcast.files.rows import unreadable
from nearcast.spark.pieces import filesystem_of, read_pieces
from nearcast.spark.read import columns_of
from nearcast.spark.splits import Group, Piece
from nearcast.spark.storage import IdKind

AT_A_TIME = 8
"""Files whose ends the driver reads at a time."""

SAMPLED_GROUPS = 32


@dataclass(frozen=True, slots=True)
class MessageFiles:
    """Parquet files of messages as they were when `files` looked at them."""

    paths: tuple[str, ...]
    groups: tuple[Group, ...]
    ids: IdKind

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    def table(self, spark: SparkSession) -> DataFrame:
        """The same messages, read by Spark: for layouts that send rows to shards."""
        return columns_of(spark.read.parquet(*self.paths), MESSAGES, self.paths[0])

    def sample(self, most: int) -> Iterator[pa.RecordBatch]:
        """Up to so many messages, from groups all over the files; read here."""
        step = max(1, -(-len(self.groups) // SAMPLED_GROUPS))
        chosen = self.groups[::step]
        each = -(-most // max(1, len(chosen)))
        return read_pieces(Piece(group, 0, min(each, group.rows)) for group in chosen)

    def __str__(self) -> str:
        return f"{self.rows:,} messages in {len(self.paths):,} Parquet file{'s' * (len(self.paths) > 1)}"


def files(*paths: str | os.PathLike[str]) -> MessageFiles:
    """Files, folders of files (also within folders) or patterns, local or by an address that pyarrow knows.

    Only the ends of the files are read now. `match` and `outcome` take it in place of a table; the files must
    be there, under these paths, for all workers.
    """
    found = [info for path in paths for info in _listed(os.fspath(path))]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        ends = list(pool.map(_end, found))
    kinds = {_id_kind(schema) for schema, _ in ends}
    groups = tuple(group for _, of_file in ends for group in of_file)
    return MessageFiles(tuple(path for path, _ in found), groups, "long" if kinds == {"long"} else "string")


def _listed(given: str) -> list[tuple[str, int]]:
    """Path and size of each file, in the order of names."""
    is_local = given.startswith("file:") or "://" not in given
    path = os.path.abspath(given.removeprefix("file:")) if is_local else given.rstrip("/")
    if is_local and not os.path.exists(path) and glob.has_magic(path):
        found = [one for matching in sorted(glob.glob(path)) for one in _listed(matching)]
    else:
        found = _below(path)
    if not found:
        raise FileError(f"{given}: no file there; Parquet files needed")
    return found


def _below(path: str) -> list[tuple[str, int]]:
    filesystem, place = filesystem_of(path)
    try:
        info = filesystem.get_file_info(place)
        if info.is_file:
            return [(path, info.size)]
        inside = filesystem.get_file_info(fs.FileSelector(place, recursive=True))
    except OSError as error:
        raise unreadable(path, error) from None
    sizes = {one.path[len(place) :]: one.size for one in inside if one.is_file}
    kept = sorted(name for name in sizes if not _is_hidden(name))
    _refuse_values(path, kept)
    return [(path + name, sizes[name]) for name in kept]


def _is_hidden(name: str) -> bool:
    """As Spark has it: marks of programs, not data."""
    return any(part.startswith(("_", ".")) for part in name.strip("/").split("/"))


def _refuse_values(path: str, names: Sequence[str]) -> None:
    """A folder `ts=5` is a column for Spark; nobody shall read the files without it."""
    folders = {folder for name in names for folder in name.split("/")[:-1] if "=" in folder}
    for folder in sorted(folders):
        if folder.partition("=")[0] in MESSAGES.columns:
            raise FileError(f"{path}: the folder {folder} stands for a column; read it as a table of Spark's")


def _end(file: tuple[str, int]) -> tuple[pa.Schema, Sequence[Group]]:
    """Schema and row groups, as they stand at the end of a Parquet file."""
    path, size = file
    filesystem, place = filesystem_of(path)
    try:
        with filesystem.open_input_file(place) as source, pq.ParquetFile(source) as opened:
            schema, told = opened.schema_arrow, opened.metadata
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None
    MESSAGES.check(schema.names, path)
    return schema, [Group(path, size, i, told.row_group(i).num_rows) for i in range(told.num_row_groups)]


def _id_kind(schema: pa.Schema) -> IdKind:
    """As `id_kind` of a table: Spark has no integer for uint64."""
    kind = schema.field("id").type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return "long" if pa.types.is_integer(kind) and kind != pa.uint64() else "string"
