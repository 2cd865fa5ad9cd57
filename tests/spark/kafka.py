"""Kafka for real (`make test-kafka`): messages from a topic, pairs into a topic, restarts; everything is fetched.

Not collected by `make test`: it needs Maven Central the first time, and a session with the connector.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nearcast.files import RANKED_WISHES
from nearcast.ranking import Window
from nearcast.spark import (
    BY_WISH,
    ONCE,
    BatchReport,
    KafkaSink,
    Versions,
    build,
    kafka_settings,
    match_stream,
    rank_stream,
    read,
    read_kafka,
    run_changes,
    run_stream,
    session,
)
from nearcast.spark.ranks import host
from tests.spark import records
from tests.spark.broker import broker
from tests.spark.conftest import SHORT_LIVED
from tests.spark.test_match import frame
from tests.spark.test_rank_stream import ROWS, World, check_rows
from tests.spark.test_stream import finished, pairs, write_lines

pytestmark = pytest.mark.filterwarnings("ignore")

CHANCE = Random(7)
WISHES = records.subscriptions(CHANCE, 40)
POSTS = records.messages(CHANCE, 90)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    running = session("local[2,4]", settings={**kafka_settings(), **SHORT_LIVED})
    yield running
    running.stop()


def send(spark: Any, servers: str, topic: str, rows: list[Any]) -> None:
    lines = [(row if isinstance(row, str) else json.dumps(row),) for row in rows]
    writer = spark.createDataFrame(lines, "value string").write.format("kafka")
    writer.option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def held(spark: Any, servers: str, topic: str) -> list[tuple[str, dict[str, Any]]]:
    """(key, value) of all records of a topic."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    rows = spark.read.format("kafka").options(**options).load()
    found = rows.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()
    return [(row["key"], json.loads(row["value"])) for row in found]


def keys(wishes: list[Any], posts: list[Any]) -> set[str]:
    return {f"{message}/{subscription}" for message, subscription in records.truth(wishes, posts)}


@dataclass(frozen=True)
class Flaky(KafkaSink):
    """Fails after it has written batch 1, once: as if the driver had died before Spark noted the batch."""

    mark: Path = Path()

    def write(self, pairs: Any, rejected: Any, batch: int) -> None:
        KafkaSink.write(self, pairs, rejected, batch)
        if batch == 1 and not self.mark.exists():
            self.mark.touch()
            raise OSError("lost")


def test_a_batch_that_is_written_twice_has_the_same_keys_and_values(spark: Any, servers: str, tmp_path: Path) -> None:
    made = build(frame(spark, WISHES, 1), tmp_path / "storage", layout="replicated", counts_events=False)
    versions = Versions(tmp_path / "storage")
    versions.publish(made.folder)
    sink = Flaky(servers, "pairs", "rejected", mark=tmp_path / "failed")
    reports: list[BatchReport] = []

    def run() -> None:
        posted = read_kafka(spark, servers, "posts")
        finished(run_stream(posted, versions, sink, tmp_path / "c", trigger=ONCE, on_batch=reports.append))

    send(spark, servers, "posts", POSTS[:30])
    run()
    send(spark, servers, "posts", [*POSTS[30:60], "{", '{"id": 1}'])
    with pytest.raises(Exception, match="lost"):
        run()
    first = versions.current().name
    send(spark, servers, "changes", [{"operation": "remove", "id": wish["id"]} for wish in WISHES[10:]])
    finished(run_changes(read_kafka(spark, servers, "changes"), versions, tmp_path / "cc", trigger=ONCE))
    send(spark, servers, "posts", POSTS[60:])
    run()
    written = held(spark, servers, "pairs")
    before, after = keys(WISHES, POSTS[:60]), keys(WISHES[:10], POSTS[60:])
    second = versions.current().name
    assert {(key, value["version"]) for key, value in written} == {(key, first) for key in before} | {
        (key, second) for key in after
    }
    counts = Counter(key for key, _ in written)
    twice = keys(WISHES, POSTS[30:60])
    assert {key: n for key, n in counts.items() if n != 1} == dict.fromkeys(twice, 2)
    assert {f"{value['message_id']}/{value['subscription_id']}" for _, value in written} == set(counts)
    assert [(r.batch, r.messages, r.rejected) for r in reports] == [(0, 30, 0), (1, 30, 2), (2, 30, 0)]
    told = {value["source"]: value["batch"] for _, value in held(spark, servers, "rejected")}
    assert set(told.values()) == {1}
    assert len(told) == 2


def test_a_stream_of_pairs_goes_on_from_its_checkpoint(spark: Any, servers: str, tmp_path: Path) -> None:
    made = build(frame(spark, WISHES, 1), tmp_path / "storage", layout="replicated", counts_events=False)

    def run() -> int:
        """How many messages were read."""
        found = match_stream(read_kafka(spark, servers, "there"), made)
        value = found.selectExpr("concat(message_id, '/', subscription_id) AS key", "to_json(struct(*)) AS value")
        writer = value.writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "here")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        finished(query)
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    for part in (POSTS[:40], POSTS[40:]):
        send(spark, servers, "there", part)
        assert run() == len(part)
    assert sorted(key for key, _ in held(spark, servers, "here")) == sorted(keys(WISHES, POSTS))


def test_the_command_reads_a_topic(spark: Any, servers: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from nearcast.cli import app

    write_lines(tmp_path / "wishes.ndjson", WISHES)
    send(spark, servers, "asked", POSTS[:40])
    out = tmp_path / "out"
    asked = ["-s", str(tmp_path / "wishes.ndjson"), "-m", f"kafka://{servers}/asked", "-o", str(out), "--once"]
    told = CliRunner().invoke(app, ["spark", "stream", *asked])
    assert "batch 0: 40 messages" in told.output, told.output
    assert pairs(spark, out) == Counter(records.truth(WISHES, POSTS[:40]))


WINDOW = Window(seconds=30.0)  # its messages have an order of their own; a topic has two partitions


def ranked(spark: Any, servers: str, topic: str) -> tuple[list[dict[str, Any]], Counter[int]]:
    """Changes by wish and number, each once, and how often the changes of a number came."""
    times: dict[tuple[str, int, int], int] = {}
    rows: dict[tuple[str, int, int], dict[str, Any]] = {}
    for key, value in held(spark, servers, topic):
        assert key == value["wish_id"]
        place = key, value["edition"], value["seq"]
        assert rows.setdefault(place, value) == value
        times[place] = times.get(place, 0) + 1
    told = [{"because_of": None, **rows[place]} for place in sorted(rows)]
    return told, Counter(times.values())


def test_rankings_that_are_written_twice_have_the_same_numbers(spark: Any, servers: str, tmp_path: Path) -> None:
    world = World(tmp_path, 3)
    rankings = tmp_path / "checkpoint" / "rankings"
    sink = Flaky(servers, "changes-of-rankings", "bad", BY_WISH, mark=tmp_path / "failed")

    def run() -> None:
        posted = read_kafka(spark, servers, "to-rank")
        wishes = read(spark, str(tmp_path / "wishes.ndjson"), RANKED_WISHES)
        options: dict[str, Any] = {"window": WINDOW, "distribution": "prefix", "shards": 2, "trigger": ONCE}
        finished(rank_stream(posted, wishes, sink, tmp_path / "checkpoint", **options))

    send(spark, servers, "to-rank", world.posts[0])
    run()
    send(spark, servers, "to-rank", world.posts[1])
    with pytest.raises(Exception, match="lost"):
        run()
    host.stop(rankings)  # the shards are made anew, and must tell what was told
    send(spark, servers, "to-rank", world.posts[2])
    try:
        run()
    finally:
        host.stop(rankings)
    rows, times = ranked(spark, servers, "changes-of-rankings")
    check_rows(rows, world, WINDOW, None)
    assert set(times) == {1, 2}


def test_the_command_ranks_a_topic_into_a_topic(spark: Any, servers: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from nearcast.cli import app

    world = World(tmp_path, 3)
    place = f"kafka://{servers}"
    asked = ["-w", str(tmp_path / "wishes.ndjson"), "-m", f"{place}/posted", "--changes", f"{place}/wished"]
    asked += ["-o", f"{place}/ranked", "--checkpoint", str(tmp_path / "checkpoint"), "--seconds", "30", "--once"]
    world.change()
    changes = (tmp_path / "changes" / "0.ndjson").read_text().splitlines()
    output = []
    try:
        for number, rows in enumerate(world.posts):
            send(spark, servers, "posted", [*rows, "{"] if number == 0 else rows)
            send(spark, servers, "wished", changes if number == 2 else [{"operation": "remove", "id": "nobody"}])
            output.append(CliRunner().invoke(app, ["spark", "rank", *asked, "--shards", "2"]).output)
    finally:
        host.stop(tmp_path / "checkpoint" / "rankings")
    for number, told in enumerate(output):
        assert f"batch {number}: {ROWS} messages" in told, told
    found, times = ranked(spark, servers, "ranked")
    check_rows(found, world, WINDOW, changed_before=2)
    assert set(times) == {1}
    assert [value["batch"] for _, value in held(spark, servers, "ranked.rejected")] == [0]
