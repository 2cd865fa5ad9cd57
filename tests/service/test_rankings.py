"""Rankings in the API: made, listed, looked at; what enters and leaves comes with the subscriber's events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from nearcast.client import Client
from nearcast.geo import point
from nearcast.hub import Delivery
from nearcast.model import Message
from nearcast.service.engine import Event, _events
from tests.service.serving import WORLD, Running

JAZZ = {"kind": "rank", "subscriber": "cy", "text": "live jazz", "lon": 0.0, "lat": 0.0, "k": 2, "alpha": 0.5}


def texts(features: Sequence[dict[str, Any]]) -> list[str]:
    return [feature["properties"]["text"] for feature in features]


def test_a_ranking_from_first_to_last(server: Running) -> None:
    client = server.client
    assert client.put("/v1/subscriptions/best", json=JAZZ).status_code == 201
    assert client.get("/v1/subscriptions/best").json() == {"id": "best", **JAZZ}
    assert client.get("/v1/subscriptions", params={"subscriber": "cy"}).json()["subscriptions"] == [
        {"id": "best", **JAZZ}
    ]
    assert server.publish("jazz", "live jazz", "blues")["deliveries"] == 2
    told = client.get("/v1/current", params={"id": "best"}).json()
    assert (told["kind"], told["seq"], texts(told["features"])) == ("rank", 3, ["live jazz", "jazz"])
    scores = [feature["nearcast"]["score"] for feature in told["features"]]
    assert scores == sorted(scores, reverse=True)
    assert client.delete("/v1/subscriptions/best").status_code == 204
    for gone in (client.get("/v1/current", params={"id": "best"}), client.delete("/v1/subscriptions/best")):
        assert gone.status_code == 404


def test_one_name_for_one_wish_of_whatever_kind(server: Running) -> None:
    client = server.client
    server.subscribe("a", "ana", "jazz")
    assert client.post("/v1/subscriptions", json={"id": "a", **JAZZ}).status_code == 409
    assert client.put("/v1/subscriptions/a", json=JAZZ).status_code == 200
    assert server.publish("jazz")["deliveries"] == 1  # the ranking's
    assert client.get("/v1/current", params={"id": "a"}).status_code == 200
    server.subscribe("a", "ana", "jazz")
    assert client.get("/v1/subscriptions/a").json()["kind"] == "match"
    refused = client.get("/v1/current", params={"id": "a"})
    assert (refused.status_code, "of kind match" in refused.json()["error"]) == (422, True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "best"}, "kind"),
        ({"k": 0}, "k"),
        ({"alpha": 1.5}, "alpha"),
        ({"text": " "}, "white space"),
        ({"text": None}, "text (or terms) needed"),
        ({"lat": 91}, "latitude"),
        ({"expression": "jazz"}, "a wish of kind rank has none"),
        ({"radius_m": 5}, "a wish of kind rank has none"),
        ({"kind": "match", "expression": "jazz", "radius_m": 5}, "a wish of kind match has none"),
    ],
)
def test_a_ranking_that_cannot_be_is_refused_with_a_reason(server: Running, change: dict, reason: str) -> None:
    answer = server.client.put("/v1/subscriptions/a", json={**JAZZ, **change})
    assert answer.status_code == 422
    assert reason in answer.json()["error"]


def test_import_and_export_of_both_kinds(server: Running) -> None:
    rows = [
        {"id": "m", "subscriber": "ana", "expression": "jazz", **WORLD},
        {"id": "r", **JAZZ},
        {"id": "r", **JAZZ},
        {"id": "t", **JAZZ, "text": None, "terms": ["AND"]},
        {"id": "x", **JAZZ, "k": 10**6},
    ]
    headers = {"content-type": "application/x-ndjson"}
    told = server.client.post("/v1/import/subscriptions", content="\n".join(map(json.dumps, rows)), headers=headers)
    assert (told.json()["accepted"], [r["line"] for r in told.json()["rejections"]]) == (3, [3, 5])
    exported = server.client.get("/v1/export/subscriptions").text
    again = server.client.post("/v1/import/subscriptions?replace=true", content=exported, headers=headers).json()
    assert (again["accepted"], server.client.get("/v1/export/subscriptions").text) == (3, exported)


def test_changes_come_with_the_matches_in_the_order_of_messages(server: Running) -> None:
    with Client(server.url) as client:
        assert client.rank("cy", "live jazz", (0, 0), k=1, id="best") == "best"
        server.subscribe("all", "cy", "jazz")
        server.publish("jazz")
        events = client.events("cy", after=0)
        first, now = next(events), next(events)
        assert (first.operation, first.seq, first.subscriptions) == ("match", 1, ["all"])
        assert (now.operation, now.subscriptions, texts(now.feature["features"])) == ("current", ["best"], ["jazz"])
        for seq in (2, 3):
            server.publish("live jazz")
            three = [next(events) for _ in range(3)]
            assert [e.seq for e in three] == [seq, seq, seq]
            assert three[0].operation == "match"
            assert {e.operation for e in three[1:]} == {"enter", "leave"}
            assert [e.more for e in three] == [True, True, False]
            entered = next(e for e in three if e.operation == "enter")
            assert (entered.text, entered.subscriptions, len(entered.scores)) == ("live jazz", ["best"], 1)
        assert [ranked.feature["id"] for ranked in client.ranking("best")] == [0]
        events.close()  # type: ignore[attr-defined]


def test_only_the_last_event_of_a_message_is_a_position(server: Running) -> None:
    server.client.put("/v1/subscriptions/best", json={**JAZZ, "k": 1})
    server.publish("jazz")
    with server.events("cy", after=1) as events:
        assert next(events)[:2] == ("current", None)
        server.publish("live jazz")
        assert {next(events)[:2], next(events)[:2]} <= {("enter", None), ("leave", None), ("enter", 2), ("leave", 2)}
    with server.events("cy", after=1) as events:  # somebody who saw only the first of them
        name, _, data = next(events)
        assert (name, texts(data["data"]["features"])) == ("current", ["live jazz"])


def test_a_reader_that_is_sent_back_gets_what_the_ranking_holds(server: Running) -> None:
    server.client.put("/v1/subscriptions/best", json={**JAZZ, "k": 3})
    with server.events("cy", after=0) as events:
        assert next(events)[0] == "current"
        server.publish(*["jazz"] * 100)  # the outbox holds 5
        held: list[int] = []
        while held != [99, 98, 97]:  # ids; the newest come first
            name, _, data = next(events)
            assert name == "current", "no change without what it changes"
            held = [feature["id"] for feature in data["data"]["features"]]
    assert server.service.live.fallbacks > 0


def test_events_of_one_message_are_told_apart() -> None:
    one, two = (Message(n, (), point(0, 0)) for n in (1, 2))
    deliveries = [
        Delivery("m", "a", one, "match", 1),
        Delivery("m", "a", two, "match", 2),
        Delivery("r", "a", one, "enter", 1, 0.5),
        Delivery("s", "a", one, "enter", 1, 0.25),
        Delivery("r", "b", one, "leave", 2, 0.5),
    ]
    assert _events(deliveries) == [
        Event("a", 1, one, ("m",), more=True),
        Event("a", 1, one, ("r", "s"), "enter", (0.5, 0.25)),
        Event("a", 2, two, ("m",)),
        Event("b", 2, one, ("r",), "leave", (0.5,)),
    ]
