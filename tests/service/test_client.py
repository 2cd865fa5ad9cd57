"""The clients and the verbs over them, against a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nearcast import box, circle
from nearcast.cli import app
from nearcast.client import AsyncClient, Client, Event, ServerError
from nearcast.geo import polygon
from nearcast.service.settings import Settings
from tests.service.serving import Running, running

EVERYWHERE = box(-180, -90, 180, 90)


def message(number: int, text: str) -> dict[str, object]:
    return {"id": number, "text": text, "lon": 0.5, "lat": 0.5, "payload": {"n": number}}


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(server.url) as made:
        yield made


def test_a_client_does_it_all(client: Client) -> None:
    made = client.subscribe("ana", "jazz", EVERYWHERE, max_events=9)
    assert client.subscribe("ana", "blues", circle(0, 0, metres=1e6), id="b/1") == "b/1"
    assert client.subscribe("ana", "rock", polygon([(0, 0), (1, 0), (1, 1)]), id="p") == "p"
    assert [row["id"] for row in client.subscriptions("ana")] == [made, "b/1", "p"]
    told = client.publish([message(1, "jazz"), message(2, ""), message(3, "blues rock")])
    assert (told.accepted, told.first_seq, told.last_seq, told.deliveries) == (2, 1, 2, 3)
    assert told.rejections[0]["line"] == 2
    events = client.events("ana", after=0)
    assert [next(events).seq for _ in range(2)] == [1, 2]
    events.close()  # type: ignore[attr-defined]
    assert [e.seq for e in client.replay("ana", limit=1)] == [1, 2]
    client.acknowledge("ana", 1)
    [event] = client.replay("ana")
    assert (set(event.subscriptions), event.text) == ({"b/1", "p"}, "blues rock")
    assert event.feature["properties"]["payload"] == {"n": 3}
    assert client.dry_run("jazz", EVERYWHERE).examples[0].seq == 1
    assert client.explain("b/1", "blues", (0, 0)).matched
    piece = client.logged(limit=1)
    assert ([r["id"] for r in piece.records], piece[1:]) == ([1], (1, 1, 2))
    rest = client.logged(1)
    assert ([r["payload"] for r in rest.records], rest[1:]) == ([{"n": 3}], (2, 1, 2))
    assert client.logged(1, limit=0)[:2] == ([], 1)
    assert client.logged(0, up_to=1).position == 1
    client.unsubscribe("b/1")
    with pytest.raises(ServerError, match="no such one") as refused:
        client.unsubscribe("b/1")
    assert refused.value.status == 404
    with pytest.raises(ServerError, match="subscriber"):
        next(client.events(""))


def test_an_async_client_does_the_same(server: Running) -> None:
    async def use() -> list[Event]:
        async with AsyncClient(server.url) as client:
            made = await client.subscribe("ana", "jazz", EVERYWHERE)
            assert [row["id"] for row in await client.subscriptions("ana")] == [made]
            await client.publish([message(1, "jazz")])
            await client.publish_lines(json.dumps(message(2, "jazz")).encode())
            assert (await client.dry_run("jazz", EVERYWHERE)).matched == 2
            assert (await client.explain(made, "jazz", (0, 0))).matched
            assert [e.seq async for e in client.replay("ana", after=0, limit=1)] == [1, 2]
            assert [r["seq"] for r in (await client.logged(1)).records] == [2]
            await client.acknowledge("ana", 1)
            stream = client.events("ana")
            found = [await anext(stream)]
            await stream.aclose()  # type: ignore[attr-defined]
            await client.unsubscribe(made)
            with pytest.raises(ServerError):
                await anext(client.events(""))
            return found

    assert [event.seq for event in asyncio.run(use())] == [2]


def test_a_stream_goes_on_when_the_server_comes_back(tmp_path: Path) -> None:
    settings = Settings(f"sqlite:///{tmp_path}/a.db")
    with running(settings) as server:
        server.subscribe("j", "ana", "jazz")
        server.publish("jazz")
        client = Client(server.url)
        events = client.events("ana", after=0)
        assert next(events).seq == 1
        port = int(server.url.rpartition(":")[2])
    with running(settings, port=port) as server:
        server.publish("jazz")
        assert next(events).seq == 2
        events.close()  # type: ignore[attr-defined]
        client.close()


def test_verbs(server: Running, tmp_path: Path) -> None:
    def run(*words: str, code: int = 0, given: str | None = None) -> str:
        result = CliRunner().invoke(app, [*words, "--server", server.url], input=given)
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    assert run("subscribe", "ana", "jazz", "--box", "-180", "-90", "180", "90", "--id", "j") == "j\n"
    run("subscribe", "ana", "jazz", "--region", "POINT (1 1)", "--circle", "1", "1", "1", code=1)
    assert run("publish", "cool jazz", "--lon", "1", "--lat", "1") == "message 1: 1 deliveries\n"
    lines = "\n".join(json.dumps(message(n, text)) for n, text in ((1, "jazz"), (2, ""), (3, "blues")))
    assert "2 messages, 1 deliveries, 1 rejected" in run("publish", "--file", "-", code=3, given=lines)
    (tmp_path / "m.ndjson").write_text("nothing good\n")
    assert "0 messages" in run("publish", "--file", str(tmp_path / "m.ndjson"), code=3)
    run("publish", code=1)
    assert run("tail", "ana", "--after", "0", "--most", "2") == "1  j  cool jazz\n2  j  jazz\n"
    assert run("replay", "ana", "--after", "1") == "2  j  jazz\n"
    assert json.loads(run("replay", "ana", "--after", "1", "--json"))["properties"]["text"] == "jazz"
    assert "missing jazz" in run("explain", "j", "blues")
    dry = run("subscribe", "ana", "blues OR cool", "--circle", "1", "1", "1e6", "--dry-run")
    assert dry.startswith("would have matched 2 of 3 messages")


def test_a_server_that_is_not_there() -> None:
    with Client("http://127.0.0.1:1") as client:
        with pytest.raises(ServerError, match=r"http://127\.0\.0\.1:1 cannot be reached"):
            client.unsubscribe("a")
        with pytest.raises(ServerError, match="cannot be reached"):
            next(client.events("ana"))

    async def ask() -> None:
        async with AsyncClient("http://127.0.0.1:1") as client:
            with pytest.raises(ServerError, match="cannot be reached"):
                await client.unsubscribe("a")
            with pytest.raises(ServerError, match="cannot be reached"):
                await anext(client.events("ana"))

    asyncio.run(ask())
