"""Events into Kafka topics: one idempotent producer a broker; the key is the subscriber, so each keeps its order."""

from __future__ import annotations

import importlib.util
import threading
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from nearcast.errors import RowError

if TYPE_CHECKING:
    from confluent_kafka import Producer

SCHEME = "kafka"
NEEDED = "kafka://broker:9092/topic needed"


class Topic(NamedTuple):
    broker: str  # host:port
    name: str


def topic_of(url: str) -> Topic:
    """Checked: a broker's address and a topic's name."""
    try:
        parts = urlsplit(url)
        broker, name = f"{parts.hostname}:{parts.port or 9092}", parts.path.removeprefix("/")
        is_good = bool(parts.hostname) and not (parts.username or parts.query or parts.fragment)
    except ValueError:
        is_good, broker, name = False, "", ""
    if not is_good or not 0 < len(name) <= 249 or not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
        raise RowError(f"url: {url[:60]!r} given; {NEEDED}, the topic of letters, digits, '.', '_' and '-'")
    if importlib.util.find_spec("confluent_kafka") is None:
        raise RowError("url: a Kafka topic given, and this server cannot: pip install 'nearcast[kafka]'")
    return Topic(broker, name)


class Topics:
    """Producers by broker. Blocking: for worker threads."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._producers: dict[str, Producer] = {}
        self._making = threading.Lock()

    def send(self, topic: Topic, key: str, identity: str, value: bytes) -> str | None:
        """None when the broker has it, on all replicas that must have it; else why not."""
        from confluent_kafka import KafkaException

        outcome: list[str | None] = []

        def told(error: object, _message: object) -> None:
            outcome.append(None if error is None else str(error))

        headers: list[tuple[str, str | bytes | None]] = [
            ("ce_id", identity.encode()),
            ("content-type", b"application/cloudevents+json"),
        ]
        try:
            producer = self._producer(topic.broker)
            producer.produce(topic.name, value, key.encode(), headers=headers, on_delivery=told)
            producer.flush(self._timeout + 1.0)
        except (KafkaException, BufferError) as error:
            return str(error)
        return outcome[0] if outcome else f"no answer within {self._timeout:g} s"

    def _producer(self, broker: str) -> Producer:
        from confluent_kafka import Producer

        with self._making:
            if broker not in self._producers:
                settings = {
                    "bootstrap.servers": broker,
                    "enable.idempotence": True,  # a repetition of the client's own never comes twice
                    "delivery.timeout.ms": int(self._timeout * 1000),
                    "request.timeout.ms": int(self._timeout * 1000),
                    "linger.ms": 0,
                    "log_level": 0,  # what fails is told by the courier
                }
                self._producers[broker] = Producer(settings, logger=None)
            return self._producers[broker]
