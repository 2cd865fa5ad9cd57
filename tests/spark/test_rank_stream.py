"""Rankings on a real Spark: every change once, in order, through new wishes, restarts and killed hosts."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from nearcast import reference
from nearcast.errors import NearcastError
from nearcast.files import MESSAGES, RANKED_WISHES
from nearcast.geo import earth
from nearcast.ranking import Window
from nearcast.records import read_message, read_wish
from nearcast.spark import ONCE, FileSink, RankReport, Sink, rank_stream, read, read_stream, run_wish_changes
from nearcast.spark.bench import ranks as bench
from nearcast.spark.bench.trial import TrialSpec
from nearcast.spark.ranks import host
from nearcast.text import analyzer
from tests.spark.test_stream import finished, write_lines
from tests.worlds import WORDS

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS, FILES = 25, 4
LIVE = TrialSpec(wishes=60, window=200, batch=50, batches=2, k=3)
OPERATIONS = {"entered": "enter", "left": "leave"}
Change = tuple[str, str, str, str | None]  # wish, operation, message, the message that brought it


def _records(chance: Random, n: int, first: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": first + i,
            "text": " ".join(chance.choices(WORDS, k=chance.randint(1, 4))),
            "lon": float(chance.randint(-5, 5)),
            "lat": float(chance.randint(-5, 5)),
            "ts": float(first + i),
            **{name: chance.choice(values) for name, values in more.items()},
        }
        for i in range(n)
    ]


class World:
    """Files of wishes and messages, and what is right."""

    def __init__(self, folder: Path, files: int = FILES) -> None:
        chance = Random(5)
        self.folder = folder
        self.posted = 0
        self.wishes = _records(chance, 15, 0, k=[1, 2, 4], alpha=[0.0, 0.3, 0.8, 1.0])
        self.posts = [_records(chance, ROWS, ROWS * i) for i in range(files)]
        self.new = _records(chance, 3, 1000, k=[2], alpha=[0.5])
        for name in ("posts", "changes"):
            (folder / name).mkdir()
        write_lines(folder / "wishes.ndjson", self.wishes)

    def post(self, number: int, extra: list[str] | None = None) -> None:
        path = self.folder / "posts" / f"{number}.ndjson"
        write_lines(path, [*self.posts[number], *(extra or [])])
        written = time.time() + self.posted  # files come in the order of their times, which may be the same
        os.utime(path, (written, written))
        self.posted += 1

    def change(self) -> None:
        gone = [{"operation": "remove", "id": self.wishes[0]["id"]}]
        write_lines(self.folder / "changes" / "0.ndjson", [*self.new, *gone])

    def expected(self, window: Window, changed_before: int | None) -> tuple[dict[str, set[str]], Counter[Change]]:
        """The rankings after all files, and every change on the way."""
        truth = reference.Rankings(dict.fromkeys(WORDS, 1.0), earth, count=window.count, seconds=window.seconds)
        changes: Counter[Change] = Counter()
        wishes = {str(record["id"]): record for record in self.wishes}
        for record in self.wishes:
            truth.rank(read_wish(_named(record), earth, analyzer()))
        for number, rows in enumerate(self.posts):
            if number == changed_before:
                truth.unrank(str(self.wishes[0]["id"]))
                del wishes[str(self.wishes[0]["id"])]
                for record in self.new:
                    wish = str(record["id"])
                    wishes[wish] = record
                    truth.rank(read_wish(_named(record), earth, analyzer()))
                    changes.update((wish, "enter", message, None) for message in map(str, truth.ranking(wish)))
            for record in rows:
                message = read_message(_named(record), earth, analyzer())
                for wish, what, other in truth.arrive(message):
                    changes[str(wish), OPERATIONS[what], str(other), str(message.id)] += 1
        return {wish: set(map(str, truth.ranking(wish))) for wish in wishes}, changes


def _named(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "id": str(record["id"])}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield World(tmp_path)
    host.stop(tmp_path / "checkpoint" / "rankings")


def run(spark: Any, world: World, sink: Sink | None = None, **options: Any) -> list[RankReport]:
    """All that is there, until it is done."""
    reports: list[RankReport] = []
    messages = read_stream(spark, str(world.folder / "posts"), MESSAGES, "json", maxFilesPerTrigger=1)
    wishes = read(spark, str(world.folder / "wishes.ndjson"), RANKED_WISHES)
    sink, checkpoint = sink or FileSink(world.folder / "out"), world.folder / "checkpoint"
    given = {"window": Window(count=30), "shards": 2, "trigger": ONCE, "on_batch": reports.append} | options
    finished(rank_stream(messages, wishes, sink, checkpoint, **given))
    return reports


def check(world: World, window: Window, changed_before: int | None = None) -> None:
    check_rows(_rows(world.folder / "out"), world, window, changed_before)


def check_rows(rows: Iterable[dict[str, Any]], world: World, window: Window, changed_before: int | None) -> None:
    """Rankings and changes are the reference's, and each edition's numbers are 1, 2, 3, …"""
    held: dict[tuple[str, int], set[str]] = {}
    seen: dict[tuple[str, int], int] = {}
    told: Counter[Change] = Counter()
    for row in rows:
        key = row["wish_id"], row["edition"]
        assert row["seq"] == seen.get(key, 0) + 1
        seen[key] = row["seq"]
        best = held.setdefault(key, set())
        (best.add if row["operation"] == "enter" else best.remove)(row["message_id"])
        told[row["wish_id"], row["operation"], row["message_id"], row["because_of"]] += 1
    rankings, changes = world.expected(window, changed_before)
    assert told == changes
    found = {wish: best for (wish, _), best in held.items()}
    assert {wish: found.get(wish, set()) for wish in rankings} == rankings


def _rows(out: Path) -> Iterator[dict[str, Any]]:
    """Batch after batch, by edition and number."""
    for batch in sorted(out.glob("batch=*"), key=lambda path: int(path.name.removeprefix("batch="))):
        rows = [row for file in batch.glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
        yield from sorted(rows, key=lambda row: (row["edition"], row["seq"]))


def test_changes_restarts_and_a_killed_host(spark: Any, world: World) -> None:
    distribution = "prefix"
    world.post(0, ["{broken", '{"id": 1, "text": "a"}'])
    world.post(1)
    first = run(spark, world, distribution=distribution)
    assert [report.messages for report in first] == [ROWS, ROWS]
    assert first[0].rejected == 2
    pid = host.ask(world.folder / "checkpoint" / "rankings", "ping")
    os.kill(pid, signal.SIGKILL)
    world.change()
    changes = read_stream(spark, str(world.folder / "changes"), RANKED_WISHES, "json")
    finished(run_wish_changes(changes, world.folder / "checkpoint", world.folder / "changes-checkpoint", trigger=ONCE))
    world.post(2)
    world.post(3)
    later = run(spark, world, distribution=distribution)
    assert later[0].rebuilt > 0
    assert later[-1].wishes == len(world.wishes) + len(world.new) - 1
    check(world, Window(count=30), changed_before=2)


def test_time_windows_and_late_messages(spark: Any, world: World) -> None:
    world.post(1)
    run(spark, world, distribution="location", window=Window(seconds=20.0))
    world.post(0)
    world.post(2)
    world.post(3)
    reports = run(spark, world, distribution="location", window=Window(seconds=20.0))
    assert sum(report.late for report in reports) == ROWS
    world.posts[0] = []
    check(world, Window(seconds=20.0))
    with pytest.raises(NearcastError, match="was begun with"):
        run(spark, world, distribution="location", window=Window(seconds=20.0), shards=3)


def test_a_table_is_no_stream(spark: Any, world: World) -> None:
    world.post(0)
    table = read(spark, str(world.folder / "posts"), MESSAGES, "json")
    with pytest.raises(NearcastError, match="a stream needed"):
        rank_stream(table, table, FileSink(world.folder / "out"), world.folder / "c", window=Window(count=3))


def test_spark_and_the_embedded_ranker_tell_as_many_changes(spark: Any, tmp_path: Path) -> None:
    files = bench.Files.made(LIVE, tmp_path)
    found = [bench.on_spark(spark, LIVE, files, name, 2, tmp_path / name) for name in ("hash", "prefix")]
    found += bench.embedded(LIVE, files, 2, tmp_path / "hash" / "checkpoint" / "rankings")
    assert len({result.changes for result in found}) == 1
    assert found[0].changes > 0
    assert all(result.per_s > 0 for result in found)
