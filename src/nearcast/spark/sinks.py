"""Where the results of a batch go. A batch may be written twice: the second time must leave what the first did."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

BY_PAIR = ("message_id", "subscription_id")
BY_WISH = ("wish_id",)


class Sink(Protocol):
    """Takes pairs (message_id, subscription_id, version) or changes of rankings, and rejected rows (reason, source),
    of a batch."""

    def write(self, pairs: DataFrame, rejected: DataFrame, batch: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The folder of a batch that is being written. A part is whole or not there; put again it is replaced."""

    folder: Path

    def put(self, name: str, rows: pa.RecordBatch) -> None:
        """Columns with few values are called `operation`: only there a dictionary is worth its time."""
        part = self.folder / f".{name}.{secrets.token_hex(4)}"
        pq.write_table(pa.Table.from_batches([rows]), part, use_dictionary=["operation"])
        os.replace(part, self.folder / f"part-{name}.parquet")


@runtime_checkable
class PartSink(Protocol):
    """A sink into which workers can put Arrow themselves: rows that need not pass through Java cost a third."""

    def parts(self, batch: int) -> Parts | None:
        """Where the parts of the batch go, or None: use `write`."""

    def close(self, rejected: DataFrame | None, batch: int) -> None:
        """All parts are there; None: nothing was rejected, and nobody has to ask Spark whether there is."""


@dataclass(frozen=True, slots=True)
class FileSink:
    """Folders batch=N in `path`, and in `path`.rejected where rows were rejected. A folder is whole or not there;
    written again it is replaced: exactly once."""

    path: Path
    format: str = "parquet"

    def write(self, pairs: DataFrame, rejected: DataFrame, batch: int) -> None:
        _save(pairs, Path(self.path), self.format, batch)
        self.close(rejected, batch)

    def parts(self, batch: int) -> Parts | None:
        if self.format != "parquet":
            return None
        folder = _beside(Path(self.path), batch)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return Parts(folder)

    def close(self, rejected: DataFrame | None, batch: int) -> None:
        _put_in_place(Path(self.path), batch)
        if rejected is not None and not rejected.isEmpty():
            _save(rejected, self.rejected, "json", batch)
            _put_in_place(self.rejected, batch)

    @property
    def rejected(self) -> Path:
        path = Path(self.path)
        return path.with_name(f"{path.name}.rejected")


def _save(rows: DataFrame, folder: Path, kind: str, batch: int) -> None:
    rows.write.mode("overwrite").format(kind).save(str(_beside(folder, batch)))


def _beside(folder: Path, batch: int) -> Path:
    """Names with a dot are no data to Spark's readers, so that nobody sees half a batch."""
    return folder / f".batch={batch}"


def _put_in_place(folder: Path, batch: int) -> None:
    whole = folder / f"batch={batch}"
    if whole.exists():
        shutil.rmtree(whole)
    os.rename(_beside(folder, batch), whole)


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """A record for each pair, whose key is the pair: whoever compacts or remembers keys has each pair once.
    Rejected rows go to the topic `rejected`, if one is given.

    For changes of rankings the key is `BY_WISH`: those of a wish lie in one partition in the order of their numbers,
    and whoever remembers the last number of each wish has every change once."""

    servers: str
    topic: str
    rejected: str | None = None
    key: tuple[str, ...] = BY_PAIR

    def write(self, pairs: DataFrame, rejected: DataFrame, batch: int) -> None:
        key = F.concat_ws("/", *(F.col(name) for name in self.key))
        self._send(pairs.select(key.alias("key"), F.to_json(F.struct("*")).alias("value")), self.topic)
        if self.rejected is not None:
            value = F.to_json(F.struct("*", F.lit(batch).alias("batch")))
            self._send(rejected.select(value.alias("value")), self.rejected)

    def _send(self, rows: DataFrame, topic: str) -> None:
        rows.write.format("kafka").option("kafka.bootstrap.servers", self.servers).option("topic", topic).save()
