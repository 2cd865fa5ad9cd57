"""Subscriptions, messages, questions: what the API takes, gives and refuses."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest

from tests.service.serving import WORLD, Running

NDJSON = {"content-type": "application/x-ndjson"}
TOKYO = {"lon": 139.70, "lat": 35.66, "radius_m": 1500}


def test_subscriptions_one_by_one(server: Running) -> None:
    client = server.client
    body = {"subscriber": "ana", "expression": "ramen -instant", **TOKYO, "max_events": 9}
    made = client.post("/v1/subscriptions", json=body)
    assert made.status_code == 201
    identity = made.json()["id"]
    assert client.get(f"/v1/subscriptions/{identity}").json() == {"id": identity, "kind": "match", **body}
    assert client.post("/v1/subscriptions", json=body | {"id": identity}).status_code == 409
    other = {"subscriber": "ana", "terms": ["AND", "b"], **WORLD}
    assert client.put("/v1/subscriptions/x/y z", json=other).status_code == 201
    assert client.put("/v1/subscriptions/x/y z", json=other).status_code == 200
    held = client.get("/v1/subscriptions", params={"subscriber": "ana"}).json()["subscriptions"]
    assert {s["id"] for s in held} == {identity, "x/y z"}
    assert client.delete(f"/v1/subscriptions/{identity}").status_code == 204
    assert client.get(f"/v1/subscriptions/{identity}").status_code == 404
    assert client.delete(f"/v1/subscriptions/{identity}").status_code == 404


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"expression": "ramen AND"}, "at character"),
        ({"expression": "NOT ramen"}, "at character"),
        ({"expression": None}, "either expression or terms needed"),
        ({"lat": 139.0}, "latitude"),
        ({"west": 1}, "one of region"),
        ({"max_events": 0}, "max_events"),
        ({"expires": "soon"}, "expires: 'soon' given"),
        ({"subscriber": ""}, "subscriber"),
        ({"color": "red"}, "color"),
        ({"expression": "\ud800"}, ""),
    ],
)
def test_a_subscription_that_cannot_be_is_refused_with_a_reason(server: Running, change: dict, reason: str) -> None:
    body = {"subscriber": "ana", "expression": "ramen", **TOKYO, **change}
    answer = server.client.put(
        "/v1/subscriptions/a", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    assert reason in answer.json()["error"]
    assert server.client.get("/v1/subscriptions/a").status_code == 404


def test_a_polygon_may_have_so_many_vertices(server: Running) -> None:
    region = {"type": "Polygon", "coordinates": [[[0, 0], *[[1 + i / 100, i * i / 1e4] for i in range(60)], [0, 0]]]}
    answer = server.client.put("/v1/subscriptions/a", json={"subscriber": "a", "expression": "b", "region": region})
    assert answer.status_code == 422
    assert "vertices given; at most 50 allowed" in answer.json()["error"]


def test_import_and_export(server: Running) -> None:
    rows = [
        {"id": "a", "subscriber": "ana", "expression": "jazz", **WORLD},
        {"id": 5, "expression": "blues", **TOKYO},
        {"id": "a", "expression": "twice", **TOKYO},
        {"id": "bad", "expression": "(", **TOKYO},
        {"id": "c", "terms": ["raw"], "region": "POLYGON ((0 0, 1 0, 1 1, 0 0))", "expires": 7},
    ]
    body = "\n".join(map(json.dumps, rows)) + "\nnot json"
    told = server.client.post("/v1/import/subscriptions", content=body, headers=NDJSON).json()
    assert (told["accepted"], told["rejected"]) == (3, 3)
    assert [r["line"] for r in told["rejections"]] == [3, 4, 6]
    exported = server.client.get("/v1/export/subscriptions")
    assert [json.loads(line)["id"] for line in exported.text.splitlines()] == ["a", "5", "c"]
    again = server.client.post("/v1/import/subscriptions?replace=true", content=exported.text, headers=NDJSON).json()
    assert (again["accepted"], again["rejected"]) == (3, 0)
    assert server.client.get("/v1/export/subscriptions").text == exported.text
    known = server.client.post("/v1/import/subscriptions", content=exported.text, headers=NDJSON).json()
    assert (known["accepted"], known["rejected"]) == (0, 3)


def test_publish_one_many_and_arrow(server: Running) -> None:
    client = server.client
    server.subscribe("j", "ana", "jazz")
    one = client.post("/v1/messages", json={"id": 1, "text": "jazz", "lon": 0, "lat": 0, "payload": {"n": [1]}})
    assert one.json() == {
        "accepted": 1, "rejected": 0, "rejections": [], "first_seq": 1, "last_seq": 1, "deliveries": 1,
        "unmatched": None,
    }  # fmt: skip
    lines = '{"id": 2, "text": "jazz", "lon": 0, "lat": 0}\nnope\n\n{"id": 3, "terms": ["jazz"], "lon": 0, "lat": 99}\n'
    many = client.post("/v1/messages", content=lines, headers=NDJSON).json()
    assert (many["accepted"], many["first_seq"], many["rejected"]) == (1, 2, 2)
    assert [r["line"] for r in many["rejections"]] == [2, 4]
    table = pa.table({"id": ["x", "y"], "text": ["jazz", None], "lon": [1.0, 2.0], "lat": [1.0, 2.0]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    arrow = client.post("/v1/messages", content=sink.getvalue(), headers=headers).json()
    assert (arrow["accepted"], arrow["deliveries"], arrow["rejections"][0]["line"]) == (1, 1, 2)
    assert client.post("/v1/messages", content=sink.getvalue()[:-20], headers=headers).status_code in (200, 422)
    assert client.post("/v1/messages", content=b"\x00", headers=headers).status_code == 422
    assert client.post("/v1/messages", content=b"", headers=NDJSON).json()["accepted"] == 0
    assert client.post("/v1/messages", content=b"{}", headers={"content-type": "text/csv"}).status_code == 415
    assert client.post("/v1/messages", json={"id": 1, "text": "", "lon": 0, "lat": 0}).status_code == 422
    assert client.post("/v1/messages", json={"id": 1, "text": "a", "lon": 0, "lat": 0, "payload": 3}).status_code == 422


def test_limits_of_a_request(server: Running) -> None:
    row = '{"id": 1, "text": "jazz", "lon": 0, "lat": 0}\n'
    too_many = server.client.post("/v1/messages", content=row * 1001, headers=NDJSON)
    assert too_many.status_code == 413
    assert "more than 1,000 rows" in too_many.json()["error"]
    too_long = server.client.post("/v1/messages", content=b" " * 2_000_001, headers=NDJSON)
    assert too_long.status_code == 413
    assert server.service.store.log.last_seq == 0


def test_explain_and_dry_run(server: Running) -> None:
    server.subscribe("j", "ana", "jazz -free")
    server.publish("jazz", "blues", "free jazz")
    message = {"text": "free jazz", "lon": 0, "lat": 0}
    told = server.client.post("/v1/explain", json={"subscription": "j", "message": message}).json()
    assert not told["matched"]
    assert "forbidden free" in told["text"]
    assert server.client.post("/v1/explain", json={"subscription": "k", "message": message}).status_code == 404
    run = server.client.post("/v1/dry-run", json={"wish": {"expression": "jazz", **WORLD}}).json()
    assert (run["matched"], run["scanned"]) == (2, 3)
    assert [e["data"]["nearcast"]["seq"] for e in run["examples"]] == [1, 3]
    later = server.client.post("/v1/dry-run", json={"wish": {"terms": ["jazz"], **WORLD}, "after": 1}).json()
    assert later["matched"] == 1


def test_health_metrics_and_what_is_not_there(server: Running) -> None:
    assert server.client.get("/healthz").json() == {"status": "ok"}
    server.subscribe("j", "ana", "jazz")
    server.publish("jazz")
    assert server.client.get("/nowhere").json() == {"error": "Not Found"}
    text = server.client.get("/metrics").text
    for line in (
        "nearcast_messages_accepted_total 1.0",
        "nearcast_subscriptions 1.0",
        'nearcast_requests_failed_total{status="404"} 1.0',
        "nearcast_publish_seconds_count 1.0",
    ):
        assert line in text
    assert server.client.get("/openapi.json").json()["openapi"].startswith("3.1")
