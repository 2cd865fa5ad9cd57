"""The runner of the bench: wrong answers are never timed, limits are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nearcast.bench import BenchError, Runner, adjusted, read_suites
from nearcast.bench import contestant as contestant_module
from nearcast.indexes.scan import Scan
from tests.benched import ALSO, GOOD, TINY, results_of, tiny_suite


@pytest.mark.usefixtures("doubles")
def test_a_liar_is_named_and_nobody_is_timed(timings):
    with pytest.raises(BenchError, match="scan and liar disagree on message"):
        results_of(tiny_suite("scan", "liar"))
    assert timings == []


@pytest.mark.usefixtures("doubles")
def test_a_liar_alone_is_caught_by_the_judge(timings):
    with pytest.raises(BenchError, match="scan and liar disagree"):
        results_of(tiny_suite("liar"))
    assert timings == []


@pytest.mark.usefixtures("doubles")
def test_changes_are_checked_as_well():
    spec = replace(TINY, churn=0.5)
    with pytest.raises(BenchError, match="after changes: scan and ghost disagree"):
        results_of(tiny_suite("ghost", kind="maintenance", spec=spec))


@pytest.mark.usefixtures("doubles")
def test_slots_are_the_index_own_affair_and_contestants_take_turns(timings):
    experiment = results_of(tiny_suite("scan", "shifted", kind="maintenance", spec=replace(TINY, built=0.5)))
    assert timings == ["scan", "shifted", "shifted", "scan"] * 2
    result = experiment.cases[0].results[1]
    assert result.maintenance is not None
    assert (result.maintenance.inserted, result.maintenance.removed) == (36, 6)
    assert result.maintenance.insert_per_s > 0
    assert result.speedup == 1.0


@pytest.mark.usefixtures("doubles")
def test_a_crash_is_a_result_and_the_others_go_on():
    experiment = results_of(tiny_suite("scan", "broken"))
    fine, crashed = experiment.cases[0].results
    assert fine.status == "measured"
    assert crashed.status == "failed"
    assert crashed.notes == ("warming up: RuntimeError: out of order with a second line",)
    assert experiment.failed() == ["e 1: broken"]


@pytest.mark.usefixtures("doubles")
def test_a_judge_that_crashes_ends_the_run():
    with pytest.raises(BenchError, match="the judge broken failed"):
        results_of(replace(tiny_suite("scan"), judge="broken"))


# --- limits, each of them told ---


def test_a_slow_index_is_measured_on_fewer_messages():
    result = results_of(tiny_suite("scan", spec=replace(TINY, messages=40), budget=1e-9)).cases[0].results[0]
    assert result.messages == 16
    assert "measured on 16 of 40 messages" in result.notes[0]


def test_changes_beyond_the_budget_are_not_counted(monkeypatch):
    monkeypatch.setattr(contestant_module, "CHANGES", 2)
    suite = tiny_suite("scan", kind="maintenance", budget=1e-9)
    result = results_of(suite).cases[0].results[0]
    assert (result.maintenance.inserted, result.maintenance.removed) == (2, 2)
    assert "rate of changes measured on 2 of 6 subscriptions" in result.notes


def test_a_late_build_is_reported_and_left_out_afterwards():
    experiment = results_of(tiny_suite("scan", values=(1, 2), build_limit=-1.0))
    first, second = (case.results[0] for case in experiment.cases)
    assert "the build took" in first.notes[0]
    assert (second.status, second.us) == ("left out", None)
    assert "in case 1" in second.notes[0]


@pytest.mark.usefixtures("doubles")
def test_large_cases_are_measured_one_after_the_other(timings):
    case = results_of(tiny_suite("scan", "shifted", together=10)).cases[0]
    assert not case.interleaved
    assert timings == ["scan", "scan", "shifted", "shifted"]


@pytest.mark.usefixtures("doubles")
def test_one_may_stay_in_memory_and_be_measured_beside_each_of_the_others(timings):
    suite = tiny_suite("shifted", "scan", "keyword-first", together=10, repeat=1)
    experiment = replace(suite.experiments[0], beside="scan", baseline="scan")
    case = results_of(replace(suite, experiments=(experiment,))).cases[0]
    assert case.interleaved
    assert timings == ["scan", "shifted", "scan", "keyword-first", "scan"]
    assert [result.index for result in case.results] == ["shifted", "scan", "keyword-first"]
    assert [len(result.us_repeats) for result in case.results] == [1, 3, 1]
    assert [result.speedup for result in case.results] == [1.0, 1.0, 1.0]


def test_larger_cases_may_have_fewer_contestants():
    text = GOOD.replace('"keywords"', '"subscriptions"').replace("[1]", "[100, 1000]")
    suite = read_suites(text + 'larger = [{ size = 1000, indexes = ["strata"] }]\n')["s"]
    small, large = suite.experiments[0].cases()
    assert suite.experiments[0].contestants(small) == (["scan"], [])
    assert suite.experiments[0].contestants(large) == (["strata"], [])
    tenth = adjusted(suite, scale=0.1).experiments[0]
    assert [tenth.contestants(case)[0] for case in tenth.cases()] == [["scan"], ["strata"]]
    chosen = adjusted(suite, contestants=["rq-tree"]).experiments[0]
    assert [chosen.contestants(case)[0] for case in chosen.cases()] == [["rq-tree"]] * 2


def test_the_same_indexes_may_meet_other_messages(monkeypatch):
    built = []
    whole = Scan.insert
    monkeypatch.setattr(Scan, "insert", lambda self, columns: built.append(len(columns)) or whole(self, columns))
    suite = read_suites(GOOD + ALSO)["s"]
    experiment = replace(suite.experiments[0], spec=TINY, indexes=("scan", "strata"), floor=True)
    pace = replace(suite.pace, repeat=1, singles=3, batch=20)
    first, other = Runner(replace(suite, pace=pace, experiments=(experiment,)), seed=1).run()
    assert (first.name, other.name, other.title) == ("e", "long", "Long")
    assert built.count(60) == 1
    assert [result.messages for result in first.cases[0].results] == [30, 30, 30]
    assert [result.messages for result in other.cases[0].results] == [12, 12, 12]
    assert other.cases[0].workload["message_words"] == (9, 9)
    assert [result.build_s for result in first.cases[0].results] == [r.build_s for r in other.cases[0].results]


@pytest.mark.usefixtures("doubles")
def test_who_failed_before_fails_with_other_messages_too():
    suite = read_suites(GOOD + ALSO)["s"]
    experiment = replace(suite.experiments[0], spec=TINY, indexes=("scan", "broken"))
    found = list(Runner(replace(suite, experiments=(experiment,)), seed=1).run())
    assert [one.cases[0].results[1].status for one in found] == ["failed", "failed"]
