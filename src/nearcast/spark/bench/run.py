"""The measurements of one Spark session. Answers are compared before anything is timed; nobody runs beyond a limit."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.spark.bench.contestants import FILES_READ, FRAMES, JOINS, Frames, as_rows, count, embedded, through_python
from nearcast.spark.bench.cost import Mapped, Spent, mapped, spent
from nearcast.spark.bench.world import World
from nearcast.spark.session import session
from nearcast.spark.sinks import FileSink
from nearcast.spark.stream import ONCE, match_stream, run_stream
from nearcast.spark.versions import Versions

EMBEDDED = "embedded"
AS_ROWS = "replicated, files read by workers, a row of Spark's for every pair"
THROUGH = "Spark alone: the messages to Python and back"
STREAMED = 1_000_000
"""Subscriptions up to which streams are measured: beyond, batches are mostly the writing of pairs."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One contestant on one world. Without a time it was stopped at the limit."""

    name: str
    pairs: int | None  # none: it looks for none
    cpu: float | None  # microseconds a message, the median of the rounds
    wall: float | None
    stopped: float | None = None  # seconds


@dataclass(frozen=True, slots=True)
class StreamFigure:
    """Micro-batches of one size."""

    name: str
    messages: int  # of a batch
    batches: int
    latency: dict[str, float]  # milliseconds by percentile, without the first batch
    per_s: float  # messages, over all batches but the first


@dataclass(frozen=True, slots=True)
class Case:
    subscriptions: int
    messages: int
    figures: list[Figure]
    streams: list[StreamFigure]
    memory: Mapped
    snapshot_bytes: int
    first_match_s: float


@dataclass(frozen=True, slots=True)
class Report:
    master: str
    cores: int
    start_s: float
    spatial_functions: list[str]
    cases: list[Case]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done for a figure."""

    rounds: int = 3  # the median of these
    warm: int = 3  # rounds before, untimed: Java compiles what it runs often
    limit: float = 120.0  # seconds after which a contestant is stopped
    joins: bool = True


def measure(master: str, worlds: list[World], effort: Effort, *, work: Path, tell: Callable[[Report], None]) -> Report:
    """Start a session and measure all worlds, the smallest first. `tell` gets the report after each."""
    began = time.perf_counter()
    spark = session(master, settings={"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "4"})
    spark.range(1).count()
    started = time.perf_counter() - began
    cores = spark.sparkContext.defaultParallelism
    functions = [row[0] for row in spark.sql("SHOW FUNCTIONS LIKE 'st_*'").collect()]
    report = Report(master, cores, started, functions, [])
    for world in worlds:
        report.cases.append(_case(spark, world, cores, effort, work))
        tell(report)
    return report


def _case(spark: SparkSession, world: World, cores: int, effort: Effort, work: Path) -> Case:
    first = spent(partial(_count, FRAMES[FILES_READ], spark, world)).wall
    shard = world.built.folder / "shard-000"
    figures = compare(spark, world, cores, effort)
    memory = mapped(spark, shard, cores)  # before streams: they end some workers
    return Case(
        world.subscriptions,
        world.messages,
        figures,
        list(_streams(spark, world, effort.limit, work)) if world.subscriptions <= STREAMED else [],
        memory,
        sum(file.stat().st_size for file in shard.rglob("*") if file.is_file()),
        first,
    )


def compare(spark: SparkSession, world: World, cores: int, effort: Effort) -> list[Figure]:
    """Everybody's answer once, then in turns; AssertionError where somebody finds other pairs."""
    frames = {name: frame for name, frame in FRAMES.items() if effort.joins or name not in JOINS}
    runs: dict[str, Callable[[], int]] = {EMBEDDED: partial(embedded, world, cores)}
    runs |= {name: partial(_count, frame, spark, world) for name, frame in frames.items()}
    answers = {name: limited(spark, effort.limit, run) for name, run in runs.items()}
    found = {count for count in answers.values() if count is not None}
    if len(found) != 1:
        raise AssertionError(f"contestants disagree: {answers}")
    frames = {name: frame for name, frame in frames.items() if answers[name] is not None}
    frames |= {AS_ROWS: as_rows, THROUGH: through_python}
    timed: dict[str, Callable[[], object]] = {EMBEDDED: runs[EMBEDDED]}
    timed |= {name: partial(_discard, frame, spark, world) for name, frame in frames.items()}
    for name in [name for name in timed if name not in JOINS] * effort.warm:
        timed[name]()
    taken: dict[str, list[Spent]] = {name: [] for name in timed}
    for _ in range(effort.rounds):
        for name, run in timed.items():
            taken[name].append(spent(run))
            cpu, wall = taken[name][-1]
            print(f"{world.subscriptions:,} {name}: {cpu:.2f} s CPU, {wall:.2f} s wall", file=sys.stderr, flush=True)
    answers |= {AS_ROWS: answers[FILES_READ], THROUGH: None}
    return [_figure(name, answers[name], taken.get(name, []), world.messages, effort.limit) for name in answers]


def _figure(name: str, pairs: int | None, taken: list[Spent], messages: int, limit: float) -> Figure:
    if not taken:
        return Figure(name, None, None, None, limit)
    each = 1e6 / messages
    return Figure(name, pairs, median(t.cpu for t in taken) * each, median(t.wall for t in taken) * each)


def limited(spark: SparkSession, limit: float, run: Callable[[], int]) -> int | None:
    """The result; None if the jobs took longer than the limit and were stopped."""
    group = uuid.uuid4().hex
    spark.sparkContext.setJobGroup(group, "nearcast bench", interruptOnCancel=True)
    done, late = threading.Event(), threading.Event()

    def watch() -> None:
        """Again and again: a job may begin after its group was stopped."""
        while not done.wait(1.0 if late.is_set() else limit):
            late.set()
            spark.sparkContext.cancelJobGroup(group)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return run()
    except Exception:
        if late.is_set():
            return None
        raise
    finally:
        done.set()
        watcher.join()
        spark.sparkContext.setJobGroup("", "")


def _count(frame: Frames, spark: SparkSession, world: World) -> int:
    return count(frame(spark, world))


def _discard(frame: Frames, spark: SparkSession, world: World) -> None:
    frame(spark, world).write.format("noop").mode("overwrite").save()


# -- streams ----------------------------------------------------------------------------------------------


def _streams(spark: SparkSession, world: World, limit: float, work: Path) -> Iterator[StreamFigure]:
    name, folder = f"{world.subscriptions}", work / uuid.uuid4().hex
    schema = spark.read.parquet(str(world.stream)).schema

    def posts() -> DataFrame:
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(world.stream))

    nowhere = match_stream(posts(), world.built).writeStream.format("noop")
    query = nowhere.option("checkpointLocation", str(folder / "nowhere")).trigger(availableNow=True).start()
    yield _stream_figure("into nothing", query, limit)
    versions = Versions(world.built.folder.parent)
    versions.publish(world.built.folder)
    sink = FileSink(folder / f"pairs-{name}")
    query = run_stream(posts(), versions, sink, folder / "c", trigger=ONCE)
    yield _stream_figure("into files, exactly once", query, limit)


def _stream_figure(name: str, query: StreamingQuery, limit: float) -> StreamFigure:
    """Of the batches that were done within the limit, without the first."""
    query.awaitTermination(max(1, round(limit)))
    told: list[Any] = [p for p in query.recentProgress if p["numInputRows"]][1:]
    query.stop()
    taken = sorted(float(p["durationMs"]["triggerExecution"]) for p in told)
    latency = {f"p{p}": taken[min(len(taken) - 1, len(taken) * p // 100)] if taken else 0.0 for p in (50, 90, 99)}
    rows = sum(int(p["numInputRows"]) for p in told)
    return StreamFigure(name, rows // max(1, len(told)), len(told), latency, rows / max(1e-3, sum(taken) / 1e3))
