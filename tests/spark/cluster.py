"""Two executors in processes of their own (`make test-cluster`): the same pairs, also when one of them is killed.

Not collected by `make test`: a process has one Spark session, and this one is another.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nearcast.errors import NearcastError
from nearcast.ranking import Window
from nearcast.spark import ONCE, BatchReport, FileSink, Versions, build, match, run_stream, session
from nearcast.spark.ranks import host
from nearcast.spark.sinks import Parts
from tests.spark import records
from tests.spark.conftest import SHORT_LIVED
from tests.spark.test_match import POSTS, TRUTH, WISHES, frame
from tests.spark.test_match import pairs as pairs_of_table
from tests.spark.test_rank_stream import ROWS, World, check, run
from tests.spark.test_stream import finished, pairs, stream, write_lines

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    running = session("local-cluster[2,1,1024]", settings={**SHORT_LIVED, "spark.executorEnv.PYTHONPATH": paths})
    yield running
    running.stop()


def _where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"executor": [_executor()]})


def _executor() -> int:
    """The process of the executor: the parent of the daemon that is the parent of this worker."""
    daemon = os.getppid()
    return int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])


def _kills_executor_once(flag: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        if not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(_executor(), signal.SIGKILL)


@pytest.mark.parametrize("layout", ["replicated", "location", "keyword-first"])
def test_executors_give_the_pairs_of_the_reference(spark: Any, tmp_path: Path, layout: str) -> None:
    wishes, posts = frame(spark, WISHES), frame(spark, POSTS, 4)
    made = build(wishes, tmp_path, layout=layout, shards=4, messages=posts)
    assert pairs_of_table(match(posts, made)) == TRUTH


def test_storage_must_be_named_where_machines_may_differ(spark: Any) -> None:
    with pytest.raises(NearcastError, match="storage: nothing given"):
        build(frame(spark, WISHES))


def test_a_killed_executor_loses_and_repeats_nothing(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "posts").mkdir()
    for number in range(3):
        part = [{**post, "id": post["id"] + 1000 * number} for post in POSTS]
        write_lines(tmp_path / "posts" / f"{number}.ndjson", part)
    made = build(frame(spark, WISHES), tmp_path / "storage", layout="replicated", counts_events=False)
    versions = Versions(tmp_path / "storage")
    versions.publish(made.folder)
    executors = spark.range(8).repartition(8).mapInArrow(_where, "executor long").distinct().count()
    deadly = stream(spark, tmp_path).mapInArrow(partial(_kills_executor_once, str(tmp_path / "died")), "value binary")
    reports: list[BatchReport] = []
    sink = FileSink(tmp_path / "out")
    finished(run_stream(deadly, versions, sink, tmp_path / "c", trigger=ONCE, on_batch=reports.append))
    assert executors == 2
    assert (tmp_path / "died").exists()
    every = [{**post, "id": post["id"] + 1000 * number} for number in range(3) for post in POSTS]
    assert pairs(spark, tmp_path / "out") == Counter(records.truth(WISHES, every))
    assert [report.messages for report in reports] == [len(POSTS)] * 3


@dataclass(frozen=True)
class DeadlyParts(Parts):
    """The executor is killed when a shard is written; once."""

    flag: str

    def put(self, name: str, rows: pa.RecordBatch) -> None:
        Parts.put(self, name, rows)
        for _ in _kills_executor_once(self.flag, iter([rows, rows])):
            continue


class DeadlySink(FileSink):
    """In batch 1 an executor is killed when its first shard is settled; perhaps with the host of shards."""

    flag = ""
    host_of: Path | None = None

    def parts(self, batch: int) -> Parts | None:
        parts = FileSink.parts(self, batch)
        if parts is None or batch != 1:
            return parts
        if self.host_of is not None:
            os.kill(host.ask(self.host_of, "ping"), signal.SIGKILL)
        return DeadlyParts(parts.folder, self.flag)


@pytest.mark.parametrize(("distribution", "host_dies"), [("hash", False), ("prefix", True)])
def test_rankings_survive_a_killed_executor(spark: Any, tmp_path: Path, distribution: str, host_dies: bool) -> None:
    world = World(tmp_path)
    for number in range(len(world.posts)):
        world.post(number)
    sink, rankings = DeadlySink(tmp_path / "out"), tmp_path / "checkpoint" / "rankings"
    sink_class: Any = DeadlySink
    sink_class.flag, sink_class.host_of = str(tmp_path / "died"), rankings if host_dies else None
    try:
        reports = run(spark, world, sink=sink, distribution=distribution, shards=4)
    finally:
        host.stop(rankings)
    assert (tmp_path / "died").exists()
    assert [report.messages for report in reports] == [ROWS] * len(world.posts)
    check(world, Window(count=30))
