"""Suites: experiments described in TOML, as frozen values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import resources
from typing import Any, Literal

from nearcast import indexes
from nearcast.bench.spec import BenchError, Spec, label

ALL = "all"  # as a contestant: every plain name of the catalogue
PAPERS: tuple[str, ...] = (
    *("scan", "keyword-first", "spatial-first", "ir-tree"),
    *("rt", "rt+", "rt+:random", "rt+:df", "rt+:idf", "rt+:local", "rt++"),
    *("mbr-trie", "mbr-trie:tokens", "mbr-trie:trie", "mbr-trie:cost", "pt-quadtree", "lfilter"),
    *("iq-tree", "rq-tree", "ap-tree"),
    *("ap-tree:optimal", "ap-tree:keyword", "ap-tree:space", "ap-tree:trie-quadtree"),
)
"""Names a suite may ask for although this version lacks them: the result then says so."""

Kind = Literal["match", "maintenance"]


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure; times in seconds."""

    repeat: int = 5  # rounds; every contestant of a case is measured once in each
    batch: int = 1_000  # messages of one call
    singles: int = 300  # messages that are also matched one call each
    budget: float = 4.0  # an index and case that would need longer is measured on fewer messages
    build_limit: float = 180.0  # a build that took longer is reported, and not repeated in later cases
    judged: int = 200  # messages the judge answers where it is no contestant itself
    together: int = 2_000_000  # up to so many subscriptions the contestants of a case are in memory at once


@dataclass(frozen=True, slots=True)
class Case:
    """One point of an experiment."""

    label: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class Experiment:
    """One comparison: contestants on workloads that differ in one value."""

    name: str
    title: str
    mirrors: str  # figure of a paper
    kind: Kind
    spec: Spec
    vary: str  # a field of Spec
    values: tuple[Any, ...]
    indexes: tuple[str, ...]
    baseline: str

    def cases(self) -> list[Case]:
        cases = []
        for value in self.values:
            spec = self.spec.changed(f"{self.name}.values", **{self.vary: value})
            cases.append(Case(label(getattr(spec, self.vary)), spec))
        return cases

    def contestants(self) -> tuple[list[str], list[str]]:
        """Names this version has, and names it lacks."""
        asked = [name for given in self.indexes for name in (indexes.CATALOGUE if given == ALL else (given,))]
        known = indexes.names()
        asked = list(dict.fromkeys(asked))
        return [name for name in asked if name in known], [name for name in asked if name not in known]


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    title: str
    judge: str  # its answers are the first that contestants are compared with
    pace: Pace
    experiments: tuple[Experiment, ...]


def packaged_suites() -> dict[str, Suite]:
    return read_suites(resources.files("nearcast.bench").joinpath("suites.toml").read_text())


def find_suite(name: str) -> Suite:
    suites = packaged_suites()
    if name not in suites:
        raise BenchError(f"suite {name!r} given; there are {', '.join(suites)}")
    return suites[name]


def read_suites(text: str) -> dict[str, Suite]:
    """The suites of a TOML text, every value checked."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BenchError(f"suites: not TOML: {error}") from None
    return {name: _suite(name, table) for name, table in tables.items()}


def _suite(name: str, table: Mapping[str, Any]) -> Suite:
    _keys(name, table, {"title", "experiments"}, {"judge", "pace", "workload"})
    paces = {field.name for field in fields(Pace)}
    _keys(f"{name}.pace", table.get("pace", {}), set(), paces)
    common = Spec.read(table.get("workload", {}), f"{name}.workload")
    experiments = [_experiment(f"{name}.experiments", one, common) for one in table["experiments"]]
    names = [experiment.name for experiment in experiments]
    if len(set(names)) != len(names):
        raise BenchError(f"{name}: two experiments have the same name: {', '.join(sorted(names))}")
    return Suite(name, table["title"], table.get("judge", "scan"), Pace(**table.get("pace", {})), tuple(experiments))


def _experiment(where: str, table: Mapping[str, Any], common: Spec) -> Experiment:
    where = f"{where}.{table.get('name', '?')}"
    _keys(where, table, {"name", "title", "vary", "values", "indexes"}, {"mirrors", "kind", "workload", "baseline"})
    kind, chosen = table.get("kind", "match"), tuple(table["indexes"])
    if kind not in ("match", "maintenance"):
        raise BenchError(f"{where}: kind {kind!r} given; it is match or maintenance")
    if not chosen or not table["values"]:
        raise BenchError(f"{where}: indexes and values must not be empty")
    known = {ALL, *PAPERS, *indexes.names()}
    for name in (*chosen, table.get("baseline", chosen[0])):
        if name not in known:
            raise BenchError(f"{where}: index {name!r} given; there are {', '.join(sorted(known))}")
    experiment = Experiment(
        table["name"],
        table["title"],
        table.get("mirrors", ""),
        kind,
        common.changed(f"{where}.workload", **table.get("workload", {})),
        table["vary"],
        tuple(table["values"]),
        chosen,
        table.get("baseline", chosen[0]),
    )
    experiment.cases()  # refuses a value that cannot be
    return experiment


def _keys(where: str, table: Any, needed: set[str], allowed: set[str]) -> None:
    if not isinstance(table, Mapping):
        raise BenchError(f"{where}: a table is needed, not {table!r}")
    missing, unknown = sorted(needed - set(table)), sorted(set(table) - needed - allowed)
    if missing or unknown:
        wrong = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} given"
        raise BenchError(f"{where}: {wrong}; it has {', '.join(sorted(needed | allowed))}")


def adjusted(
    suite: Suite,
    *,
    only: Sequence[str] = (),
    contestants: Sequence[str] = (),
    baseline: str | None = None,
    sizes: Sequence[int] = (),
    scale: float = 1.0,
    repeat: int | None = None,
) -> Suite:
    """The suite as somebody asked for it. Names are checked strictly: what is typed must exist.

    `contestants` replace those of every experiment; a `baseline` joins them. `sizes` replace the numbers of
    subscriptions where these are varied; elsewhere the first one holds. `scale` multiplies after that.
    """
    for name in (*contestants, *([baseline] if baseline else [])):
        if name not in indexes.names():
            raise BenchError(f"index {name!r} given; there are {', '.join(indexes.names())}")
    names = [experiment.name for experiment in suite.experiments]
    for name in only:
        if name not in names:
            raise BenchError(f"experiment {name!r} given; {suite.name} has {', '.join(names)}")
    if scale <= 0 or min(sizes, default=1) < 1 or (repeat is not None and repeat < 1):
        raise BenchError(f"scale {scale}, sizes {list(sizes)}, repeat {repeat}: all must be positive")
    experiments = []
    for experiment in suite.experiments:
        if only and experiment.name not in only:
            continue
        chosen = tuple(contestants) or experiment.indexes
        base = baseline or (experiment.baseline if not contestants or experiment.baseline in chosen else chosen[0])
        if baseline and ALL not in chosen and baseline not in chosen:
            chosen = (baseline, *chosen)
        resized = _resized(replace(experiment, indexes=chosen, baseline=base), sizes, scale)
        experiments.append(resized)
    pace = suite.pace if repeat is None else replace(suite.pace, repeat=repeat)
    return replace(suite, pace=pace, experiments=tuple(experiments))


def _resized(experiment: Experiment, sizes: Sequence[int], scale: float) -> Experiment:
    spec, values = experiment.spec, experiment.values
    if sizes:
        spec = replace(spec, subscriptions=sizes[0])
        values = tuple(sizes) if experiment.vary == "subscriptions" else values
    if experiment.vary in ("subscriptions", "messages", "history"):
        scaled = [replace(spec, **{experiment.vary: value}).scaled(scale) for value in values]
        values = tuple(dict.fromkeys(getattr(one, experiment.vary) for one in scaled))
    return replace(experiment, spec=spec.scaled(scale), values=values)
