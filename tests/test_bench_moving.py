"""Movers in the bench: equal answers, plausible counters, tables and plots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nearcast import moving
from nearcast.bench.moving import make_world, measure
from nearcast.bench.spec import BenchError, Spec
from nearcast.bench.workload import Workloads
from nearcast.cli import app
from nearcast.kernels.jit import PURE
from nearcast.moving.scan import Scan

SMALL = Spec(
    data="gn",
    vocabulary=300,
    subscriptions=200,
    window=200,
    area=(1e-2, 1e-1),
    keywords=(1, 1),
    mobility=0.8,
    timestamps=1,
)


def test_all_movers_tell_the_same_changes() -> None:
    workloads = Workloads(1)
    names = ["scan", "strata-move"] if PURE else moving.names()
    found = [told.result for told in measure(make_world(workloads, SMALL), names, workloads)]
    assert [result.index for result in found] == names
    assert len({result.matches for result in found}) == 1
    assert found[0].figures["changes a move"] > 0
    assert all(result.figures["move µs"] > 0 and result.figures["end µs"] > 0 for result in found)


def test_movers_that_disagree_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Scan._differ
    monkeypatch.setattr(Scan, "_differ", lambda self, *args: (right(self, *args)[0], 0))  # finds nothing
    workloads = Workloads(1)
    with pytest.raises(BenchError, match="strata-move and scan tell different changes"):
        list(measure(make_world(workloads, SMALL), ["strata-move", "scan"], workloads))


def test_bad_worlds_get_a_clear_error() -> None:
    for field, value in [("roads", "rome"), ("mobility", 2.0), ("speed", -1.0), ("timestamps", 0), ("arrivals", -1)]:
        with pytest.raises(BenchError, match=field):
            replace(SMALL, **{field: value})


@pytest.mark.skipif(PURE, reason="the compiled run has shown it")
def test_the_suite_runs_small_and_is_drawn(tmp_path: Path) -> None:
    page = tmp_path / "moving.md"
    options = ["--experiment", "main", "--scale", "0.0005", "--indexes", "strata-move", "--markdown", str(page)]
    run = CliRunner().invoke(app, ["bench", "run", "moving", *options, "--plots", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert "| subscriptions | mover | µs |" in page.read_text()
