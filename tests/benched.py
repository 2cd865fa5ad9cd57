"""A tiny suite of the bench, contestants that are not what they seem, and real data made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast import indexes
from nearcast.bench import Runner, RunResult, read_suites
from nearcast.bench import contestant as contestant_module
from nearcast.bench.measure import Spent, machine
from nearcast.bench.spec import Spec
from nearcast.columns import Pairs
from nearcast.indexes.scan import Scan

HEADER = RunResult("s", "A run", "2026-01-01", "1.0", 1, 1.0, {"repeat": 2}, "scan", machine())
TINY = Spec(subscriptions=60, messages=30, history=10, vocabulary=200, area=(0.01, 0.2))
EXPERIMENT = '[[s.experiments]]\nname = "e"\ntitle = "t"\nvary = "keywords"\nvalues = [1]\nindexes = ["scan"]\n'
ALSO = 'also = [{ name = "long", title = "Long", workload = { message_words = 9, messages = 12 } }]\n'
GOOD = f'[s]\ntitle = "t"\n{EXPERIMENT}'


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
