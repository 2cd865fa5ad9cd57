"""`nearcast rank`: files in, changes out."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from nearcast.cli import app


def _lines(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _world(folder: Path) -> tuple[Path, Path]:
    wishes = [
        {"id": "cy", "text": "live jazz", "lon": 139.77, "lat": 35.69, "k": 1, "alpha": 0.4},
        {"id": "no", "text": "jazz", "lon": 0, "lat": 0, "k": 0},
        {"id": "cy", "text": "again", "lon": 0, "lat": 0},
    ]
    posts = [
        {"id": 1, "text": "jazz tonight", "lon": 139.7, "lat": 35.6, "ts": 10},
        {"id": 2, "text": "live jazz", "lon": 139.77, "lat": 35.69, "ts": 11},
        {"id": 3, "text": "rock", "lon": 139.77, "lat": 35.69, "ts": 5},
        {"id": 4, "text": "rock", "lon": 139.77, "lat": 35.69, "ts": 30},
    ]
    return _lines(folder / "wishes.ndjson", wishes), _lines(folder / "posts.ndjson", posts)


def test_changes_of_a_time_window(tmp_path: Path) -> None:
    wishes, posts = _world(tmp_path)
    out = tmp_path / "changes.ndjson"
    options = ["--seconds", "15", "--out", str(out), "--live", "--batch", "2"]
    result = CliRunner().invoke(app, ["rank", "-w", str(wishes), "-m", str(posts), *options])
    assert result.exit_code == 3
    changes = [json.loads(line) for line in out.read_text().splitlines()]
    told = sorted((c["because_of"], c["operation"], c["message_id"], c["wish_id"]) for c in changes)
    assert told == [(1, "enter", 1, "cy"), (2, "enter", 2, "cy"), (2, "leave", 1, "cy"), (4, "leave", 2, "cy")]
    assert "1 messages were late" in result.output
    assert "wishes: 3 read, 2 rejected" in result.output
    rejected = [json.loads(line) for line in (tmp_path / "changes.ndjson.rejected.ndjson").read_text().splitlines()]
    assert "k: 0" in rejected[0]["reason"]
    assert "'cy' is that of line 1 already" in rejected[1]["reason"]


def test_the_last_messages_to_standard_output(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    wishes, posts = _world(tmp_path)
    result = CliRunner().invoke(app, ["rank", "-w", str(wishes), "-m", str(posts), "--count", "1", "--ranker", "scan"])
    assert '"message_id": 2' in result.output
    bad = CliRunner().invoke(app, ["rank", "-w", str(wishes), "-m", str(posts), "--out", "nowhere/changes.ndjson"])
    assert bad.exit_code != 0
