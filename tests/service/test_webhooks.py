"""Webhooks: signed as Standard Webhooks has it, in order, tried again, 410, dead letters, hanging endpoints."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from nearcast.service.settings import Settings
from tests.service.serving import Running, running

SETTINGS = Settings("memory:", retry_seconds=(0.01, 0.01), webhook_timeout=0.5)


class Endpoint:
    """A receiver on a real socket. `answer` chooses the status of each request by its number."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.got: queue.Queue[tuple[dict[str, str], bytes, int]] = queue.Queue()
        self.answer: Callable[[int], int] = lambda _: 200
        self.hanging = threading.Event()  # set: requests are answered
        self.hanging.set()
        self.count = 0

    def next(self) -> tuple[dict[str, str], bytes, int]:
        return self.got.get(timeout=30)


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            there.hanging.wait(30)
            there.count += 1
            status = there.answer(there.count)
            there.got.put(({k.lower(): v for k, v in self.headers.items()}, body, status))
            try:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                return  # the courier went away

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there = Endpoint(f"http://127.0.0.1:{server.server_port}/hook")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield there
    finally:
        there.hanging.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def there() -> Iterator[Endpoint]:
    with endpoint() as receiver:
        yield receiver


@pytest.fixture
def server() -> Iterator[Running]:
    with running(SETTINGS) as served:
        served.subscribe("j", "ana", "jazz")
        yield served


def register(server: Running, url: str) -> dict[str, str]:
    answer = server.client.post("/v1/webhooks", json={"subscriber": "ana", "url": url})
    assert answer.status_code == 201, answer.text
    made: dict[str, str] = answer.json()
    return made


def seq_of(body: bytes) -> int:
    return int(json.loads(body)["id"])


def test_deliveries_are_signed_and_in_order(server: Running, there: Endpoint) -> None:
    server.publish("jazz")  # before: not delivered
    made = register(server, there.url)
    server.publish("jazz", "blues", "jazz")
    server.publish("jazz")
    verifier = Webhook(made["secret"])
    for expected in (2, 4, 5):
        headers, body, _ = there.next()
        verifier.verify(body, headers)
        assert seq_of(body) == expected
    with pytest.raises(WebhookVerificationError):
        verifier.verify(body + b" ", headers)
    [shown] = server.client.get("/v1/webhooks").json()
    assert shown == {"id": made["id"], "subscriber": "ana", "url": there.url, "disabled": None}


def test_tried_again_with_the_same_id_before_the_next(server: Running, there: Endpoint) -> None:
    there.answer = lambda n: 503 if n <= 2 else 204
    made = register(server, there.url)
    server.publish("jazz", "jazz")
    got = [there.next() for _ in range(4)]
    assert [(seq_of(body), status) for _, body, status in got] == [(1, 503), (1, 503), (1, 204), (2, 204)]
    assert len({headers["webhook-id"] for headers, _, _ in got[:3]}) == 1
    Webhook(made["secret"]).verify(got[1][1], got[1][0])


def test_dead_letters_are_listed_and_sent_again(server: Running, there: Endpoint) -> None:
    there.answer = lambda n: 500 if n <= 3 else 200
    address = f"/v1/webhooks/{register(server, there.url)['id']}"
    server.publish("jazz", "jazz")
    assert [seq_of(there.next()[1]) for _ in range(4)] == [1, 1, 1, 2]  # given up, and on with the next
    [letter] = server.client.get(f"{address}/dead-letters").json()
    assert (letter["seq"], letter["reason"], letter["attempts"]) == (1, "status 500", 3)
    there.answer = lambda _: 500
    assert server.client.post(f"{address}/redrive").json() == {"taken": 0, "left": 1}
    there.answer = lambda _: 200
    assert server.client.post(f"{address}/redrive").json() == {"taken": 1, "left": 0}
    assert server.client.get(f"{address}/dead-letters").json() == []
    assert "nearcast_webhook_dead_letters_total 1.0" in server.client.get("/metrics").text


def test_410_disables_until_enabled_again(server: Running, there: Endpoint) -> None:
    there.answer = lambda _: 410
    made = register(server, there.url)
    server.publish("jazz", "jazz")
    there.next()
    while server.client.get("/v1/webhooks").json()[0]["disabled"] is None:
        pass
    assert server.client.get("/v1/webhooks").json()[0]["disabled"] == "status 410"
    there.answer = lambda _: 200
    server.client.post(f"/v1/webhooks/{made['id']}/enable").raise_for_status()
    assert [seq_of(there.next()[1]) for _ in range(2)] == [1, 2]
    assert server.client.delete(f"/v1/webhooks/{made['id']}").status_code == 204
    assert server.client.delete(f"/v1/webhooks/{made['id']}").status_code == 404
    assert server.client.get("/v1/webhooks").json() == []


def test_an_endpoint_that_hangs_or_is_not_there_stops_nobody_else(server: Running, there: Endpoint) -> None:
    with endpoint() as stuck:
        stuck.hanging.clear()
        hanging = register(server, stuck.url)
        nobody = register(server, "http://127.0.0.1:1/")
        register(server, there.url)
        server.publish("jazz")
        assert seq_of(there.next()[1]) == 1
        for made, reason in ((hanging, "ReadTimeout"), (nobody, "ConnectError")):
            letters: list[Any] = []
            while not letters:
                letters = server.client.get(f"/v1/webhooks/{made['id']}/dead-letters").json()
            assert reason in letters[0]["reason"]


def test_what_came_while_the_server_was_away_is_delivered(tmp_path: Path, there: Endpoint) -> None:
    settings = Settings(f"sqlite:///{tmp_path}/a.db", retry_seconds=(5.0,))
    there.answer = lambda _: 500
    with running(settings) as server:
        server.subscribe("j", "ana", "jazz")
        register(server, there.url)
        server.publish("jazz")
        there.next()  # refused; the server stops while it waits to try again
    there.answer = lambda _: 200
    with running(settings) as server:
        assert seq_of(there.next()[1]) == 1
        server.publish("jazz")
        assert seq_of(there.next()[1]) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"url": "ftp://x/y"},
        {"url": "http://"},
        {"url": "http://[bad"},
        {"secret": "short"},
        {"secret": "whsec_###"},
        {"secret": "whsec_YWJj"},
        {"subscriber": ""},
    ],
)
def test_a_webhook_that_cannot_be_is_refused(server: Running, change: dict[str, str]) -> None:
    answer = server.client.post("/v1/webhooks", json={"subscriber": "ana", "url": "http://x/", **change})
    assert answer.status_code == 422
    assert answer.json()["error"]
    assert server.client.post("/v1/webhooks/0123456789abcdef/redrive").status_code == 404


def test_a_broker_that_is_away_stops_nobody(server: Running) -> None:
    server.subscribe("j", "ana", "jazz")
    url = {"subscriber": "ana", "url": "kafka://127.0.0.1:1/late"}
    assert server.client.post("/v1/webhooks", json=url).status_code == 201
    server.publish("jazz")
    with server.events("ana", after=0) as events:
        assert next(events)[1] == 1
    assert server.publish("jazz again")["deliveries"] == 1
    [hook] = server.client.get("/v1/webhooks").json()
    assert (hook["url"], hook["disabled"]) == (url["url"], None)


@pytest.mark.parametrize(
    "url", ["kafka://", "kafka:///t", "kafka://h:1/", "kafka://h/a b", "kafka://h/a/b", "kafka://h:x/t"]
)
def test_a_topic_that_cannot_be_is_refused(server: Running, url: str) -> None:
    answer = server.client.post("/v1/webhooks", json={"subscriber": "ana", "url": url})
    assert answer.status_code == 422
    assert "url" in answer.json()["error"]
