"""`match_stream` and `run_stream`: who wants which message, as messages come and subscriptions change.

`match_stream` is a table of pairs for any sink, with one version of the subscriptions. `run_stream` takes the
version that is current when a batch begins, writes down which one that was before anything else, and uses it
again if the batch is tried again: with sinks that replace what an earlier try left, every pair is there once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.errors import NearcastError
from nearcast.spark.build import Built
from nearcast.spark.layouts import REPLICATED
from nearcast.spark.match import built, count_of, outcome, pairs_of, rejected_of
from nearcast.spark.read import columns_of
from nearcast.spark.sinks import Sink
from nearcast.spark.versions import CHANGES, Versions

Trigger = dict[str, Any]
ONCE: Trigger = {"availableNow": True}
"""Everything that is there, then stop."""


def match_stream(messages: DataFrame, subscriptions: DataFrame | Built | str | Path, **options: Any) -> DataFrame:
    """A stream of message_id, subscription_id, version: for `writeStream` and any sink of Spark's."""
    _check_stream(messages)
    made = built(subscriptions, None, **({"counts_events": False} | options))
    if made.manifest.limited:
        raise NearcastError(
            "some subscriptions have max_events; a stream keeps no count (build with counts_events=False)"
        )
    return pairs_of(outcome(messages, made)).withColumn("version", F.lit(made.manifest.version))


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What became of the rows of a batch."""

    batch: int
    version: str
    messages: int
    pairs: int
    rejected: int  # rows that are no messages
    late: int  # messages before the watermark: counted, not matched
    watermark: float | None  # for the next batch


def run_stream(
    messages: DataFrame,
    versions: Versions,
    sink: Sink,
    checkpoint: str | Path,
    *,
    late_after: float | None = None,
    trigger: Trigger | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
) -> StreamingQuery:
    """Start a query that matches against the current version. Results to `sink`, progress under `checkpoint`.

    With `late_after`, a message whose time is more than that many seconds before the latest of all earlier
    batches is late. `trigger` is that of Spark (`ONCE`, or {"processingTime": "1 second"}).
    """
    _check_stream(messages)
    folder = Path(str(checkpoint).removeprefix("file:")).absolute()
    log = _Log(folder / "nearcast")
    task = partial(_one_batch, versions, sink, log, late_after, on_batch)
    writer = messages.writeStream.foreachBatch(task).option("checkpointLocation", str(folder))
    return writer.trigger(**trigger).start() if trigger else writer.start()


def run_changes(
    changes: DataFrame, versions: Versions, checkpoint: str | Path, *, trigger: Trigger | None = None
) -> StreamingQuery:
    """Start a query that makes each batch of changes the next version of the subscriptions.

    Rows have `operation` (put or remove; put if not given), `id`, and the columns of a subscription. An id that
    is put again is replaced. Within a batch the last row of an id counts; rows that are no change are kept
    aside under the version's `rejected`.
    """
    _check_stream(changes)
    folder = Path(str(checkpoint).removeprefix("file:")).absolute()
    writer = changes.writeStream.foreachBatch(partial(_apply, versions, folder.name))
    writer = writer.option("checkpointLocation", str(folder))
    return writer.trigger(**trigger).start() if trigger else writer.start()


def _apply(versions: Versions, name: str, rows: DataFrame, batch: int) -> None:
    table = columns_of(rows, CHANGES, "changes").toArrow()
    if table.num_rows:
        versions.change(table.to_batches(), f"{name}/{batch}")


def _one_batch(
    versions: Versions,
    sink: Sink,
    log: _Log,
    late_after: float | None,
    on_batch: Callable[[BatchReport], None] | None,
    rows: DataFrame,
    batch: int,
) -> None:
    begun = log.begin(batch, versions)
    made = Built.load(versions.storage / begun["version"])
    _check_endless(made)
    if made.report.chosen.layout != REPLICATED:
        raise NearcastError(f"{made.folder}: layout {made.report.chosen.layout}; a changing stream needs replicated")
    found = outcome(rows, made, watermark=begun["watermark"], counting=True).persist(StorageLevel.DISK_ONLY)
    try:
        pairs = pairs_of(found).withColumn("version", F.lit(begun["version"]))
        sink.write(pairs, rejected_of(found), batch)
        report = _report(found, batch, begun, late_after)
    finally:
        found.unpersist()
    log.finish(report)
    if on_batch is not None:
        on_batch(report)


def _report(found: DataFrame, batch: int, begun: dict[str, Any], late_after: float | None) -> BatchReport:
    told = found.agg(
        F.sum("messages").alias("messages"),
        F.sum("late").alias("late"),
        F.max("latest").alias("latest"),
        count_of().alias("pairs"),
        F.count("reason").alias("rejected"),
    ).collect()[0]
    mark = begun["watermark"]
    if late_after is not None and told["latest"] is not None:
        mark = max(told["latest"] - late_after, -float("inf") if mark is None else mark)
    return BatchReport(
        batch,
        begun["version"],
        told["messages"] or 0,
        told["pairs"],
        told["rejected"],
        told["late"] or 0,
        mark,
    )


class _Log:
    """Beside Spark's checkpoint: by batch, what was decided at its start and what came of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, batch: int, versions: Versions) -> dict[str, Any]:
        """Version and watermark of the batch: those of its first try, if there was one."""
        decided = self._read(f"{batch}.begun")
        if decided is None:
            before = self._read(f"{batch - 1}.done") or {}
            decided = {"version": versions.current().name, "watermark": before.get("watermark")}
            self._write(f"{batch}.begun", decided)
        return decided

    def finish(self, report: BatchReport) -> None:
        self._write(f"{report.batch}.done", asdict(report))

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self._folder / f"{name}.json"
        return dict(json.loads(path.read_text())) if path.exists() else None

    def _write(self, name: str, values: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._folder / f".{name}"
        part.write_text(json.dumps(values))
        os.replace(part, self._folder / f"{name}.json")


def _check_endless(made: Built) -> None:
    if made.manifest.limited:
        raise NearcastError("max_events given; a stream keeps no count of events (build with counts_events=False)")


def _check_stream(frame: DataFrame) -> None:
    if not frame.isStreaming:
        raise NearcastError("a table given; a stream needed (spark.readStream, read_stream, read_kafka)")
