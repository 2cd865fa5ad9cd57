"""`nearcast bench`, from end to end."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from nearcast import indexes
from nearcast.bench import BenchError, find_suite
from nearcast.bench import measure as measure_module
from nearcast.bench import trials as trials_module
from nearcast.cli import app


def cli(*words):
    return CliRunner().invoke(app, ["bench", *map(str, words)])


def test_the_smoke_suite_runs_from_end_to_end_without_real_data(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARCAST_DATA", str(tmp_path / "nowhere"))
    where = ["--json", tmp_path / "r.json", "--markdown", tmp_path / "r.md", "--plots", tmp_path / "plots"]
    done = cli("run", "smoke", "--indexes", "scan", "--scale", 0.01, "--repeat", 1, *where)
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "r.json").read_text())
    by_name = {experiment["name"]: experiment for experiment in told["experiments"]}
    assert "gn_gnis.parquet is not here" in by_name["real"]["cases"][0]["skipped"]
    assert by_name["places"]["cases"][0]["results"][0]["us"] > 0
    assert told["date"]
    assert told["machine"]["cores"] >= 1
    page = (tmp_path / "r.md").read_text()
    assert "skipped: gn_gnis.parquet is not here" in page
    assert "| index | point |" in page
    assert "inserts/s" in page
    assert "p99" in page
    assert "p99 and" not in done.output
    plots = {path.name for path in (tmp_path / "plots").iterdir()}
    assert plots == {"smoke-places.png", "smoke-variants.png", "smoke-maintenance.png"}
    assert "![Point and range messages](plots/smoke-places.png)" in page
    drawn = cli("plot", tmp_path / "r.json", "--folder", tmp_path / "again", "--markdown", tmp_path / "b" / "r.md")
    assert drawn.exit_code == 0
    assert "](../again/smoke-places.png)" in (tmp_path / "b" / "r.md").read_text()
    assert {path.name for path in (tmp_path / "again").iterdir()} == plots


def test_the_strata_suite_runs_without_real_data(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARCAST_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(trials_module, "_PASS", 0.0)
    monkeypatch.setattr(measure_module, "_SHORTEST", 1e-9)
    where = ["--json", tmp_path / "r.json", "--markdown", tmp_path / "r.md", "--plots", tmp_path / "plots"]
    for name in ("wide", "poi_us", "updates", "snapshot"):
        where += ["--experiment", name]
    done = cli("run", "strata", "--indexes", "strata,keyword-first", "--scale", 1e-4, "--repeat", 1, *where)
    assert done.exit_code == 0, done.output
    told = {one["name"]: one for one in json.loads((tmp_path / "r.json").read_text())["experiments"]}
    assert [case["label"] for case in told["wide"]["cases"]] == ["100", "500", "1K"]
    assert [r["index"] for r in told["wide"]["cases"][0]["results"]] == ["strata", "keyword-first", "floor"]
    assert "insert_longest_ms" in told["updates"]["cases"][0]["results"][0]["maintenance"]
    assert "is not here" in told["poi_us"]["cases"][0]["skipped"]
    assert (tmp_path / "plots" / "strata-snapshot.png").exists()


def test_the_strata_suite_compares_all_at_a_million_and_the_best_beyond():
    suite = find_suite("strata")
    for experiment in suite.experiments:
        if experiment.larger:
            found = {case.spec.subscriptions: experiment.contestants(case)[0] for case in experiment.cases()}
            assert found[1_000_000] == list(indexes.CATALOGUE)
            assert {"strata", "iq-tree", "rq-tree"} <= set(found[10_000_000])
            assert set(found[10_000_000]) < set(found[5_000_000])


def test_lists_name_suites_experiments_and_what_is_missing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    listed = cli("list")
    assert listed.exit_code == 0
    assert all(name in listed.output for name in ("smoke", "kdd13", "cikm15", "aptree", "message_words: 5, 10, 20"))
    chosen = cli("run", "kdd13", "--list", "--experiment", "scalability", "--size", 1000, "--size", 5000)
    assert chosen.exit_code == 0
    assert "1K, 5K" in chosen.output
    assert "token-sets" not in chosen.output


@pytest.mark.usefixtures("doubles")
def test_the_command_fails_when_an_index_fails_and_refuses_unknown_names():
    small = ["--scale", 0.01, "--repeat", 1, "--experiment", "places"]
    failed = cli("run", "smoke", "--indexes", "broken,scan", *small)
    assert failed.exit_code == 1
    assert "broken: failed: warming up" in failed.output
    unknown = cli("run", "smoke", "--indexes", "skan", *small)
    assert isinstance(unknown.exception, BenchError)
    assert "index 'skan' given" in str(unknown.exception)


def test_plots_without_matplotlib_are_refused_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused = cli("run", "smoke", "--plots", tmp_path)
    assert isinstance(refused.exception, BenchError)
    assert "nearcast[bench]" in str(refused.exception)
