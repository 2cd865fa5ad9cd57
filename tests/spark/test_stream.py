"""Streams on a real Spark: files in, files out, each pair once, through changes, restarts and kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from nearcast.errors import NearcastError
from nearcast.files import MESSAGES, SUBSCRIPTIONS
from nearcast.spark import (
    ONCE,
    BatchReport,
    FileSink,
    Versions,
    build,
    match_stream,
    read,
    read_stream,
    run_changes,
    run_stream,
)
from tests.spark import records

pytestmark = pytest.mark.filterwarnings("ignore")

CHANCE = Random(11)
WISHES = records.subscriptions(CHANCE, 60)
POSTS = [records.messages(CHANCE, 40), [{**post, "id": post["id"] + 100} for post in records.messages(CHANCE, 40)]]


def write_lines(path: Path, rows: list[Any]) -> None:
    """As a whole: a stream must not find half a file."""
    part = path.with_name(f".{path.name}")
    part.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    part.rename(path)


def pairs(spark: Any, out: Path, strip: str = "") -> Counter[tuple[int, str]]:
    rows = spark.read.parquet(str(out)).collect()
    return Counter((int(row["message_id"].removeprefix(strip)), row["subscription_id"]) for row in rows)


@pytest.fixture(scope="module")
def storage(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published version of the subscriptions, made once."""
    folder = tmp_path_factory.mktemp("made")
    write_lines(folder / "wishes.ndjson", WISHES)
    wishes = read(spark, str(folder / "wishes.ndjson"), SUBSCRIPTIONS)
    made = build(wishes, folder / "storage", layout="replicated", counts_events=False)
    Versions(folder / "storage").publish(made.folder)
    return folder / "storage"


@pytest.fixture
def world(storage: Path, tmp_path: Path) -> Path:
    """Folders in, posts, changes; a first file of posts; a published version."""
    for name in ("posts", "changes"):
        (tmp_path / name).mkdir()
    write_lines(tmp_path / "wishes.ndjson", WISHES)
    write_lines(tmp_path / "posts" / "0.ndjson", POSTS[0])
    shutil.copytree(storage, tmp_path / "storage")
    return tmp_path


def stream(spark: Any, world: Path, name: str = "posts") -> Any:
    return read_stream(spark, str(world / name), MESSAGES, "json", maxFilesPerTrigger=1)


def finished(query: Any) -> None:
    query.awaitTermination(240)
    if query.isActive:
        query.stop()
        raise AssertionError("the query did not end")


def test_a_fixed_version_into_the_files_of_spark(spark: Any, world: Path) -> None:
    write_lines(world / "posts" / "1.ndjson", POSTS[1])
    found = match_stream(stream(spark, world), Versions(world / "storage").current())
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(world / "checkpoint"))
    finished(writer.trigger(availableNow=True).start(str(world / "out")))
    assert pairs(spark, world / "out") == Counter(records.truth(WISHES, POSTS[0] + POSTS[1]))
    with pytest.raises(NearcastError, match="a stream needed"):
        match_stream(read(spark, str(world / "posts"), MESSAGES), world)


class Flaky(FileSink):
    """Fails after it has written, once: as if the driver had died before Spark noted the batch."""

    def write(self, pairs: Any, rejected: Any, batch: int) -> None:
        super().write(pairs, rejected, batch)
        mark = Path(self.path).with_name("failed")
        if batch == 1 and not mark.exists():
            mark.touch()
            raise OSError("lost")


def test_changes_failures_and_restarts_leave_every_pair_once(spark: Any, world: Path) -> None:
    versions, sink = Versions(world / "storage"), Flaky(world / "out")
    reports: list[BatchReport] = []

    def run() -> None:
        finished(run_stream(stream(spark, world), versions, sink, world / "c", trigger=ONCE, on_batch=reports.append))

    run()
    first = versions.current().name
    write_lines(world / "posts" / "1.ndjson", [*POSTS[1], "{", {"id": "no place", "text": "a"}])
    with pytest.raises(Exception, match="lost"):
        run()
    changes = [{"operation": "remove", "id": wish["id"]} for wish in WISHES[:30]]
    changes.append({"id": "fresh", "expression": "a OR b", "west": -180, "south": -90, "east": 180, "north": 90})
    write_lines(world / "changes" / "0.ndjson", changes)
    finished(run_changes(stream(spark, world, "changes"), versions, world / "cc", trigger=ONCE))
    assert versions.current().name != first
    again = [{**post, "id": post["id"] + 200} for post in POSTS[0]]
    write_lines(world / "posts" / "2.ndjson", again)
    run()
    left = [*WISHES[30:], changes[-1]]
    truth = records.truth(WISHES, POSTS[0] + POSTS[1]) | records.truth(left, again)
    assert pairs(spark, world / "out") == Counter(truth)
    rows = spark.read.parquet(str(world / "out")).select("batch", "version").distinct().collect()
    assert {row["batch"]: row["version"] for row in rows} == {0: first, 1: first, 2: versions.current().name}
    assert [(r.batch, r.messages, r.rejected) for r in reports] == [(0, 40, 0), (1, 40, 2), (2, 40, 0)]
    assert spark.read.json(str(sink.rejected)).count() == 2


def _dies_once(flag: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        if not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_late_rows_and_empty_batches(spark: Any, world: Path) -> None:
    from functools import partial

    timed = [{**post, "ts": 1000.0} for post in POSTS[0]]
    late = [{**post, "ts": 100.0} for post in POSTS[1][:10]]
    write_lines(world / "posts" / "0.ndjson", timed)
    write_lines(world / "posts" / "1.ndjson", [])
    write_lines(world / "posts" / "2.ndjson", [*late, *({**post, "ts": 950.0} for post in POSTS[1][10:])])
    for number in range(3):
        os.utime(world / "posts" / f"{number}.ndjson", (number, number))  # the order in which a stream takes them
    deadly = stream(spark, world).mapInArrow(partial(_dies_once, str(world / "died")), "value binary")
    reports: list[BatchReport] = []
    query = run_stream(
        deadly,
        Versions(world / "storage"),
        FileSink(world / "out"),
        world / "c",
        late_after=100.0,
        trigger=ONCE,
        on_batch=reports.append,
    )
    finished(query)
    assert (world / "died").exists()
    assert pairs(spark, world / "out") == Counter(records.truth(WISHES, timed + POSTS[1][10:]))
    assert [(r.messages, r.late, r.watermark) for r in reports] == [(40, 0, 900.0), (0, 0, 900.0), (40, 10, 900.0)]


def test_the_command_goes_on_where_it_stopped(spark: Any, world: Path) -> None:
    from typer.testing import CliRunner

    from nearcast.cli import app

    asked = [
        "spark",
        "stream",
        "-s",
        str(world / "wishes.ndjson"),
        "-m",
        str(world / "posts"),
        "-o",
        str(world / "out"),
    ]
    first = CliRunner().invoke(app, [*asked, "--once"])
    assert "batch 0: 40 messages" in first.output, first.output
    write_lines(world / "posts" / "1.ndjson", POSTS[1])
    write_lines(world / "changes" / "0.ndjson", [{"operation": "remove", "id": wish["id"]} for wish in WISHES[5:]])
    second = CliRunner().invoke(app, [*asked, "--once", "--changes", str(world / "changes")])
    assert "batch 1: 40 messages" in second.output, second.output
    truth = records.truth(WISHES, POSTS[0]) | records.truth(WISHES[:5], POSTS[1])
    assert pairs(spark, world / "out") == Counter(truth)
    with pytest.raises(NearcastError, match="kafka://HOST:PORT/TOPIC needed"):
        CliRunner().invoke(app, [*asked[:5], "kafka://here", *asked[6:], "--once"], catch_exceptions=False)
