"""Subscriptions of a table to a version on storage: parts in parallel, a plan, shards in parallel."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegralType

from nearcast.errors import NearcastError
from nearcast.files import MESSAGES, SUBSCRIPTIONS
from nearcast.geo import Space, earth
from nearcast.spark.assembly import assemble, build_shard
from nearcast.spark.layouts import AUTO, check_layout
from nearcast.spark.message_files import MessageFiles
from nearcast.spark.parts import write_part
from nearcast.spark.plan import REPLICATE_UP_TO, PlanReport
from nearcast.spark.read import columns_of
from nearcast.spark.storage import IdKind, Manifest, Settings, bounds_of
from nearcast.text import analyzer as analyzer_named

SAMPLED = 20_000
"""Messages that plans are made from."""


@dataclass(frozen=True, slots=True)
class Built:
    """A version of the subscriptions, ready to be matched against."""

    folder: Path
    manifest: Manifest

    @property
    def report(self) -> PlanReport:
        return self.manifest.report

    def rejected(self, spark: SparkSession) -> DataFrame:
        """Rows that are no subscriptions: reason, source."""
        frame = spark.createDataFrame([], "reason string, source string")
        return (
            spark.read.schema(frame.schema).parquet(str(self.folder / "rejected")) if self.manifest.rejected else frame
        )

    @classmethod
    def load(cls, folder: Path) -> Built:
        return cls(folder, Manifest.load(folder))


def build(
    subscriptions: DataFrame,
    storage: str | Path | None = None,
    *,
    layout: str = AUTO,
    shards: int | None = None,
    messages: DataFrame | MessageFiles | None = None,
    space: Space = earth,
    analyzer: str = "unicode",
    index: str = "strata",
    replicate_up_to: int = REPLICATE_UP_TO,
    counts_events: bool = True,
) -> Built:
    """Parse, plan and build. `storage` is a folder that driver and workers reach under this path; on one
    machine it may be left out. `messages` are sampled for plans that depend on them; `shards` is as many as
    Spark runs tasks at a time unless given."""
    spark = subscriptions.sparkSession
    shards = shards or parallelism(spark)
    check_layout(layout, shards)
    settings = Settings(analyzer_named(analyzer).name, bounds_of(space), id_kind(subscriptions), index, counts_events)
    folder = storage_folder(spark, storage) / f"v-{uuid.uuid4().hex[:16]}"
    folder.mkdir(parents=True)
    names, rejected = _write_parts(columns_of(subscriptions, SUBSCRIPTIONS, "subscriptions"), folder, settings)
    manifest = assemble(
        folder,
        names,
        settings,
        rejected,
        layout=layout,
        shards=shards,
        replicate_up_to=replicate_up_to,
        sample=partial(_sample, messages),
    )
    _build_shards(spark, folder, names, settings, manifest.shards)
    manifest.save(folder)
    return Built(folder, manifest)


def parallelism(spark: SparkSession) -> int:
    """Tasks at a time, as far as the session says."""
    return spark.sparkContext.defaultParallelism if hasattr(spark, "_jsc") else 2


def id_kind(frame: DataFrame) -> IdKind:
    """Integers stay integers; in JSON, where each row may have another type, ids are text."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    return "long" if isinstance(kinds.get("id"), IntegralType) else "string"


def storage_folder(spark: SparkSession, storage: str | Path | None) -> Path:
    if storage is not None:
        return Path(str(storage).removeprefix("file:")).absolute()
    if not spark.conf.get("spark.master", "").startswith("local["):  # type: ignore[union-attr]
        raise NearcastError("storage: nothing given; on a cluster a folder needed that driver and workers share")
    return _temporary()


def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="nearcast-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _write_parts(rows: DataFrame, folder: Path, settings: Settings) -> tuple[list[str], int]:
    """Names in the order of partitions, and the number of rejected rows."""
    written = rows.mapInArrow(partial(_part_of, str(folder), settings), "part string, n long, rejected long").collect()
    parts = sorted((row["part"], row["rejected"]) for row in written)
    if not parts:  # a table without partitions
        write_part([], folder, "empty", settings)
        return ["empty"], 0
    return [name for name, _ in parts], sum(rejected for _, rejected in parts)


def _part_of(folder: str, settings: Settings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task that is tried again writes under another name; only what it reports is used."""
    context = TaskContext.get()
    number = context.partitionId() if context else 0
    name = f"{number:05d}-{uuid.uuid4().hex[:8]}"
    n, rejected = write_part(batches, Path(folder), name, settings)
    yield pa.RecordBatch.from_pydict({"part": [name], "n": [n], "rejected": [rejected]})


def _sample(messages: DataFrame | MessageFiles | None) -> Iterator[pa.RecordBatch]:
    """Messages from all over the table, as far as it can be read twice."""
    if isinstance(messages, MessageFiles):
        return messages.sample(SAMPLED)
    if messages is None or messages.isStreaming:
        return iter(())
    rows = columns_of(messages, MESSAGES, "messages")
    count = rows.count()
    share = min(1.0, 1.1 * SAMPLED / max(1, count))
    chosen = rows if share == 1.0 else rows.sample(fraction=share, seed=1)
    return iter(chosen.limit(SAMPLED).toArrow().to_batches())


def _build_shards(spark: SparkSession, folder: Path, names: list[str], settings: Settings, shards: int) -> None:
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] = partial(
        _shards_of, str(folder), names, settings
    )
    spark.range(0, shards, 1, shards).mapInArrow(task, "shard long, subscriptions long, bytes long").collect()


def _shards_of(
    folder: str, names: list[str], settings: Settings, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for shard in batch["id"].to_pylist():
            n, _, size = build_shard(Path(folder), names, settings, shard)
            yield pa.RecordBatch.from_pydict({"shard": [shard], "subscriptions": [n], "bytes": [size]})
