"""`nearcast move`: files in, what enters and leaves out."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from nearcast.cli import app

SUBSCRIPTIONS = [
    {"id": "bo", "expression": "taxi NOT shared", "lon": 0.0, "lat": 0.0, "radius_m": 1000},
    {"id": "cy", "expression": "taxi", "west": 5, "south": 0, "east": 6, "north": 1},
    {"id": "bo", "expression": "again", "lon": 0, "lat": 0, "radius_m": 1},
]
MOVES = [
    {"id": "bo", "ts": 20, "lon": 1.0, "lat": 0.0, "radius_m": 1000},
    {"id": "nobody", "ts": 21, "lon": 1.0, "lat": 0.0, "radius_m": 1000},
    {"id": "cy", "ts": 30, "west": 0, "south": 0, "east": 2, "north": 1},
    {"id": "bo", "lon": 1.0, "lat": 0.0, "radius_m": 1000},
]
MESSAGES = [
    {"id": 1, "text": "taxi here", "lon": 0.0, "lat": 0.0, "ts": 10},
    {"id": 2, "text": "taxi there", "lon": 1.0, "lat": 0.0, "ts": 11, "ttl": 5},
    {"id": 3, "text": "shared taxi", "lon": 1.0, "lat": 0.0, "ts": 19},
    {"id": 4, "text": "late taxi", "lon": 1.0, "lat": 0.0, "ts": 31},
    {"id": 5, "text": "taxi without a time", "lon": 1.0, "lat": 0.0},
]


def _lines(path: Path, records: list[dict]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def _told(folder: Path, *options: str) -> tuple[list[tuple], str]:
    out = folder / "changes.ndjson"
    files = ["-s", _lines(folder / "s.ndjson", SUBSCRIPTIONS), "--moves", _lines(folder / "moves.ndjson", MOVES)]
    files += ["-m", _lines(folder / "m.ndjson", MESSAGES), "-o", str(out)]
    result = CliRunner().invoke(app, ["move", *files, *options])
    assert result.exit_code == 3, result.output
    changes = [json.loads(line) for line in out.read_text().splitlines()]
    return [(c["ts"], c["operation"], c["subscription_id"], c["message_id"]) for c in changes], result.output


def test_changes_in_the_order_of_time(tmp_path: Path) -> None:
    told, output = _told(tmp_path)
    assert told[:2] == [(10, "enter", "bo", 1), (20, "leave", "bo", 1)]
    assert sorted(told[2:]) == [
        (30, "enter", "cy", 1),
        (30, "enter", "cy", 3),
        (31, "enter", "bo", 4),
        (31, "enter", "cy", 4),
    ]
    assert "4 rejected" in output
    assert "2 moves" in output


def test_a_step_tells_what_is_left_of_it(tmp_path: Path) -> None:
    told, _ = _told(tmp_path, "--step", "100", "--mover", "scan")
    assert sorted(told) == [
        (31, "enter", "bo", 4),
        (31, "enter", "cy", 1),
        (31, "enter", "cy", 3),
        (31, "enter", "cy", 4),
    ]
