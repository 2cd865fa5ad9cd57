"""A real server for tests: on a socket, in a thread, with a client."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx

from nearcast.service.context import Service
from nearcast.service.server import make_server, warm_up
from nearcast.service.settings import Settings

WORLD = {"west": -180, "south": -90, "east": 180, "north": 90}


class Running:
    """A server and a client for it."""

    def __init__(self, url: str, service: Service, client: httpx.Client) -> None:
        self.url, self.service, self.client = url, service, client

    def subscribe(self, identity: str, subscriber: str, expression: str, **more: Any) -> None:
        body = {"subscriber": subscriber, "expression": expression, **WORLD, **more}
        self.client.put(f"/v1/subscriptions/{identity}", json=body).raise_for_status()

    def publish(self, *texts: str) -> dict[str, Any]:
        lines = [json.dumps({"id": n, "text": text, "lon": 0, "lat": 0}) for n, text in enumerate(texts)]
        answer = self.client.post(
            "/v1/messages", content="\n".join(lines), headers={"content-type": "application/x-ndjson"}
        )
        answer.raise_for_status()
        told: dict[str, Any] = answer.json()
        return told

    @contextmanager
    def events(self, subscriber: str, headers: dict[str, str] | None = None, **query: Any) -> Iterator[Iterator[Any]]:
        """Server-sent events as (name, id, data) while the block runs."""
        with self.client.stream(
            "GET", "/v1/events", params={"subscriber": subscriber, **query}, headers=headers, timeout=30
        ) as answer:
            answer.raise_for_status()
            lines = answer.iter_lines()
            assert next(lines) == "retry: 1000"
            yield parsed(lines)


def parsed(lines: Iterator[str]) -> Iterator[tuple[str, int | None, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            number = int(fields["id"]) if "id" in fields else None
            yield fields["event"], number, json.loads(fields["data"])
            fields = {}


@contextmanager
def running(settings: Settings, key: str | None = None, port: int = 0) -> Iterator[Running]:
    warm_up()
    settings = replace(settings, ping_seconds=0.2)
    listening = socket.socket(proto=socket.IPPROTO_TCP)  # without it asyncio leaves the delay of small packets on
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen()
    server = make_server(settings, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
            _wait_until_ready(client, thread)
            yield Running(url, server.app.state.service, client)
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def _wait_until_ready(client: httpx.Client, thread: threading.Thread) -> None:
    """The socket takes connections at once; the first answer comes when the server is up."""
    assert thread.is_alive()
    assert client.get("/readyz").status_code == 200
