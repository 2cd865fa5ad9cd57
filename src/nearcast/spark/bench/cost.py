"""What a run costs: processor time of all processes below this one, time on the clock, memory that is mapped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

_TICKS = os.sysconf("SC_CLK_TCK")
_MEMORY = "pid long, pss long, rss long"
_TOGETHER = 2.0
"""Seconds that a task of `mapped` waits, so that each runs in a worker of its own."""


class Spent(NamedTuple):
    cpu: float  # seconds, of this process and all below it: driver, Java, Python workers
    wall: float


def spent(run: Callable[[], object]) -> Spent:
    cpu, wall = _cpu(), time.perf_counter()
    run()
    return Spent(_cpu() - cpu, time.perf_counter() - wall)


def _cpu() -> float:
    """Seconds of this process and of all that descend from it, dead ones that were waited for too."""
    stats = [_stat(path) for path in Path("/proc").glob("[0-9]*/stat")]
    parents = {pid: parent for pid, parent, _ in filter(None, stats)}
    ticks = {pid: n for pid, _, n in filter(None, stats)}
    return sum(n for pid, n in ticks.items() if _is_below(pid, parents)) / _TICKS


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


class Mapped(NamedTuple):
    """Of all workers: how many, and the bytes of files below a folder that they have in memory."""

    workers: int
    shared: int  # each page counted once (the sum of PSS)
    apart: int  # each page counted for every worker that has it (the sum of RSS)


def mapped(spark: object, folder: Path, workers: int) -> Mapped:
    """Asked in as many tasks as there are workers."""
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    tasks = spark.range(0, workers, 1, workers).mapInArrow(_Asked(str(folder)), _MEMORY).collect()
    by_worker = {row["pid"]: row for row in tasks}
    return Mapped(len(by_worker), *(sum(row[name] for row in by_worker.values()) for name in ("pss", "rss")))


class _Asked:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            time.sleep(_TOGETHER)
            pss, rss = mapped_here(Path("/proc/self/smaps").read_text(), self._folder)
            yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "pss": [pss], "rss": [rss]})


def mapped_here(smaps: str, folder: str) -> tuple[int, int]:
    """Bytes (PSS, RSS) of the mappings of files below the folder."""
    found = {"Pss": 0, "Rss": 0}
    inside = False
    for line in smaps.splitlines():
        name, _, rest = line.partition(":")
        if "-" in name.split(" ")[0]:  # addresses: a mapping begins
            inside = folder in line
        elif inside and name in found:
            found[name] += int(rest.split()[0]) * 1024
    return found["Pss"], found["Rss"]
