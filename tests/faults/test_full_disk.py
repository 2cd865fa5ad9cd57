"""A full disk: publishers are told, what was acknowledged stays, and all goes on when there is room."""

from __future__ import annotations

import json
from pathlib import Path

from nearcast.service.settings import Settings
from nearcast.store.sqlite import SqliteDatabase
from tests.service.serving import Running, running

NDJSON = {"content-type": "application/x-ndjson"}


def limit_pages(server: Running, most: int) -> None:
    """SQLite answers as for a full disk when its file would grow beyond this."""
    database = server.service.store._database
    assert isinstance(database, SqliteDatabase)
    with database._writing:
        database._writer.execute(f"PRAGMA max_page_count={most}")


def publish(server: Running, number: int) -> int:
    row = {"id": number, "text": "jazz " + "x" * 50_000, "lon": 0, "lat": 0}
    return server.client.post("/v1/messages", content=json.dumps(row), headers=NDJSON).status_code


def test_a_full_disk_is_contained_and_visible(tmp_path: Path) -> None:
    settings = Settings(f"sqlite:///{tmp_path}/a.db")
    with running(settings) as server:
        server.subscribe("j", "ana", "jazz")
        limit_pages(server, 100)
        answers = [publish(server, number) for number in range(20)]
        assert answers[0] == 200
        assert answers[-1] == 503
        assert set(answers) == {200, 503}
        assert server.client.get("/readyz").status_code == 503
        assert "full" in server.client.get("/readyz").json()["status"]
        acknowledged = [number for number, status in enumerate(answers) if status == 200]
        body = {"subscriber": "bo", "terms": ["y" * 60_000], "west": 0, "south": 0, "east": 1, "north": 1}
        refused = server.client.put("/v1/subscriptions/k", json=body)
        assert refused.status_code == 503
        assert server.client.get("/v1/subscriptions/k").status_code == 404
        replayed = server.client.get("/v1/replay", params={"subscriber": "ana", "after": 0}).text.splitlines()
        assert [json.loads(line)["data"]["id"] for line in replayed] == acknowledged
        limit_pages(server, 1_000_000)
        assert publish(server, 99) == 200
        assert server.client.get("/readyz").status_code == 200
    with running(settings) as server:
        replayed = server.client.get("/v1/replay", params={"subscriber": "ana", "after": 0}).text.splitlines()
        assert [json.loads(line)["data"]["id"] for line in replayed] == [*acknowledged, 99]
