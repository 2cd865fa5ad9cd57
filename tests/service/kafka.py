"""Deliveries into a Kafka topic, with a real broker: `make test-kafka`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from nearcast.service.settings import Settings
from tests.service.serving import Running, running
from tests.spark.broker import broker


def read(address: str, topic: str, n: int) -> list[tuple[str, dict[str, Any]]]:
    """The first n records of a topic: key and value."""
    settings = {"bootstrap.servers": address, "group.id": f"{topic}-{n}", "auto.offset.reset": "earliest"}
    consumer, found, end = Consumer(settings), [], time.monotonic() + 60
    consumer.subscribe([topic])
    try:
        while len(found) < n:
            assert time.monotonic() < end, f"{len(found)} of {n} records came"
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                found.append((message.key().decode(), json.loads(message.value())))
    finally:
        consumer.close()
    return found


def register(server: Running, subscriber: str, url: str) -> str:
    answer = server.client.post("/v1/webhooks", json={"subscriber": subscriber, "url": url})
    assert answer.status_code == 201, answer.text
    identity: str = answer.json()["id"]
    return identity


def test_deliveries_go_to_a_topic_in_order_and_go_on_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "kafka"
    folder.mkdir()
    settings = Settings(f"sqlite:///{tmp_path}/a.db", retry_seconds=(0.2,) * 50)
    with broker(folder) as address:
        with running(settings) as server:
            for name in ("ana", "bo"):
                server.subscribe(name, name, "jazz")
                register(server, name, f"kafka://{address}/alerts")
            server.publish("jazz 1", "blues", "jazz 2")
            first = read(address, "alerts", 4)
        with running(settings) as server:
            server.publish("jazz 3")
            again = read(address, "alerts", 6)
    for name in ("ana", "bo"):
        mine = [value for key, value in again if key == name]
        assert [value["data"]["properties"]["text"] for value in mine] == ["jazz 1", "jazz 2", "jazz 3"]
        assert [value["data"]["nearcast"]["seq"] for value in mine] == [1, 3, 4]
        assert {value["subject"] for value in mine} == {name}
    assert sorted(key for key, _ in first) == ["ana", "ana", "bo", "bo"]
