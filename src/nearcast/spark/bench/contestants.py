"""Who is compared: the embedded engine, `match` on Spark with files and with rows, and two joins that one would write
without nearcast.

Each reads the posts from the same file and finds all pairs of ids; they are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from nearcast.columns.encoder import TextEncoder
from nearcast.spark.bench.world import World
from nearcast.spark.match import count_of, outcome, pairs_of
from nearcast.spark.message_files import files
from nearcast.spark.shard import WANTED, opened
from nearcast.spark.storage import load_lexicon

ROWS = "replicated, rows through Spark"
FILES_READ = "replicated, files read by workers"

Frames = Callable[[SparkSession, World], DataFrame]


def embedded(world: World, threads: int) -> int:
    """Parquet, texts, terms, pairs, ids: all in this process; as many threads as Spark has cores. The pairs."""
    opened(str(world.built.folder)).shard(0)  # before threads ask: Python 3.11 cannot read headers of arrays in two
    groups = list(range(pq.ParquetFile(world.posts).num_row_groups))
    with ThreadPoolExecutor(threads) as pool:
        parts = [
            (world, encoder, groups[i::threads]) for i, encoder in enumerate(_encoders(world.built.folder, threads))
        ]
        return sum(pool.map(_groups, parts))


@lru_cache(maxsize=1)
def _encoders(folder: Path, threads: int) -> list[TextEncoder]:
    """Kept from one run to the next, as Spark's workers keep theirs."""
    lexicon = load_lexicon(folder)
    return [TextEncoder(lexicon) for _ in range(threads)]


def _groups(part: tuple[World, TextEncoder, list[int]]) -> int:
    world, encoder, groups = part
    shard = opened(str(world.built.folder)).shard(0)
    file = pq.ParquetFile(world.posts)
    found = 0
    for group in groups:
        rows = file.read_row_group(group, ["id", "text", "lon", "lat"]).combine_chunks().to_batches()[0]
        places = np.stack([rows["lon"].to_numpy(), rows["lat"].to_numpy()], axis=1)
        message, slot = shard.index.match(encoder.encode(rows["text"], places)[0])
        pairs = pa.record_batch([rows["id"].take(pa.array(message)), shard.ids.take(pa.array(slot))], ["m", "s"])
        found += pairs.num_rows
    return found


def replicated(spark: SparkSession, world: World) -> DataFrame:
    """The texts, as `embedded` reads them; the file's column of terms is for the joins."""
    return outcome(spark.read.parquet(str(world.posts)).drop("terms"), world.built)


def replicated_files(_: SparkSession, world: World) -> DataFrame:
    """The same texts, read by the workers."""
    return outcome(files(world.posts), world.built)


def as_rows(spark: SparkSession, world: World) -> DataFrame:
    """A row for every pair instead of a list for every message."""
    return pairs_of(replicated_files(spark, world))


def through_python(spark: SparkSession, world: World) -> DataFrame:
    """The rows of the posts to Python and back, untouched: what Spark itself asks for, whatever is done there."""
    posts = spark.read.parquet(str(world.posts)).drop("terms")
    return posts.mapInArrow(_untouched, posts.schema)


def _untouched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def count(found: DataFrame) -> int:
    """How many pairs there are, as rows or in lists."""
    return int(found.agg(count_of()).collect()[0][0]) if WANTED in found.columns else found.count()


def _sides(spark: SparkSession, world: World) -> tuple[DataFrame, DataFrame]:
    posts = (
        spark.read.parquet(str(world.posts)).withColumnRenamed("id", "message_id").withColumnRenamed("terms", "held")
    )
    return posts, spark.read.parquet(str(world.wishes)).withColumnRenamed("id", "subscription_id")


def _touches() -> F.Column:  # type: ignore[name-defined]
    return F.col("lon").between(F.col("west"), F.col("east")) & F.col("lat").between(F.col("south"), F.col("north"))


def join_and_count(spark: SparkSession, world: World) -> DataFrame:
    """Explode both sides, join on the word and the box, count: a pair needs as many words as are required."""
    posts, wishes = _sides(spark, world)
    left = posts.select("message_id", "lon", "lat", F.explode("held").alias("word"))
    right = (
        wishes.withColumn("required", F.size("terms")).withColumn("word", F.explode("terms")).drop("terms", "rarest")
    )
    found = left.join(right, (left["word"] == right["word"]) & _touches())
    counted = found.groupBy("message_id", "subscription_id", "required").count()
    return counted.where(F.col("count") == F.col("required")).select("message_id", "subscription_id")


def join_on_rarest(spark: SparkSession, world: World) -> DataFrame:
    """Join on each subscription's rarest word and the box, then test the other words: the better plan."""
    posts, wishes = _sides(spark, world)
    left = posts.select("message_id", "lon", "lat", "held", F.explode("held").alias("word"))
    found = left.join(wishes, (left["word"] == wishes["rarest"]) & _touches())
    complete = F.size(F.array_except("terms", "held")) == 0
    return found.where(complete).select("message_id", "subscription_id")


JOINS: dict[str, Frames] = {
    "sql: join on rarest word": join_on_rarest,
    "sql: join and count": join_and_count,
}
FRAMES: dict[str, Frames] = {FILES_READ: replicated_files, ROWS: replicated, **JOINS}
