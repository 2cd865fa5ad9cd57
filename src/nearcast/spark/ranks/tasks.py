"""What Spark runs for a batch of rankings: sieves, a shuffle of what they found, owners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from nearcast.spark.ranks import host
from nearcast.spark.ranks.plan import RankSettings
from nearcast.spark.ranks.sieve import Found
from nearcast.spark.ranks.told import Told
from nearcast.spark.sinks import Parts

_SIFTED = "owner int, row int, wish long, score double"
_MARK = -1  # in `row`: not a candidate; `score` says how many messages a sieve looked at


def settled(spark: SparkSession, folder: Path, settings: RankSettings, batch: int) -> DataFrame:
    """The changes of a batch that was decided."""
    wish, message = settings.wish_ids, settings.message_ids  # both are names of Spark's types
    schema = (
        f"wish_id {wish}, edition long, seq long, operation string, message_id {message}, score double, "
        f"because_of {message}"
    )
    return _sifted(spark, folder, settings, batch).mapInArrow(partial(_settle, folder, settings, batch), schema)


def write_settled(spark: SparkSession, folder: Path, settings: RankSettings, batch: int, parts: Parts) -> None:
    """The same, put into parts by the workers."""
    found = _sifted(spark, folder, settings, batch)
    found.mapInArrow(partial(_settle_into, parts, folder, settings, batch), "shard int").collect()


def _sifted(spark: SparkSession, folder: Path, settings: RankSettings, batch: int) -> DataFrame:
    """Numbers of shards, or what sieves found for them."""
    shards = spark.range(0, settings.shards, 1, settings.shards)
    if not settings.is_sifted:
        return shards
    found = shards.mapInArrow(partial(_sift, folder, settings.shards, batch), _SIFTED)
    return found.repartitionById(settings.shards, F.col("owner"))


def _sift(folder: Path, shards: int, batch: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for numbers in batches:
        for shard in numbers["id"].to_pylist():
            found, looked_at = host.ask(folder, "probe", batch, shard)
            mark = pa.record_batch(
                {
                    "owner": pa.array([shard], pa.int32()),
                    "row": pa.array([_MARK], pa.int32()),
                    "wish": pa.array([shard], pa.int64()),
                    "score": pa.array([float(looked_at)]),
                }
            )
            yield mark
            yield pa.record_batch(
                {
                    "owner": pa.array((found.wishes % shards).astype(np.int32)),
                    "row": pa.array(found.rows),
                    "wish": pa.array(found.wishes),
                    "score": pa.array(found.scores),
                }
            )


def _settle(
    folder: Path, settings: RankSettings, batch: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for _, rows in _changes(folder, settings, batch, batches):
        yield rows


def _settle_into(
    parts: Parts, folder: Path, settings: RankSettings, batch: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for shard, rows in _changes(folder, settings, batch, batches):
        parts.put(f"{shard:03d}", rows)
        yield pa.record_batch({"shard": pa.array([shard], pa.int32())})


def _changes(
    folder: Path, settings: RankSettings, batch: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """By shard."""
    by_owner: dict[int, list[Found]] = {}
    looked_at: dict[int, int] = {}
    for rows in batches:
        if "id" in rows.schema.names:
            by_owner |= {shard: [] for shard in rows["id"].to_pylist()}
            continue
        owner, row = np.asarray(rows["owner"]), np.asarray(rows["row"])
        wish, score = np.asarray(rows["wish"]), np.asarray(rows["score"])
        for shard in np.unique(owner).tolist():
            marks = (owner == shard) & (row == _MARK)
            looked_at[shard] = looked_at.get(shard, 0) + int(score[marks].sum())
            chosen = (owner == shard) & (row != _MARK)
            by_owner.setdefault(shard, []).append(Found(row[chosen], wish[chosen], score[chosen]))
    for shard, parts in by_owner.items():
        found = Found(*(np.concatenate(column) for column in zip(Found.none(), *parts, strict=True)))
        yield shard, _rows(settings, *host.ask(folder, "settle", batch, shard, found, looked_at.get(shard)))


def _rows(
    settings: RankSettings, told: Told, wishes: pa.Array, messages: pa.Array, because: pa.Array
) -> pa.RecordBatch:
    kinds = {"string": pa.string(), "long": pa.int64()}
    wish, message = kinds[settings.wish_ids], kinds[settings.message_ids]
    return pa.record_batch(
        {
            "wish_id": wishes.cast(wish),
            "edition": pa.array(told.wish),
            "seq": pa.array(told.seq),
            "operation": pa.array(["leave", "enter"]).take(pa.array(told.entered.astype(np.int8))),
            "message_id": messages.cast(message),
            "score": pa.array(told.score),
            "because_of": because.cast(message),
        }
    )
