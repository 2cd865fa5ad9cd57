"""The data source `nearcast`: the log of a server as rows, rows published into a server."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StringType, StructField, StructType

from nearcast.errors import NearcastError
from nearcast.files import MESSAGES, FileError
from nearcast.service.settings import Limits, Settings
from nearcast.spark import build, match_stream, read_stream, register
from nearcast.spark import publish as publishing
from nearcast.spark import source as sources
from nearcast.spark.source import LogStreamReader
from pyspark_nearcast import DefaultSource
from tests.faults.test_killed import serving
from tests.service.serving import Running, running
from tests.spark import records
from tests.spark.test_match import frame
from tests.spark.test_stream import finished, pairs, write_lines

pytestmark = pytest.mark.filterwarnings("ignore")

CHANCE = Random(3)
WISHES = records.subscriptions(CHANCE, 40)
POSTS = records.messages(CHANCE, 60)


def schema(*names: str) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


TABLE = schema("id", "text", "lon", "lat")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(Settings("memory:", limits=Limits(rows=50))) as served:
        yield served


def rows_of(reader: Any, *between: Any) -> list[dict[str, Any]]:
    return [row for part in reader.partitions(*between) for batch in reader.read(part) for row in batch.to_pylist()]


def test_what_is_published_is_in_the_log_under_its_offset(
    server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sources, "AT_A_TIME", 7)  # several partitions, several answers
    monkeypatch.setattr(publishing, "BYTES_AT_A_TIME", 400)
    monkeypatch.setenv("NEARCAST_SERVER", server.url)
    monkeypatch.setattr("nearcast.spark.server.WAITS", ())
    source = DefaultSource({"rejected": str(tmp_path / "bad"), "rowsPerRequest": "20"})
    stream = LogStreamReader({"maxMessagesPerTrigger": "25"})
    begin = stream.initialOffset()
    extra = [
        {"id": "no place", "text": "x"},
        {"id": "p", "terms": ["a", "b"], "lon": 1, "lat": 2, "ttl": 5.0, "payload": '{"n": 1}'},
    ]
    given = [*POSTS, *extra]
    names = [*MESSAGES.columns, "payload"]
    columns = {name: [post.get(name) for post in given] for name in names}
    columns["id"] = [str(identity) for identity in columns["id"]]
    told = source.writer(TABLE, False).write(iter([pa.RecordBatch.from_pydict(columns)]))
    assert (told.accepted, told.rejected) == (61, 1)
    [kept] = [json.loads(line) for path in (tmp_path / "bad").glob("*.json") for line in path.open()]
    assert json.loads(kept["source"])["id"] == "no place"

    ends = [begin]
    assert stream.getDefaultReadLimit() == ReadMaxRows(25)
    while (end := stream.latestOffset(ends[-1], ReadMaxRows(25))) != ends[-1]:
        ends.append(end)
    assert [end["seq"] - begin["seq"] for end in ends] == [0, 25, 50, 61]
    assert stream.reportLatestOffset() == ends[-1] == stream.latestOffset(begin, ReadAllAvailable())
    found = [row for low, high in pairwise(ends) for row in rows_of(stream, low, high)]
    assert [row["seq"] for row in found] == list(range(begin["seq"] + 1, ends[-1]["seq"] + 1))
    good = [*POSTS, extra[1]]
    assert [row["id"] for row in found] == [str(post["id"]) for post in good]
    for name in names[1:]:
        assert [row[name] for row in found] == [post.get(name) for post in good]
    asked = {"after": str(begin["seq"] + 3), "upTo": str(begin["seq"] + 30)}
    assert rows_of(DefaultSource(asked).reader(TABLE)) == found[3:30]

    stream.prepareForTriggerAvailableNow()
    server.publish("later")
    assert stream.latestOffset(begin, ReadAllAvailable()) == ends[-1]
    assert stream.partitions(end, end) == []
    assert LogStreamReader({"after": "latest"}).initialOffset()["seq"] == ends[-1]["seq"] + 1
    server.service.store.log.purge(max_bytes=1)
    with pytest.raises(NearcastError, match=r"has forgotten them \(retention\)"):
        stream.partitions(begin, ends[-1])
    assert rows_of(LogStreamReader({"failOnDataLoss": "false"}), begin, ends[-1]) == []
    with pytest.raises(NearcastError, match="is it another one"):
        stream.latestOffset({"seq": 10_000}, ReadAllAvailable())


def test_lines_of_text_are_published_as_they_are(server: Running, tmp_path: Path) -> None:
    source = DefaultSource({"server": server.url, "rejected": str(tmp_path / "bad")})
    raw = schema("value")
    good = '{"id": 1, "text": "x",\n "lon": 0, "lat": 0}'
    told = source.writer(raw, False).write(iter([pa.RecordBatch.from_pydict({"value": [good, "", None, "{"]})]))
    assert (told.accepted, told.rejected) == (1, 1)
    told = source.streamWriter(raw, False).write(iter([pa.RecordBatch.from_pydict({"value": ["{", "[]"]})]))
    assert (told.accepted, told.rejected) == (0, 2)
    kept = [json.loads(line)["source"] for path in (tmp_path / "bad").glob("*.json") for line in path.open()]
    assert sorted(kept) == ["[]", "{", "{"]


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (lambda: LogStreamReader({"after": "-1"}), "option after: '-1' given; a whole number from 0 needed"),
        (lambda: LogStreamReader({"upTo": "9"}), "a stream has no end"),
        (lambda: LogStreamReader({"failOnDataLoss": "no"}), "true or false needed"),
        (lambda: DefaultSource({}).writer(TABLE, True), "a log only grows: append needed"),
        (lambda: DefaultSource({}).writer(schema("id"), False), "text or terms is missing"),
    ],
)
def test_options_that_cannot_be_used_are_named(use: Any, reason: str) -> None:
    with pytest.raises((NearcastError, FileError), match=reason):
        use()


def test_a_server_that_is_away_is_asked_again_and_then_named(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("nearcast.spark.server.time.sleep", waited.append)
    with pytest.raises(NearcastError, match="cannot be reached"):
        LogStreamReader({"server": "http://127.0.0.1:9"}).initialOffset()
    assert len(waited) == 5


def test_a_stream_of_the_log_of_a_process_goes_on_where_it_stopped(spark: Any, tmp_path: Path) -> None:
    made = build(frame(spark, WISHES, 1), tmp_path / "storage", layout="replicated", counts_events=False)
    posts = [{**post, "id": f"p{post['id']}"} for post in POSTS]
    (tmp_path / "posts").mkdir()
    with serving(tmp_path / "a.db", signal.SIGTERM) as served:
        server = {"server": str(served.client.base_url)}

        def match_log() -> None:
            log = spark.readStream.format("nearcast").options(**server, maxMessagesPerTrigger="15").load()
            writer = match_stream(log, made).writeStream.option("checkpointLocation", str(tmp_path / "read"))
            finished(writer.trigger(availableNow=True).start(str(tmp_path / "pairs")))

        def publish_files() -> None:
            lines = read_stream(spark, str(tmp_path / "posts"), MESSAGES, "json")
            writer = lines.writeStream.format("nearcast").options(**server, checkpointLocation=str(tmp_path / "write"))
            finished(writer.trigger(availableNow=True).start())

        frame(spark, posts[:20], 1).write.format("nearcast").options(**server).mode("append").save()
        match_log()
        write_lines(tmp_path / "posts" / "1.ndjson", posts[20:])
        publish_files()
        publish_files()
        match_log()
        register(spark)  # until now it was found by itself
        log = spark.read.format("nearcast").options(**server).load()
        assert Counter(row["id"] for row in log.collect()) == Counter(post["id"] for post in posts)
    truth = records.truth(WISHES, POSTS)
    assert pairs(spark, tmp_path / "pairs", strip="p") == Counter(truth)
