"""`match`: who wants which message, on tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from nearcast.files import MESSAGES
from nearcast.spark.build import Built, build, id_kind
from nearcast.spark.layouts import REPLICATED
from nearcast.spark.read import columns_of
from nearcast.spark.shard import SENT, SHARD, Job, match_batches, match_routed, route_batches

PAIR = ("message_id", "subscription_id")


def match(messages: DataFrame, subscriptions: DataFrame | Built | str | Path, **options: Any) -> DataFrame:
    """The pairs: message_id, subscription_id, each once.

    `subscriptions` is a table, or what `build` made of one; `options` are those of `build` (layout, shards,
    storage, space, analyzer, …). Building is done now, matching when the result is used. Rows that are no
    messages have no pairs; `outcome` has them too.
    """
    return pairs_of(outcome(messages, built(subscriptions, messages, **options)))


def built(subscriptions: DataFrame | Built | str | Path, messages: DataFrame | None, **options: Any) -> Built:
    if isinstance(subscriptions, Built):
        return subscriptions
    if isinstance(subscriptions, str | Path):
        return Built.load(Path(subscriptions))
    return build(subscriptions, messages=messages, **options)


def outcome(
    messages: DataFrame, subscriptions: Built, *, watermark: float | None = None, counting: bool = False
) -> DataFrame:
    """Pairs and rejected rows in one pass: message_id, subscription_id, reason, source.

    A pair has no reason; a row that is no message has a reason and its source, and no ids. A stream also asks
    for rows of counts (messages, late, latest), and says before which time a message is late.
    """
    rows = columns_of(messages, MESSAGES, "messages")
    manifest = subscriptions.manifest
    job = Job(str(subscriptions.folder), id_kind(rows), manifest.settings.ids, manifest.limited, watermark, counting)
    if manifest.report.chosen.layout == REPLICATED:
        found = rows.mapInArrow(partial(match_batches, job), outcome_schema(job))
    else:
        routed = rows.mapInArrow(partial(route_batches, job), _routed_schema(rows))
        placed = routed.repartitionById(manifest.shards, F.col(SHARD))
        found = placed.mapInArrow(partial(match_routed, job), outcome_schema(job))
    return _limited(found) if manifest.limited else found


def pairs_of(found: DataFrame) -> DataFrame:
    return found.where(F.col("subscription_id").isNotNull()).select(*PAIR)


def rejected_of(found: DataFrame) -> DataFrame:
    return found.where(F.col("reason").isNotNull()).select("reason", "source")


def outcome_schema(job: Job) -> str:
    names = {"string": "string", "int64": "long", "double": "double"}
    return ", ".join(f"{field.name} {names[str(field.type)]}" for field in job.schema())


def _routed_schema(rows: DataFrame) -> StructType:
    return StructType([*rows.schema.fields, StructField(SHARD, IntegerType()), StructField(SENT, BinaryType())])


def _limited(found: DataFrame) -> DataFrame:
    """Of a subscription that wants at most n events the first n: by time (none is earliest), then by id."""
    order = Window.partitionBy("subscription_id", F.col("reason")).orderBy("_ts", "message_id")
    ends = F.col("_most") < F.lit(float("inf"))
    free = found.where(F.col("_most").isNull() | ~ends)
    counted = found.where(ends).withColumn("_rank", F.row_number().over(order))
    kept = counted.where(F.col("_rank") <= F.col("_most"))
    return free.unionByName(kept.drop("_rank")).drop("_ts", "_most")
