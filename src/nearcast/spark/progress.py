"""How far Spark's jobs have come, as a bar on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

EVERY = 0.25  # seconds


@contextmanager
def progress(spark: SparkSession, label: str, shown: bool | None = None) -> Iterator[None]:
    """A bar of the tasks that run meanwhile; nothing where standard error is no terminal."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    done = threading.Event()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(label, total=None)
        watcher = threading.Thread(target=_watch, args=(spark, bars, bar, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _watch(spark: SparkSession, bars: Progress, bar: object, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not done.wait(EVERY):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        total = sum(stage.numTasks for stage in known)
        if total:
            bars.update(bar, completed=sum(stage.numCompletedTasks for stage in known), total=total)  # type: ignore[arg-type]
