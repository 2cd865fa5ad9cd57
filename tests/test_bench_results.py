"""Results of the bench say everything they must, in files, pages and plots."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nearcast.bench import BenchError, RunResult
from nearcast.bench.plots import write_plots
from nearcast.bench.tables import count, markdown, number
from tests.benched import HEADER, results_of, tiny_suite


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
