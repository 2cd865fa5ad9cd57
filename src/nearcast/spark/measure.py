"""What matching on Spark costs, beside the embedded engine and a join in SQL, on the same generated world.

CPU time of all processes (driver, Java, Python workers) is counted, because it tells the same story on a busy
machine; wall time is shown beside it. Answers are compared before anything is timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from nearcast import indexes
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.columns.encoder import TextEncoder
from nearcast.spark.build import build
from nearcast.spark.match import match
from nearcast.spark.session import ROWS_A_BATCH
from nearcast.spark.shard import opened
from nearcast.spark.storage import load_lexicon
from nearcast.workloads import messages as generate_messages
from nearcast.workloads import subscriptions as generate_subscriptions

_TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    cpu: float  # seconds, of this process and all below it
    wall: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One contestant: best of its rounds."""

    name: str
    messages: int
    pairs: int
    spent: Spent

    def __str__(self) -> str:
        each = 1e6 / self.messages
        return (
            f"{self.name:<14}{self.pairs:>12,} pairs{self.spent.cpu * each:>10.2f} µs CPU a message"
            f"{self.spent.wall * each:>10.2f} µs wall"
        )


def compare(spark: SparkSession, folder: Path, n_subscriptions: int, n_messages: int, rounds: int) -> list[Figure]:
    """The embedded engine, `match` (replicated) and the SQL join; raises if they disagree."""
    batch = generate_messages(n_messages, 1)
    wishes = generate_subscriptions(batch, n_subscriptions, 2)
    posts = _stored(spark, _posts(batch), folder / "posts.parquet")
    wanted = _stored(spark, _wishes(wishes), folder / "wishes.parquet")
    made = build(wanted, folder / "storage", layout="replicated")
    version = opened(str(made.folder))
    engine, encoder = version.shard(0).index, TextEncoder(load_lexicon(made.folder))
    contestants: dict[str, Callable[[], int]] = {
        "embedded": lambda: _embedded(folder / "posts.parquet", encoder, engine),
        "spark": lambda: match(posts, made).count(),
        "sql join": lambda: sql_join(posts, wanted).count(),
    }
    found = {name: run() for name, run in contestants.items()}
    if len(set(found.values())) != 1:
        raise AssertionError(f"contestants disagree: {found}")
    best: dict[str, Spent] = {}
    for _ in range(rounds):
        for name, run in contestants.items():
            spent = _spent(run)
            best[name] = min(best.get(name, spent), spent)
    return [Figure(name, n_messages, found[name], best[name]) for name in contestants]


def _embedded(path: Path, encoder: TextEncoder, engine: indexes.EntryIndex) -> int:
    """The same file, read by Arrow into the engine of this process."""
    total = 0
    for rows in pq.ParquetFile(path).iter_batches(batch_size=ROWS_A_BATCH, columns=["text", "lon", "lat"]):
        places = np.stack([rows["lon"].to_numpy(), rows["lat"].to_numpy()], axis=1)
        total += len(engine.match(encoder.encode(rows["text"], places)[0]).slot)
    return total


def sql_join(posts: DataFrame, wishes: DataFrame) -> DataFrame:
    """What one would write without nearcast: join on the first required term, then box and all terms."""
    left = posts.select(F.col("id").alias("message_id"), "lon", "lat", F.col("terms").alias("held"))
    left = left.withColumn("term", F.explode("held"))
    right = wishes.withColumnRenamed("id", "subscription_id").withColumn("term", F.element_at("terms", 1))
    touching = F.col("lon").between(F.col("west"), F.col("east")) & F.col("lat").between(F.col("south"), F.col("north"))
    joined = left.join(right, "term").where(touching)
    complete = F.size(F.array_except("terms", "held")) == 0
    return joined.where(complete).select("message_id", "subscription_id")


def _posts(batch: MessageBatch) -> pa.Table:
    """Points with their words as text, and the words apart for the join, which has no analyzer."""
    words = _words(batch.term_from, batch.terms)
    texts = pc.binary_join(words, " ")
    places = {"lon": batch.boxes[:, 0], "lat": batch.boxes[:, 1]}
    return pa.table({"id": np.arange(len(batch)), "text": texts, **places, "terms": words})


def _wishes(wishes: SubscriptionColumns) -> pa.Table:
    sides = {name: wishes.boxes[:, i] for i, name in enumerate(("west", "south", "east", "north"))}
    return pa.table({"id": np.arange(len(wishes)), **sides, "terms": _words(wishes.term_from, wishes.terms)})


def _words(term_from: NDArray[np.int64], terms: NDArray[np.int32]) -> pa.ListArray:
    words = pc.binary_join_element_wise("w", pc.cast(pa.array(terms), pa.string()), "")
    return pa.ListArray.from_arrays(pa.array(term_from.astype(np.int32)), words)


def _stored(spark: SparkSession, table: pa.Table, path: Path) -> DataFrame:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=50_000)
    return spark.read.parquet(str(path))


def _spent(run: Callable[[], object]) -> Spent:
    cpu, wall = _cpu(), time.perf_counter()
    run()
    return Spent(_cpu() - cpu, time.perf_counter() - wall)


def _cpu() -> float:
    """Seconds of CPU of this process and of all that descend from it, dead ones that were waited for too."""
    stats = [_stat(path) for path in Path("/proc").glob("[0-9]*/stat")]
    parents = {pid: parent for pid, parent, _ in filter(None, stats)}
    spent = {pid: ticks for pid, _, ticks in filter(None, stats)}
    return sum(ticks for pid, ticks in spent.items() if _is_below(pid, parents)) / _TICKS


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        text = path.read_text()
    except OSError:  # gone meanwhile
        return None
    fields: Sequence[str] = text.rpartition(")")[2].split()
    return int(path.parent.name), int(fields[1]), sum(map(int, fields[11:15]))


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid not in (0, 1, os.getpid()):
        pid = parents.get(pid, 0)
    return pid == os.getpid()
