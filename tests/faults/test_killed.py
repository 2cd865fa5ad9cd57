"""kill -9 in the middle of publishing: what was acknowledged is there, and everybody gets it."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.service.serving import WORLD, parsed

SUBSCRIBERS = ("ana", "bo")
WORDS = {"ana": "jazz", "bo": "blues"}


class Process:
    """A server in its own process. It may be killed at any moment."""

    def __init__(self, store: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = "from nearcast.cli import main; main()"
        arguments = ["serve", "--store", f"sqlite:///{store}", "--port", str(port)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, *arguments], stderr=subprocess.PIPE, start_new_session=True
        )
        transport = httpx.HTTPTransport(retries=0)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, transport=transport)

    def wait_until_ready(self) -> None:
        while True:
            assert self._process.poll() is None, self._process.stderr and self._process.stderr.read()
            try:
                if self.client.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                threading.Event().wait(0.1)

    def end(self, how: signal.Signals) -> int:
        self._process.send_signal(how)
        code = self._process.wait(60)
        self.client.close()
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code


@contextmanager
def serving(store: Path, how: signal.Signals = signal.SIGKILL) -> Iterator[Process]:
    process = Process(store)
    try:
        process.wait_until_ready()
        yield process
    finally:
        process.end(how)


class Publisher(threading.Thread):
    """Publishes and subscribes until the server is gone; remembers what was acknowledged."""

    def __init__(self, client: httpx.Client, first: int, kill_after: int, chance: random.Random) -> None:
        super().__init__()
        self._client, self._next, self._chance = client, first, chance
        self._kill_after = kill_after
        self.enough = threading.Event()
        self.messages: dict[int, str] = {}  # acknowledged: id to text
        self.subscriptions: set[str] = set()

    def run(self) -> None:
        try:
            while True:
                self._publish()
                self._subscribe()
                if len(self.messages) >= self._kill_after:
                    self.enough.set()
        except httpx.TransportError:
            self.enough.set()

    def _publish(self) -> None:
        texts = {self._next + i: self._chance.choice(["jazz", "blues", "jazz and blues"]) for i in range(20)}
        self._next += 20
        lines = "\n".join(json.dumps({"id": n, "text": text, "lon": 0, "lat": 0}) for n, text in texts.items())
        answer = self._client.post("/v1/messages", content=lines, headers={"content-type": "application/x-ndjson"})
        if answer.status_code == 200:
            self.messages |= texts

    def _subscribe(self) -> None:
        body = {"subscriber": "others", "expression": "rock", **WORLD}
        identity = f"s{self._next}"
        if self._client.put(f"/v1/subscriptions/{identity}", json=body).status_code == 201:
            self.subscriptions.add(identity)


@pytest.mark.parametrize("seed", [1])
def test_nothing_acknowledged_is_lost(tmp_path: Path, seed: int) -> None:
    store, chance = tmp_path / "a.db", random.Random(seed)
    messages: dict[int, str] = {}
    subscriptions: set[str] = set()
    got: dict[str, set[int]] = {name: set() for name in SUBSCRIBERS}  # ids of messages, by what streams gave
    position = dict.fromkeys(SUBSCRIBERS, 0)
    with serving(store, signal.SIGTERM) as server:
        for name in SUBSCRIBERS:
            body = {"subscriber": name, "expression": WORDS[name], **WORLD}
            server.client.put(f"/v1/subscriptions/{name}", json=body).raise_for_status()
    for life in range(5):
        with serving(store) as server:
            readers = [Reader(server.client.base_url, name, position[name]) for name in SUBSCRIBERS]
            publisher = Publisher(server.client, life * 1_000_000, chance.randrange(20, 600), chance)
            for thread in (*readers, publisher):
                thread.start()
            publisher.enough.wait(60)
        for thread in (*readers, publisher):
            thread.join(60)
        messages |= publisher.messages
        subscriptions |= publisher.subscriptions
        for reader in readers:
            got[reader.subscriber] |= reader.got
            position[reader.subscriber] = reader.position
    assert len(messages) >= 100
    with serving(store, signal.SIGTERM) as server:
        held = server.client.get("/v1/subscriptions", params={"subscriber": "others"}).json()["subscriptions"]
        assert subscriptions <= {row["id"] for row in held}
        for name in SUBSCRIBERS:
            wanted = {n for n, text in messages.items() if WORDS[name] in text}
            assert wanted <= replayed(server.client, name, 0)
            assert wanted <= got[name] | replayed(server.client, name, position[name])


class Reader(threading.Thread):
    """Reads a subscriber's stream until the server is gone, as a browser would: it remembers the last id."""

    def __init__(self, url: httpx.URL, subscriber: str, position: int) -> None:
        super().__init__()
        self._url, self.subscriber, self.position = url, subscriber, position
        self.got: set[int] = set()

    def run(self) -> None:
        headers = {"Last-Event-ID": str(self.position)}
        try:
            with (
                httpx.Client(base_url=self._url, timeout=60) as client,
                client.stream("GET", "/v1/events", params={"subscriber": self.subscriber}, headers=headers) as answer,
            ):
                for _, seq, event in parsed(answer.iter_lines()):
                    assert seq is not None
                    assert seq > self.position  # in order
                    self.position = seq
                    self.got.add(event["data"]["id"])
        except httpx.TransportError:
            return


def replayed(client: httpx.Client, subscriber: str, after: int) -> set[int]:
    found: set[int] = set()
    while True:
        answer = client.get("/v1/replay", params={"subscriber": subscriber, "after": after, "limit": 1000})
        events = [json.loads(line) for line in answer.text.splitlines()]
        found |= {event["data"]["id"] for event in events}
        after = int(answer.headers["Nearcast-Position"])
        if not events:
            return found
