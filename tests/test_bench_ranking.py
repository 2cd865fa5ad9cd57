"""The contest of rankers: equal answers, plausible counters, a table and a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nearcast import ranking
from nearcast.bench.ranking import RankSpec, compare
from nearcast.bench.spec import BenchError
from nearcast.cli import app


def test_all_rankers_tell_the_same_changes() -> None:
    names = list(ranking.CATALOGUE)
    results = compare(RankSpec("gn", 60, 40, 40, 3), names)
    assert [result.ranker for result in results] == names
    assert len({result.changes for result in results}) == 1
    assert results[0].changes > 0
    assert results[0].ratio == pytest.approx(1.0)


def test_table_and_file(tmp_path: Path) -> None:
    path = tmp_path / "rank.json"
    options = ["--wishes", "30", "--window", "20", "--messages", "20", "--rankers", "scan,strata-rank"]
    result = CliRunner().invoke(app, ["bench", "rank", *options, "--data", "gn", "--json", str(path)])
    assert result.exit_code == 0, result.output
    assert [r["ranker"] for r in json.loads(path.read_text())["results"]] == ["scan", "strata-rank"]
    with pytest.raises(BenchError, match="there are short"):
        RankSpec("nope")
    with pytest.raises(BenchError, match="at least 1"):
        RankSpec(k=0)
