"""Suites of the bench are sound, and wrong ones are refused with the reason."""

from __future__ import annotations

import pytest

from nearcast import indexes
from nearcast.bench import BenchError, adjusted, find_suite, packaged_suites, read_suites
from nearcast.bench.spec import label
from nearcast.bench.suite import ALL, PAPERS, STREAMS, names_of
from nearcast.workloads import REAL_SETS
from tests.benched import ALSO, EXPERIMENT, GOOD


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
