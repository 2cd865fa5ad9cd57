"""`match`: who wants which message, on tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from nearcast.files import MESSAGES
from nearcast.spark.build import Built, build, id_kind, parallelism
from nearcast.spark.layouts import REPLICATED
from nearcast.spark.message_files import MessageFiles
from nearcast.spark.pieces import match_files
from nearcast.spark.read import columns_of
from nearcast.spark.shard import SENT, SHARD, WANTED, Job, match_batches, match_routed, route_batches
from nearcast.spark.splits import spread


def match(
    messages: DataFrame | MessageFiles, subscriptions: DataFrame | Built | str | Path, **options: Any
) -> DataFrame:
    """The pairs: message_id, subscription_id, each once.

    `messages` are a table, or `files` that the workers read. `subscriptions` is a table, or what `build` made of
    one; `options` are those of `build` (layout, shards, storage, space, analyzer, …). Building is done now, matching
    when the result is used. Rows that are no messages have no pairs; `outcome` has them too.
    """
    return pairs_of(outcome(messages, built(subscriptions, messages, **options)))


def built(
    subscriptions: DataFrame | Built | str | Path, messages: DataFrame | MessageFiles | None, **options: Any
) -> Built:
    if isinstance(subscriptions, Built):
        return subscriptions
    if isinstance(subscriptions, str | Path):
        return Built.load(Path(subscriptions))
    return build(subscriptions, messages=messages, **options)


def outcome(
    messages: DataFrame | MessageFiles,
    subscriptions: Built,
    *,
    watermark: float | None = None,
    counting: bool = False,
) -> DataFrame:
    """Pairs and rejected rows in one pass: message_id, subscription_ids, reason, source.

    A message that is wanted has no reason, and may have several rows; a row that is no message has a reason and
    its source, and no ids. A stream also asks for rows of counts (messages, late, latest), and says before which
    time a message is late. `pairs_of`, `count_of` and `rejected_of` take it apart.
    """
    manifest = subscriptions.manifest
    given = messages if workers_read(messages, subscriptions) else as_table(messages)
    ids = given.ids if isinstance(given, MessageFiles) else id_kind(given)
    job = Job(str(subscriptions.folder), ids, manifest.settings.ids, manifest.limited, watermark, counting)
    if isinstance(given, MessageFiles):
        found = _by_workers(given, job)
    elif manifest.report.chosen.layout == REPLICATED:
        found = given.mapInArrow(partial(match_batches, job), outcome_schema(job))
    else:
        routed = given.mapInArrow(partial(route_batches, job), _routed_schema(given))
        placed = routed.repartitionById(manifest.shards, F.col(SHARD))
        found = placed.mapInArrow(partial(match_routed, job), outcome_schema(job))
    return _limited(found, job) if manifest.limited else found


def workers_read(messages: DataFrame | MessageFiles, subscriptions: Built) -> bool:
    """Whether rows never pass through Spark: they do where a layout sends them to shards."""
    return isinstance(messages, MessageFiles) and subscriptions.report.chosen.layout == REPLICATED


def as_table(messages: DataFrame | MessageFiles) -> DataFrame:
    if isinstance(messages, MessageFiles):
        return messages.table(SparkSession.active())
    return columns_of(messages, MESSAGES, "messages")


def _by_workers(messages: MessageFiles, job: Job) -> DataFrame:
    """A row of Spark's is the number of a split, and has a task of its own."""
    spark = SparkSession.active()
    splits = spread(messages.groups, parallelism(spark))
    numbers = spark.range(0, len(splits), 1, max(1, len(splits)))
    return numbers.mapInArrow(partial(match_files, job, splits), outcome_schema(job))


def pairs_of(found: DataFrame) -> DataFrame:
    return found.select("message_id", F.explode(WANTED).alias("subscription_id"))


def count_of() -> Column:
    """How many pairs an outcome has, for `agg`: without making a row of each."""
    return F.coalesce(F.sum(F.size(WANTED)), F.lit(0))


def rejected_of(found: DataFrame) -> DataFrame:
    return found.where(F.col("reason").isNotNull()).select("reason", "source")


def outcome_schema(job: Job) -> StructType:
    """As a value, not as text, which Java would have to read first. No id in a list is null: Java need not ask."""
    kinds: dict[str, DataType] = {"string": StringType(), "int64": LongType(), "double": DoubleType()}
    kinds |= {f"list<item: {name}>": ArrayType(kind, containsNull=False) for name, kind in kinds.items()}
    return StructType([StructField(field.name, kinds[str(field.type)]) for field in job.schema()])


def _routed_schema(rows: DataFrame) -> StructType:
    return StructType([*rows.schema.fields, StructField(SHARD, IntegerType()), StructField(SENT, BinaryType())])


def _limited(found: DataFrame, job: Job) -> DataFrame:
    """Of a subscription that wants at most n events the first n: by time (none is earliest), then by id."""
    others = [name for name in job.schema().names if name not in (WANTED, "_most")]
    each = found.select(
        *others, F.inline_outer(F.arrays_zip(F.col(WANTED).alias("wanted"), F.col("_most").alias("most")))
    )
    order = Window.partitionBy("wanted", F.col("reason")).orderBy("_ts", "message_id")
    ends = F.col("most") < F.lit(float("inf"))
    free = each.where(F.col("most").isNull() | ~ends)
    counted = each.where(ends).withColumn("_rank", F.row_number().over(order))
    kept = free.unionByName(counted.where(F.col("_rank") <= F.col("most")).drop("_rank"))
    ids = F.when(F.col("wanted").isNotNull(), F.array("wanted")).alias(WANTED)
    return kept.select("message_id", ids, *(name for name in others if name not in ("message_id", "_ts")))
