"""Moving subscribers in the API: followed, moved, told what enters and leaves."""

from __future__ import annotations

import json

import pytest

from nearcast import box, circle
from nearcast.client import Client
from tests.service.serving import Running

HERE, THERE = {"west": -1, "south": -1, "east": 1, "north": 1}, {"west": 9, "south": 9, "east": 11, "north": 11}
TAXI = {"kind": "follow", "subscriber": "bo", "expression": "taxi", **HERE}


def publish(server: Running, *rows: tuple[int, str, float]) -> None:
    lines = "\n".join(json.dumps({"id": n, "text": text, "lon": at, "lat": at}) for n, text, at in rows)
    server.client.post("/v1/messages", content=lines, headers={"content-type": "application/x-ndjson"})


def ids(server: Running) -> list[int]:
    return [f["id"] for f in server.client.get("/v1/current", params={"id": "cab"}).json()["features"]]


def test_followed_moved_and_left(server: Running) -> None:
    client = server.client
    assert client.put("/v1/subscriptions/cab", json=TAXI).status_code == 201
    assert client.get("/v1/subscriptions/cab").json() == {"id": "cab", **TAXI}
    publish(server, (1, "taxi here", 0), (2, "taxi there", 10), (3, "bus", 0))
    assert ids(server) == [1]
    told = client.post("/v1/moves", json={"moves": [{"id": "cab", **THERE}]})
    assert told.json() == {"moved": 1, "entered": 1, "left": 1}
    assert ids(server) == [2]
    assert client.get("/v1/subscriptions/cab").json() == {"id": "cab", **TAXI, **THERE}
    assert "nearcast_moves_total 1.0" in client.get("/metrics").text
    assert client.delete("/v1/subscriptions/cab").status_code == 204
    assert client.post("/v1/moves", json={"moves": [{"id": "cab", **THERE}]}).status_code == 404


@pytest.mark.parametrize(
    ("moves", "reason"),
    [
        ([], "moves"),
        ([{"id": "cab"}], "region"),
        ([{"id": "cab", "lon": 0, "lat": 99, "radius_m": 5}], "latitude"),
        ([{"id": "cab", **THERE}, {"id": "cab", **HERE, "west": 7, "lon": 1}], "one of region"),
    ],
)
def test_a_move_that_cannot_be_moves_nobody(server: Running, moves: list, reason: str) -> None:
    server.client.put("/v1/subscriptions/cab", json=TAXI)
    answer = server.client.post("/v1/moves", json={"moves": moves})
    assert answer.status_code == 422
    assert reason in answer.json()["error"]
    assert server.client.get("/v1/subscriptions/cab").json() == {"id": "cab", **TAXI}


def test_arrivals_and_moves_come_as_events(server: Running) -> None:
    with Client(server.url) as client:
        client.follow("cab", "taxi", box(-1, -1, 1, 1), subscriber="bo")
        publish(server, (1, "taxi here", 0), (2, "taxi there", 10))
        events = client.events("bo", after=0)
        now = next(events)
        assert (now.operation, [f["id"] for f in now.feature["features"]]) == ("current", [1])
        assert client.move({"cab": circle(10, 10, metres=9_000)}) == (1, 1, 1)
        by_move = {e.operation: e for e in (next(events), next(events))}
        assert {name: e.feature["id"] for name, e in by_move.items()} == {"enter": 2, "leave": 1}
        assert all(e.seq == 2 and e.more for e in by_move.values()), "a move is no position in the log"
        publish(server, (3, "another taxi there", 10))
        arrived = next(events)
        assert (arrived.operation, arrived.seq, arrived.more, arrived.feature["id"]) == ("enter", 3, False, 3)
        assert [f["id"] for f in client.current("cab")] == [2, 3]
        events.close()  # type: ignore[attr-defined]


def test_all_three_kinds_side_by_side(server: Running) -> None:
    rows = [
        {"id": "cab", **TAXI},
        {"id": "best", "kind": "rank", "subscriber": "bo", "text": "taxi", "lon": 0, "lat": 0},
        {"id": "all", "subscriber": "bo", "expression": "taxi", **HERE},
        {"id": "odd", **TAXI, "max_events": 3},
    ]
    headers = {"content-type": "application/x-ndjson"}
    told = server.client.post("/v1/import/subscriptions", content="\n".join(map(json.dumps, rows)), headers=headers)
    assert (told.json()["accepted"], [r["line"] for r in told.json()["rejections"]]) == (3, [4])
    publish(server, (1, "taxi", 0))
    with server.events("bo", after=0) as events:
        first = [next(events) for _ in range(3)]
    assert [name for name, _, _ in first] == ["match", "current", "current"]
    server.client.put("/v1/subscriptions/cab", json={**TAXI, "kind": "match"})
    exported = map(json.loads, server.client.get("/v1/export/subscriptions").iter_lines())
    assert {row["id"]: row["kind"] for row in exported} == {"cab": "match", "best": "rank", "all": "match"}
