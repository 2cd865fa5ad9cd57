"""Rankers in the bench: equal answers, plausible counters, tables and plots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nearcast import ranking
from nearcast.bench import Runner, adjusted, find_suite
from nearcast.bench.ranking import make_world, measure
from nearcast.bench.searches import WAYS, measure_searches
from nearcast.bench.spec import BenchError, Spec
from nearcast.bench.suite import SEARCHES, Suite, read_suites
from nearcast.bench.workload import Workloads
from nearcast.cli import app
from nearcast.kernels.jit import PURE
from nearcast.ranking.scan import Scan

SMALL = Spec(data="gn", subscriptions=60, window=40, warm=10, messages=30, k=3)


def test_all_rankers_tell_the_same_changes() -> None:
    workloads = Workloads(1)
    found = list(measure(make_world(workloads, SMALL), ranking.names(), workloads))
    assert [result.index for result in found] == ranking.names()
    assert len({result.matches for result in found}) == 1
    assert found[0].figures["changes"] > 0
    assert all(result.figures["arrival µs"] > 0 and result.figures["expiry µs"] > 0 for result in found)


def test_threads_and_bursts() -> None:
    workloads = Workloads(1)
    for spec in (replace(SMALL, threads=2), replace(SMALL, burst=3.0)):
        world = make_world(workloads, spec)
        assert len(world.posts) == world.row_from[-1]
        (result,) = measure(world, ["strata-rank"], workloads)
        assert result.figures["changes"] > 0


def test_all_ways_to_search_a_window_find_the_same() -> None:
    few = replace(SMALL, window=30 if PURE else 600, subscriptions=30 if PURE else 200)
    for spec in (few, replace(few, k=1), replace(few, data="yelp", k=25)):
        found = list(measure_searches(make_world(Workloads(2), spec), list(WAYS)))
        assert [result.index for result in found] == SEARCHES == list(WAYS)
        assert all(result.figures["µs a search"] > 0 for result in found)


def test_rankers_that_disagree_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Scan._probe
    monkeypatch.setattr(Scan, "_probe", lambda self, *args: (right(self, *args)[0], 0))  # finds nobody
    workloads = Workloads(1)
    with pytest.raises(BenchError, match="strata-rank and scan tell different changes"):
        list(measure(make_world(workloads, SMALL), ["strata-rank", "scan"], workloads))


def _tiny() -> Suite:
    return adjusted(find_suite("skype"), only=["dissemination"], contestants=["scan", "strata-rank"], scale=0.001)


def test_the_suite_runs_small_and_is_drawn(tmp_path: Path) -> None:
    (result,) = Runner(_tiny(), seed=1).run()
    assert [case.label for case in result.cases] == ["tweets", "gn", "yelp"]
    assert [r.index for r in result.cases[0].results] == ["scan", "strata-rank"]
    page, file = tmp_path / "skype.md", tmp_path / "skype.json"
    options = ["--experiment", "k", "--scale", "0.001", "--indexes", "strata-rank", "--json", str(file)]
    run = CliRunner().invoke(
        app, ["bench", "run", "skype", *options, "--markdown", str(page), "--plots", str(tmp_path)]
    )
    assert run.exit_code == 0, run.output
    assert "arrival µs" in page.read_text()
    assert (tmp_path / "skype-k.png").is_file()


def test_a_suite_of_rankings_takes_rankers_only() -> None:
    with pytest.raises(BenchError, match="index 'rt' given; there are scan"):
        adjusted(find_suite("skype"), contestants=["rt"])
    text = '[s]\ntitle = ""\n[[s.experiments]]\nname = "a"\ntitle = ""\nkind = "rank"\nvary = "k"\nvalues = [1]\n'
    with pytest.raises(BenchError, match="index 'strata' given"):
        read_suites(text + 'indexes = ["strata"]')
    for bad in ({"k": 0}, {"threads": 0}, {"warm": -1}, {"burst": 0.5}):
        with pytest.raises(BenchError):
            Spec(**bad)  # type: ignore[arg-type]
