"""Streams: what was missed, then live; slow readers; replay; cursors; shutdown."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from websockets.sync.client import connect

from nearcast.geo import point
from nearcast.model import Message
from nearcast.service.engine import Event
from nearcast.service.live import SINKS, Live, Reader
from nearcast.service.settings import Settings
from tests.service.serving import Running, running


def test_missed_then_live_in_order(server: Running) -> None:
    server.subscribe("j", "ana", "jazz")
    server.subscribe("c", "ana", "cool")
    server.publish("cool jazz", "blues", "jazz")
    with server.events("ana", after=0) as events:
        name, number, data = next(events)
        assert (name, number, data["type"], data["subject"]) == ("match", 1, "nearcast.match", "ana")
        assert set(data["data"]["nearcast"]["subscriptions"]) == {"j", "c"}
        assert data["data"]["geometry"] == {"type": "Point", "coordinates": [0.0, 0.0]}
        assert next(events)[1] == 3
        server.publish("blues", "jazz again")
        _, number, data = next(events)
        assert (number, data["data"]["properties"]["text"]) == (5, "jazz again")


def test_last_event_id_goes_on_behind_it_and_moves_the_cursor(server: Running) -> None:
    server.subscribe("j", "ana", "jazz")
    server.publish("jazz", "jazz", "jazz")
    with server.events("ana", {"Last-Event-ID": "2"}) as events:
        assert next(events)[1] == 3
    assert server.client.get("/v1/cursor", params={"subscriber": "ana"}).json() == {"seq": 2}
    with server.events("ana") as events:
        assert next(events)[1] == 3
    for wrong in ("x", "-1", "99"):
        answer = server.client.get("/v1/events", params={"subscriber": "ana"}, headers={"Last-Event-ID": wrong})
        assert answer.status_code == 422


def test_without_a_position_a_stream_begins_now(server: Running) -> None:
    server.subscribe("j", "ana", "jazz")
    server.publish("jazz")
    with server.events("ana") as events:
        while not server.service.live.open_streams:
            pass
        server.client.get("/v1/subscriptions/j")  # a turn of the engine: the stream knows its position
        server.publish("jazz")
        assert next(events)[1] == 2


def test_a_slow_reader_falls_back_to_the_log_and_misses_nothing(server: Running) -> None:
    server.subscribe("j", "ana", "jazz")
    with server.events("ana", after=0) as events:
        for _ in range(10):
            server.publish(*["jazz"] * 40)  # the outbox holds 5
        assert [next(events)[1] for _ in range(400)] == list(range(1, 401))
    assert server.service.live.fallbacks > 0


def test_a_gap_is_told(server: Running) -> None:
    server.subscribe("j", "ana", "jazz")
    server.publish("jazz", "jazz", "jazz")
    store = server.service.store
    store.log.purge(max_bytes=store.log.nbytes // 3)
    with server.events("ana", after=0) as events:
        assert next(events) == ("gap", None, {"after": 0, "up_to": 2})
        assert next(events)[1] == 3


def test_replay_and_cursor(server: Running) -> None:
    server.subscribe("j", "ana", "jazz")
    server.publish("jazz", "blues", "jazz", "jazz")

    def replayed(**query: object) -> tuple[list[int], str]:
        answer = server.client.get("/v1/replay", params={"subscriber": "ana", **query})
        return [int(json.loads(line)["id"]) for line in answer.text.splitlines()], answer.headers["Nearcast-Position"]

    assert replayed() == ([1, 3, 4], "4")
    assert replayed(limit=2) == ([1, 3], "3")
    assert replayed(after=3) == ([4], "4")
    assert replayed(since=0) == ([1, 3, 4], "4")
    assert server.client.put("/v1/cursor", params={"subscriber": "ana"}, json={"seq": 3}).status_code == 204
    assert replayed() == ([4], "4")
    assert server.client.put("/v1/cursor", params={"subscriber": "ana"}, json={"seq": 9}).status_code == 422
    both = server.client.get("/v1/replay", params={"subscriber": "ana", "after": 1, "since": 1})
    assert both.status_code == 422


def test_a_websocket(server: Running) -> None:
    server.subscribe("j", "ana", "jazz")
    server.publish("jazz")
    address = server.url.replace("http", "ws") + "/v1/socket?subscriber=ana&after=0"
    with connect(address) as socket:
        assert json.loads(socket.recv(10))["id"] == "1"
        server.publish("jazz")
        assert json.loads(socket.recv(10))["id"] == "2"
        socket.send("nonsense")
        assert "only" in json.loads(socket.recv(10))["error"]
        socket.send('{"ack": 2}')
        socket.send("[]")
        assert "only" in json.loads(socket.recv(10))["error"]  # so the one before was read
        assert server.client.get("/v1/cursor", params={"subscriber": "ana"}).json() == {"seq": 2}
    with connect(server.url.replace("http", "ws") + "/v1/socket?subscriber=ana") as socket:
        server.service.live._loop.call_soon_threadsafe(server.service.live.close)
        with pytest.raises(Exception, match="1012"):
            socket.recv(10)


def test_a_server_that_stops_ends_its_streams_and_comes_back(tmp_path) -> None:
    settings = Settings(f"sqlite:///{tmp_path}/a.db")
    with running(settings) as server:
        server.subscribe("j", "ana", "jazz")
        server.publish("jazz")
        reader = httpx.Client(base_url=server.url, timeout=30)  # outlives the server
        stream = reader.stream("GET", "/v1/events", params={"subscriber": "ana", "after": 0})
        lines = stream.__enter__().iter_lines()
        assert any(line == "id: 1" for line in lines)
    assert "id: 2" not in list(lines)  # the stream was ended, not broken: that would raise
    reader.close()
    assert (tmp_path / "a.db.index").is_dir()
    with running(settings) as server:
        assert server.publish("jazz")["deliveries"] == 1
        assert server.publish("jazz")["first_seq"] == 3


def test_an_outbox_is_bounded() -> None:
    async def check() -> None:
        live, ana = Live(asyncio.get_running_loop(), 3), Reader("", "ana", "sse")
        outbox = live.open(ana)
        events = [Event("ana", n, Message(n, (), point(0, 0)), ("s",)) for n in range(5)]
        live._distribute("", events)
        assert (outbox.is_behind, outbox.take(), live.fallbacks) == (True, [], 1)
        outbox.start_again()
        live._distribute("", events[:2])
        assert outbox.take() == events[:2]
        live.leave(ana, outbox)
        assert live.open_streams == 0
        live.close()
        assert live.open(ana).is_closed

    asyncio.run(check())


def test_the_lag_of_a_sink_is_that_of_its_last_reader(server: Running) -> None:
    async def check() -> None:
        live, ana = Live(asyncio.get_running_loop(), 3), Reader("", "ana", "sse")
        outbox, other = live.open(ana), live.open(ana._replace(sink="kafka"))
        assert (live.lag("sse", 100), live.lag("kafka", 100)) == (0, 0)  # nothing waits for anybody
        live._distribute("", [Event("ana", n, Message(n, (), point(0, 0)), ("s",)) for n in (90, 95)])
        assert (live.lag("sse", 100), live.lag("kafka", 100), live.lag("webhook", 100)) == (11, 11, 0)
        outbox.take()
        outbox.rest()
        assert (live.lag("sse", 100), live.lag("kafka", 100)) == (0, 11)
        live.leave(ana._replace(sink="kafka"), other)
        assert live.lag("kafka", 100) == 0

    asyncio.run(check())
    text = server.client.get("/metrics").text
    assert all(f'nearcast_lag_messages{{sink="{sink}"}} 0.0' in text for sink in SINKS)


def test_what_is_on_disk_is_accepted_even_if_matching_fails(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    server.subscribe("j", "ana", "jazz")
    hub = server.service.engine._hubs[""]

    def broken(*_: object) -> None:
        raise ArithmeticError("the index is broken")

    with server.events("ana", after=0) as events:
        with monkeypatch.context() as fault:
            fault.setattr(hub, "deliver_watched", broken)
            told = server.publish("jazz", "blues")
        assert (told["accepted"], told["last_seq"], told["deliveries"]) == (2, 2, None)
        assert told["unmatched"] == "matching: the index is broken"
        assert next(events)[1] == 1  # from the log
        not_ready = server.client.get("/readyz")
        assert (not_ready.status_code, not_ready.json()["status"]) == (503, "matching: the index is broken")
        assert server.publish("jazz")["deliveries"] == 1
        assert next(events)[1] == 3
    assert server.client.get("/readyz").status_code == 200
    assert "nearcast_batches_unmatched_total 1.0" in server.client.get("/metrics").text
