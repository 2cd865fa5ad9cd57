"""`nearcast index`: build and inspect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nearcast import indexes
from nearcast.cli import app
from nearcast.workloads import messages, subscriptions

run = CliRunner().invoke


@pytest.fixture(scope="module")
def wishes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wishes") / "wishes.ndjson"
    rows = [
        {"id": i, "expression": "ramen" if i % 3 else "ramen AND miso", "lon": i % 90, "lat": 10, "radius_m": 1000}
        for i in range(60)
    ]
    path.write_text("\n".join(map(json.dumps, [*rows, {"id": 99, "expression": "(", "lon": 0, "lat": 0}])))
    return path


def test_build_then_inspect_shows_words_and_strata(wishes: Path, tmp_path: Path) -> None:
    out = tmp_path / "snapshot"
    built = run(app, ["index", "build", "--subscriptions", str(wishes), "--out", str(out)])
    assert built.exit_code == 3  # one row was rejected, the others are there
    assert "60 subscriptions" in built.output
    assert "1 rejected" in built.output
    told = run(app, ["index", "inspect", str(out)]).output
    for part in ("60 subscriptions", "per subscription", "one term, tree", "ramen", "16 to 31", "expected for a term"):
        assert part in told


@pytest.mark.parametrize("name", ["scan", "strata"])
def test_every_snapshot_can_be_inspected(name: str, tmp_path: Path) -> None:
    batch = messages(50, 1)
    indexes.build(name, subscriptions(batch, 80, 2)).save(tmp_path / "snapshot")
    told = run(app, ["index", "inspect", str(tmp_path / "snapshot"), "--top", "3"])
    assert told.exit_code == 0
    assert "80 subscriptions" in told.output


def test_an_empty_index_has_nothing_to_expect(tmp_path: Path) -> None:
    indexes.create("strata").save(tmp_path / "snapshot")
    told = run(app, ["index", "inspect", str(tmp_path / "snapshot")])
    assert told.exit_code == 0
    assert "nothing inside" in told.output
