"""The yardstick and the trials of the bench."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.bench import BenchError
from nearcast.bench import contestant as contestant_module
from nearcast.bench import measure as measure_module
from nearcast.bench import trials as trials_module
from nearcast.bench.floor import Floor
from nearcast.bench.measure import affordable, timed
from nearcast.bench.plots import write_plots
from nearcast.bench.tables import markdown
from nearcast.bench.workload import Workloads, batches
from nearcast.columns.encoder import TextEncoder
from nearcast.indexes.scan import Scan
from nearcast.kernels.floor import touch_and_copy
from tests.benched import HEADER, TINY, results_of, tiny_suite


def test_the_floor_touches_every_term_and_copies_every_answer():
    workload = Workloads(1).prepare(TINY)
    counts = np.arange(len(workload.messages))
    floor = Floor(workload, tiny_suite("scan").pace, counts)
    parts = [floor.match(batch) for batch in floor._batches]
    assert np.concatenate([np.diff(starts) for starts, _ in parts]).tolist() == counts.tolist()
    assert np.concatenate([found for _, found in parts]).tolist() == list(range(counts.sum()))
    rows, lines = workload.messages.rows, np.ones((8, 8), dtype=np.uint64)
    starts, found = np.zeros(len(counts) + 1, dtype=np.int64), np.empty(counts.sum(), dtype=np.int32)
    n, total = touch_and_copy(rows, lines, np.uint64(61), floor._answer_from, floor._answers, starts, found)
    assert (n, total) == (counts.sum(), len(workload.messages.terms))


def test_results_tell_how_many_times_the_floor_they_are():
    suite = tiny_suite("scan", "strata")
    suite = replace(suite, experiments=(replace(suite.experiments[0], floor=True, beside="scan"),))
    experiment = results_of(suite)
    scan, strata, floor = experiment.cases[0].results
    assert (floor.index, floor.times_floor, floor.matches) == ("floor", 1.0, scan.matches)
    assert scan.times_floor == pytest.approx(scan.us / floor.us)
    assert strata.times_floor == pytest.approx(strata.us / floor.us)
    page = markdown(replace(HEADER, experiments=(experiment,)))
    assert "how many times the time of scan, measured beside it, and the time of the floor" in page
    assert "| floor |" in page


@pytest.mark.parametrize(
    ("kind", "figures"),
    [
        ("threads", {"µs, one thread", "µs, 2 threads", "gain"}),
        ("text", {"µs from terms", "µs from text", "text / terms"}),
        ("snapshot", {"save s", "MB", "load ms", "first match ms", "first insertion ms", "longest of the others ms"}),
        (
            "beside",
            {"inserts/s", "matches beside", "longest wait, one call"}
            | {f"ms {when}, median" for when in ("alone", "beside")}
            | {f"wait {when}, 99.9 %" for when in ("alone", "beside")}
            | {f"longest wait {when}" for when in ("alone", "beside")},
        ),
        (
            "odd",
            {
                f"{world}: {what}"
                for world in ("one term", "one point", "everywhere", "all the same", "10,000 terms")
                for what in ("build s", "matches", "µs")
            },
        ),
    ],
)
def test_trials_give_figures(kind, figures, monkeypatch, tmp_path):
    monkeypatch.setattr(trials_module, "_PASS", 0.0)
    experiment = results_of(tiny_suite("strata", kind=kind))
    told = experiment.cases[0].results[0].figures
    assert set(told) == figures
    assert all(value >= 0 for value in told.values() if not np.isnan(value))
    run = replace(HEADER, experiments=(experiment,))
    assert f"| {next(iter(told))} |" in markdown(run)
    assert [path.name for path in write_plots(run, tmp_path).values()] == ["s-e.png"]


def test_a_trial_that_cannot_be_made_is_a_failure_with_its_reason(monkeypatch):
    monkeypatch.setattr(trials_module, "_PASS", 0.0)
    experiment = results_of(tiny_suite("strata", kind="snapshot", spec=replace(TINY, churn=0.0)))
    assert "needs newcomers" in experiment.cases[0].results[0].notes[0]
    workload = Workloads(1).prepare(TINY)
    with pytest.raises(BenchError, match="has no texts"):
        trials_module.text(trials_module.Setting(Scan(), batches(workload.messages, 5), workload, tiny_suite("x").pace))


def test_texts_say_what_the_terms_say(real_folder):
    """Generated and anonymous terms get made-up words; a set with texts gives these themselves."""
    texts = ["Old Mill", "the old Bridge", "Mill pond, old", "new bridge"] * 20
    n = len(texts)
    table = {"id": np.arange(n), "lat": np.linspace(0, 9, n), "lon": np.linspace(0, 9, n), "text": texts}
    pq.write_table(pa.table(table), real_folder / "gn_gnis.parquet")
    real = replace(TINY, vocabulary=None, messages=12)
    for spec in (TINY, replace(real, data="tweets_terms"), replace(real, data="gn_gnis")):
        workload = Workloads(3).prepare(spec, texts=True)
        batch, _, rejected = TextEncoder(workload.texts.lexicon).encode(
            workload.texts.texts, workload.messages.boxes[:, :2]
        )
        assert not rejected
        assert np.array_equal(batch.terms, workload.messages.terms)
    assert set(workload.texts.texts.to_pylist()) <= set(texts)


def test_names_of_the_papers_that_are_not_here_are_reported():
    suite = tiny_suite("scan", "rt+:soon")
    here, absent = results_of(suite).cases[0].results
    assert here.status == "measured"
    assert (absent.status, absent.notes) == ("absent", ("not in this version",))


def test_what_is_affordable_stays_between_its_bounds():
    assert affordable(1.0, 0.1, 2, 50) == 10
    assert affordable(1.0, 10.0, 2, 50) == 2
    assert affordable(1.0, 0.0, 2, 50) == 50
    assert affordable(1.0, 10.0, 16, 4) == 4


def test_a_time_with_compilation_in_it_is_marked_and_a_build_repeated(monkeypatch):
    compiled = iter([1, 2, 2, 2])
    monkeypatch.setattr(measure_module.jit, "signatures", lambda: {"kernel": next(compiled, 2)})
    assert timed(lambda: 5).compiled
    assert not timed(lambda: 5).compiled
    built = []
    monkeypatch.setattr(
        Scan, "insert", lambda self, columns, whole=Scan.insert: built.append(1) or whole(self, columns)
    )
    compiled = iter([1, 2])
    contestant = contestant_module.Contestant("scan", Workloads(1).prepare(TINY), tiny_suite("scan").pace)
    contestant.build()
    assert len(built) == 2
