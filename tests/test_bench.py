"""The bench: suites are sound, wrong answers are never timed, and results say everything they must."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from nearcast import indexes
from nearcast.bench import BenchError, Runner, RunResult, adjusted, find_suite, packaged_suites, read_suites
from nearcast.bench import contestant as contestant_module
from nearcast.bench import measure as measure_module
from nearcast.bench import trials as trials_module
from nearcast.bench.answers import Agreement, Answer
from nearcast.bench.floor import Floor
from nearcast.bench.measure import Spent, affordable, machine, timed
from nearcast.bench.plots import write_plots
from nearcast.bench.spec import Spec, label
from nearcast.bench.suite import ALL, PAPERS, STREAMS, names_of
from nearcast.bench.tables import count, markdown, number
from nearcast.bench.workload import Workloads, batches
from nearcast.cli import app
from nearcast.columns import Pairs
from nearcast.columns.encoder import TextEncoder
from nearcast.indexes.scan import Scan
from nearcast.kernels.floor import touch_and_copy
from nearcast.workloads import REAL_SETS, DataAbsent

HEADER = RunResult("s", "A run", "2026-01-01", "1.0", 1, 1.0, {"repeat": 2}, "scan", machine())
TINY = Spec(subscriptions=60, messages=30, history=10, vocabulary=200, area=(0.01, 0.2))


# --- suites ---


def test_packaged_suites_ask_only_for_indexes_of_the_catalogue_or_the_papers():
    for suite in packaged_suites().values():
        assert suite.judge in indexes.CATALOGUE
        for experiment in suite.experiments:
            papers = () if experiment.kind in STREAMS else PAPERS
            assert {*experiment.indexes, experiment.baseline} <= {ALL, *names_of(experiment.kind), *papers}
            assert ALL in experiment.indexes or experiment.baseline in experiment.indexes


@pytest.mark.parametrize("name", ["kdd13", "cikm15", "aptree"])
def test_suites_of_papers_have_a_large_case_real_data_and_figures(name):
    suite = packaged_suites()[name]
    sizes = [case.spec.subscriptions for experiment in suite.experiments for case in experiment.cases()]
    data = {case.spec.data for experiment in suite.experiments for case in experiment.cases()}
    assert sizes.count(1_000_000) == {"kdd13": 1, "cikm15": 1, "aptree": 4}[name]
    assert max(sizes) == 1_000_000
    assert {"gn_gnis", "poi_us", "tweets_terms", "airbnb_descriptions"} <= data
    assert data - set(REAL_SETS)
    assert all(experiment.mirrors for experiment in suite.experiments)


def test_smoke_is_small_and_meets_every_index():
    smoke = find_suite("smoke")
    assert all(case.spec.subscriptions <= 5_000 for e in smoke.experiments for case in e.cases())
    assert {ALL} & {name for e in smoke.experiments for name in e.indexes}
    assert {e.kind for e in smoke.experiments} == {"match", "maintenance"}


EXPERIMENT = '[[s.experiments]]\nname = "e"\ntitle = "t"\nvary = "keywords"\nvalues = [1]\nindexes = ["scan"]\n'
ALSO = 'also = [{ name = "long", title = "Long", workload = { message_words = 9, messages = 12 } }]\n'
GOOD = f'[s]\ntitle = "t"\n{EXPERIMENT}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s = [", "not TOML"),
        ("s = 1", "s: a table is needed"),
        ('[s]\ntitle = "t"', "'experiments' is missing"),
        (GOOD.replace("vary", "varies"), "e: 'vary' is missing"),
        (GOOD + "extra = 1\n", "e: 'extra' given"),
        (GOOD.replace('"scan"', '"skan"'), "index 'skan' given"),
        (GOOD + 'baseline = "base"\n', "index 'base' given"),
        (GOOD + 'kind = "sort"\n', "kind 'sort' given"),
        (GOOD + 'kind = "text"\nbeside = "scan"\n', "beside 'scan' given"),
        (GOOD + 'larger = [{ size = 10, indexes = ["skan"] }]\n', "index 'skan' given"),
        (GOOD + ALSO.replace("messages", "keywords"), "'keywords' given"),
        (GOOD + 'workload = { data = "gn_gnis" }\n' + ALSO, "on generated data"),
        (GOOD + ALSO.replace("long", "e"), "same name"),
        (GOOD + "larger = [{ size = 10 }]\n", "'indexes' is missing"),
        (GOOD.replace("[1]", "[]"), "must not be empty"),
        (GOOD.replace("[1]", "[[1, 2, 3]]"), "a number or two numbers"),
        (GOOD.replace("[1]", "[[3, 1]]"), "low <= high"),
        (GOOD.replace('"keywords"', '"weather"'), "'weather' given; a workload has"),
        (GOOD + 'workload = { data = "moon" }\n', "data 'moon' given"),
        (GOOD + "workload = { messages = 0 }\n", "messages must be at least 1"),
        (GOOD + 'workload = { messages = "many" }\n', "messages must be a number"),
        (GOOD + 'workload = { sizes = "odd" }\n', "sizes must be log or uniform"),
        (GOOD + "workload = { built = 0 }\n", "built must be"),
        (GOOD + "workload = { churn = 1 }\n", "churn must be"),
        (GOOD + 'workload = { data = "gn_gnis", zipf = 1.0 }\n', "real data"),
        (GOOD + EXPERIMENT, "same name"),
        (GOOD.replace("[[s", "pace = { speed = 1 }\n[[s"), "s.pace: 'speed' given"),
    ],
)
def test_a_wrong_suite_is_refused_with_its_reason(text, reason):
    with pytest.raises(BenchError) as caught:
        read_suites(text)
    assert reason in str(caught.value)


def test_a_good_suite_is_read_with_defaults():
    suite = read_suites(GOOD)["s"]
    assert suite.judge == "scan"
    assert suite.experiments[0].baseline == "scan"
    assert [case.spec.keywords for case in suite.experiments[0].cases()] == [(1, 1)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (100_000, "100K"),
        (1_000_000, "1M"),
        (3, "3"),
        ((6, 20), "6-20"),
        ((5, 5), "5"),
        ((1e-6, 1e-4), "1e-6…1e-4"),
        ((0.0, 0.0), "point"),
        (0.5, "0.5"),
        ("gn_gnis", "gn_gnis"),
        (1234, "1234"),
    ],
)
def test_labels_are_short(value, text):
    assert label(value) == text


def test_adjusting_replaces_contestants_sizes_and_repeats():
    suite = adjusted(find_suite("kdd13"), contestants=["scan"], sizes=[10_000, 20_000], scale=0.1, repeat=2)
    by_name = {experiment.name: experiment for experiment in suite.experiments}
    assert by_name["scalability"].values == (1_000, 2_000)
    assert by_name["existing"].spec.subscriptions == 1_000
    assert by_name["existing"].spec.messages == 1_000
    assert by_name["existing"].indexes == ("scan",)
    assert by_name["existing"].baseline == "scan"
    assert suite.pace.repeat == 2
    larger = adjusted(find_suite("kdd13"), scale=2.0, only=["existing"])
    assert [e.name for e in larger.experiments] == ["existing"]
    assert larger.experiments[0].spec.subscriptions == 200_000
    assert larger.experiments[0].spec.messages == 10_000


def test_a_baseline_joins_the_contestants():
    suite = adjusted(find_suite("kdd13"), baseline="scan", only=["existing"])
    assert suite.experiments[0].indexes[0] == "scan"
    assert suite.experiments[0].baseline == "scan"


@pytest.mark.parametrize(
    "asked",
    [
        {"contestants": ["skan"]},
        {"contestants": ["lfilter:fast"]},
        {"baseline": "skan"},
        {"only": ["nothing"]},
        {"scale": 0.0},
        {"sizes": [0]},
        {"repeat": 0},
    ],
)
def test_what_is_typed_must_exist(asked):
    with pytest.raises(BenchError):
        adjusted(find_suite("smoke"), **asked)
    with pytest.raises(BenchError, match="there are smoke"):
        find_suite("smok")


# --- workloads ---


def test_a_seed_decides_a_workload_and_message_length_leaves_subscriptions_alone():
    one, same, other = Workloads(1).prepare(TINY), Workloads(1).prepare(TINY), Workloads(2).prepare(TINY)
    assert np.array_equal(one.messages.terms, same.messages.terms)
    assert not np.array_equal(one.messages.boxes, other.messages.boxes)
    longer = Workloads(1).prepare(replace(TINY, message_words=(30, 30), message_area=(0.01, 0.01)))
    assert np.array_equal(one.subscriptions.boxes, longer.subscriptions.boxes)
    assert np.array_equal(one.subscriptions.terms, longer.subscriptions.terms)
    assert set(np.diff(longer.messages.term_from)) == {30}
    assert (longer.messages.boxes[:, 0] < longer.messages.boxes[:, 2]).any()
    points = Workloads(1).prepare(replace(TINY, data="range", message_area=(0.0, 0.0)))
    assert (points.messages.boxes[:, :2] == points.messages.boxes[:, 2:]).all()
    assert len(one.newcomers) == 6


def test_long_messages_still_have_subscriptions_of_short_ones():
    long = Workloads(1).prepare(replace(TINY, data="long", vocabulary=5_000, messages=5))
    assert np.diff(long.messages.term_from).min() >= 100


def test_batches_hold_all_messages_once():
    messages = Workloads(1).prepare(TINY).messages
    parts = batches(messages, 7)
    assert [len(part) for part in parts] == [7, 7, 7, 7, 2]
    assert np.array_equal(np.concatenate([part.terms for part in parts]), messages.terms)
    assert all(part.term_from[0] == 0 and part.terms.flags.owndata for part in parts)
    assert sum(map(len, batches(messages, 7, 10))) == 10


@pytest.fixture
def real_folder(tmp_path, monkeypatch):
    """400 anonymous tweets; each has its own word and up to four common ones."""
    n = 400
    table = {
        "id": np.arange(n),
        "lat": np.linspace(-10.0, 10.0, n),
        "lon": np.linspace(5.0, 45.0, n),
        "terms": [[*range(i % 4), 10 + i] for i in range(n)],
    }
    pq.write_table(pa.table(table), tmp_path / "tweets_terms.parquet")
    monkeypatch.setenv("NEARCAST_DATA", str(tmp_path))
    return tmp_path


def own_words(columns):
    return {int(term) for term in columns.terms if term >= 3}


def test_real_samples_share_no_message(real_folder):
    spec = replace(TINY, data="tweets_terms", vocabulary=None, messages=50, history=60, keywords=(9, 9), churn=0.5)
    made = Workloads(3).prepare(spec)
    measured, history = own_words(made.messages), own_words(made.history)
    wanted = own_words(made.subscriptions) | own_words(made.newcomers)
    assert (len(measured), len(history)) == (50, 60)
    assert wanted
    assert not measured & history
    assert not (measured | history) & wanted


def test_real_messages_can_be_chosen_by_length_and_widened(real_folder):
    spec = replace(TINY, data="tweets_terms", vocabulary=None, message_words=(4, 4), message_area=(1e-3, 1e-3))
    made = Workloads(3).prepare(spec)
    assert set(np.diff(made.messages.term_from)) == {4}
    assert (made.messages.boxes[:, 0] < made.messages.boxes[:, 2]).all()
    with pytest.raises(BenchError, match="0 of 400 messages"):
        Workloads(3).prepare(replace(spec, message_words=(7, 9)))


def test_absent_real_data_is_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARCAST_DATA", str(tmp_path))
    with pytest.raises(DataAbsent):
        Workloads(1).prepare(replace(TINY, data="gn_gnis", vocabulary=None))


# --- answers ---


def pairs(*rows):
    message, slot = zip(*rows, strict=True)
    return Pairs(np.array(message, dtype=np.int32), np.array(slot, dtype=np.int32))


ROWS = [(0, 5), (0, 6), (1, 5), (3, 0), (3, 7)]


def test_order_does_not_change_an_answer():
    assert Answer.of(pairs(*ROWS), 4).first_difference(Answer.of(pairs(*ROWS[::-1]), 4)) is None


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[:-1], 3),  # one is missing
        ([*ROWS, (2, 1)], 2),  # one too many
        ([*ROWS, (3, 7)], 3),  # one twice
        ([*ROWS[:-1], (3, 8)], 3),  # another one
        ([(0, 5), (0, 5), (1, 5), (3, 0), (3, 7)], 0),  # one twice in place of another
        ([*ROWS, (1, 9), (1, 9)], 1),  # two alike, which an xor alone would not see
    ],
)
def test_every_kind_of_wrong_answer_differs(rows, message):
    assert Answer.of(pairs(*ROWS), 4).first_difference(Answer.of(pairs(*rows), 4)) == message


def test_answers_on_fewer_messages_are_compared_where_both_have_some():
    agreement = Agreement("here")
    agreement.join("short", Answer.of(pairs(*ROWS[:3]), 2))
    agreement.join("long", Answer.of(pairs(*ROWS), 4))
    with pytest.raises(BenchError, match="here: long and wrong disagree on message 3: 2 and 1 matches"):
        agreement.join("wrong", Answer.of(pairs(*ROWS[:-1]), 4))


# --- contestants that are not what they seem ---


class Liar(Scan):
    """Loses a pair of each batch that has any."""

    name = "liar"

    def match(self, batch):
        found = super().match(batch)
        return Pairs(found.message[1:], found.slot[1:])


class Ghost(Scan):
    """Does not remove."""

    name = "ghost"

    def remove(self, slots):
        pass


class Shifted(Scan):
    """Right, with slots of its own."""

    name = "shifted"

    def insert(self, columns):
        return super().insert(columns) + np.int32(7)

    def remove(self, slots):
        super().remove(np.asarray(slots) - 7)

    def match(self, batch):
        found = super().match(batch)
        return Pairs(found.message, found.slot + np.int32(7))


class Broken(Scan):
    name = "broken"

    def insert(self, columns):
        raise RuntimeError("out of order\nwith a second line")


@pytest.fixture
def doubles(monkeypatch):
    for double in (Liar, Ghost, Shifted, Broken):
        monkeypatch.setitem(indexes.CATALOGUE, double.name, double)


@pytest.fixture
def timings(monkeypatch):
    """Who was timed, in order."""
    seen = []

    def noted(index, given):
        seen.append(index.name)
        return Spent(1e-6, 1e-6)

    monkeypatch.setattr(contestant_module, "per_message", noted)
    return seen


def tiny_suite(*names, kind="match", values=(1,), spec=TINY, **pace):
    suite = read_suites(GOOD)["s"]
    experiment = replace(suite.experiments[0], kind=kind, spec=spec, indexes=names, values=values, baseline=names[0])
    return replace(
        suite, experiments=(experiment,), pace=replace(suite.pace, **{"repeat": 2, "singles": 3, "batch": 20} | pace)
    )


def results_of(suite):
    (experiment,) = Runner(suite, seed=1).run()
    return experiment


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


# --- the yardstick and the trials ---


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
            {"inserts/s", "matches beside"}
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


# --- results ---


@pytest.fixture
def found():
    suite = tiny_suite("scan", values=(1, 2))
    result = results_of(suite)
    changes = replace(results_of(tiny_suite("scan", kind="maintenance")), name="changes")
    return HEADER.with_experiment(result).with_experiment(changes)


def test_results_survive_json(found, tmp_path):
    found.write(tmp_path / "deep" / "run.json")
    again = RunResult.read(tmp_path / "deep" / "run.json")
    assert markdown(again) == markdown(found)
    assert again.experiments[0].cases[0].results == found.experiments[0].cases[0].results
    result = found.experiments[0].cases[0].results[0]
    assert result.us_best <= result.us
    assert result.p50 <= result.p99
    assert result.per_s == pytest.approx(1e6 / result.us)
    assert result.candidates == 60
    assert 0 <= result.matches < 60
    assert sum(result.bytes.values()) == pytest.approx(60 * result.bytes_per_subscription)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": "other", "version": 1}', '{"format": "nearcast-bench"}'])
def test_a_foreign_file_is_refused(text, tmp_path):
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(BenchError):
        RunResult.read(file)
    with pytest.raises(BenchError, match="no result of the bench"):
        RunResult.read(tmp_path / "absent.json")


def test_pages_warn_of_what_a_reader_must_not_miss(found):
    experiment = found.experiments[0]
    case = replace(experiment.cases[0], load=1e6, interleaved=False)
    result = replace(case.results[0], notes=("measured on 16 of 40 messages: slow",))
    case = replace(case, results=(result, replace(result, index="rt", status="absent", us=None)))
    page = markdown(replace(found, experiments=(replace(experiment, cases=(case,)),)))
    assert "times are noisy (1)" in page
    assert "one after the other, not interleaved (1)" in page
    assert "† scan: measured on 16 of 40" in page
    assert "- not in this version: rt" in page
    assert "| rt |" not in page


def test_numbers_are_short():
    assert [number(v) for v in (None, 0.01234, 3.14159, 1234567.8)] == ["-", "0.0123", "3.14", "1,234,568"]
    assert [count(v) for v in (None, 12.0, 12_345, 1_250_000)] == ["-", "12", "12.3K", "1.25M"]


def test_plots_are_small_files(found, tmp_path):
    one_case = replace(found.experiments[0], name="one", cases=found.experiments[0].cases[:1])
    sets = replace(found.experiments[0], name="sets", vary="data")
    written = write_plots(found.with_experiment(one_case).with_experiment(sets), tmp_path)
    assert {name: path.name for name, path in written.items()} == {
        name: f"s-{name}.png" for name in ("e", "changes", "one", "sets")
    }
    for path in written.values():
        assert path.read_bytes()[:4] == b"\x89PNG"
        assert path.stat().st_size < 60_000


# --- the command ---


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
