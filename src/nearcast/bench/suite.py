"""Suites: experiments described in TOML, as frozen values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import resources
from typing import Any, Literal, get_args

from nearcast import indexes, moving, ranking
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

FLOOR = "floor"  # the yardstick; see `bench.floor`
Kind = Literal["match", "maintenance", "threads", "text", "snapshot", "beside", "odd", "rank", "search", "move"]
_CATALOGUES: dict[str, Any] = {"rank": ranking, "move": moving}
SEARCHES = ["shelves", "ir-tree", "chains"]  # see `bench.searches`
STREAMS = ("rank", "search", "move")  # kinds whose contestants are no indexes
MESSAGE_FIELDS = {"messages", "message_words", "message_area"}
KINDS: tuple[Kind, ...] = get_args(Kind)


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
class Variant:
    """Other messages for the indexes of an experiment, and the name of what is found with them."""

    name: str
    title: str
    changes: Mapping[str, Any]  # of Spec: those of `MESSAGE_FIELDS`


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
    larger: tuple[tuple[int, tuple[str, ...]], ...] = ()  # contestants from so many subscriptions on, ascending
    beside: str = ""  # where contestants do not fit into memory together: measured again beside each
    floor: bool = False  # the yardstick is measured as well
    also: tuple[Variant, ...] = ()  # measured with the same indexes

    def cases(self) -> list[Case]:
        cases = []
        for value in self.values:
            spec = self.spec.changed(f"{self.name}.values", **{self.vary: value})
            cases.append(Case(label(getattr(spec, self.vary)), spec))
        return cases

    def specs(self, case: Case) -> list[Spec]:
        """Of the case itself, then with the messages of each variant; these are few where a variant says so."""
        found = [case.spec]
        for one in self.also:
            changed = case.spec.changed(f"{self.name}.also.{one.name}", **one.changes)
            found.append(replace(changed, messages=min(changed.messages, case.spec.messages)))
        return found

    def contestants(self, case: Case) -> tuple[list[str], list[str]]:
        """Names this version has, and names it lacks."""
        chosen = self.indexes
        for size, fewer in self.larger:
            chosen = fewer if case.spec.subscriptions >= size else chosen
        catalogue: Mapping[str, Any] = _CATALOGUES.get(self.kind, indexes).CATALOGUE
        asked = [name for given in chosen for name in (catalogue if given == ALL else (given,))]
        known = names_of(self.kind)
        asked = list(dict.fromkeys(asked))
        return [name for name in asked if name in known], [name for name in asked if name not in known]


def names_of(kind: str) -> list[str]:
    """Who may take part in an experiment of this kind: rankers, ways to search a window, movers or indexes."""
    if kind == "search":
        return SEARCHES
    names: list[str] = _CATALOGUES.get(kind, indexes).names()
    return names


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    title: str
    judge: str  # its answers are the first that contestants are compared with
    pace: Pace
    experiments: tuple[Experiment, ...]

    def names(self) -> list[str]:
        """Who may take part in any of its experiments."""
        return list(dict.fromkeys(name for one in self.experiments for name in names_of(one.kind)))


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
    names = [name for one in experiments for name in (one.name, *(variant.name for variant in one.also))]
    if len(set(names)) != len(names):
        raise BenchError(f"{name}: two experiments have the same name: {', '.join(sorted(names))}")
    return Suite(name, table["title"], table.get("judge", "scan"), Pace(**table.get("pace", {})), tuple(experiments))


def _experiment(where: str, table: Mapping[str, Any], common: Spec) -> Experiment:
    where = f"{where}.{table.get('name', '?')}"
    optional = {"mirrors", "kind", "workload", "baseline", "larger", "beside", "floor", "also"}
    _keys(where, table, {"name", "title", "vary", "values", "indexes"}, optional)
    kind, chosen, beside = table.get("kind", "match"), tuple(table["indexes"]), table.get("beside", "")
    baseline = table.get("baseline", beside or chosen[0] if chosen else "")
    if kind not in KINDS:
        raise BenchError(f"{where}: kind {kind!r} given; it is {', '.join(KINDS)}")
    if not chosen or not table["values"]:
        raise BenchError(f"{where}: indexes and values must not be empty")
    if beside and (kind != "match" or beside != baseline):
        raise BenchError(f"{where}: beside {beside!r} given; it must be the baseline of an experiment that matches")
    larger = tuple(_larger(f"{where}.larger", one) for one in table.get("larger", []))
    _known(where, kind, [*chosen, baseline, *(name for _, names in larger for name in names)])
    experiment = Experiment(
        table["name"],
        table["title"],
        table.get("mirrors", ""),
        kind,
        common.changed(f"{where}.workload", **table.get("workload", {})),
        table["vary"],
        tuple(table["values"]),
        chosen,
        baseline,
        tuple(sorted(larger)),
        beside,
        bool(table.get("floor", False)),
        tuple(_variant(f"{where}.also", one) for one in table.get("also", [])),
    )
    if experiment.also and (kind != "match" or experiment.spec.is_real):
        raise BenchError(f"{where}: also is for experiments that match on generated data")
    for case in experiment.cases():
        experiment.specs(case)  # refuse a value that cannot be
    return experiment


def _variant(where: str, table: Mapping[str, Any]) -> Variant:
    _keys(where, table, {"name", "title", "workload"}, set())
    _keys(f"{where}.workload", table["workload"], set(), MESSAGE_FIELDS)
    return Variant(table["name"], table["title"], table["workload"])


def _larger(where: str, table: Mapping[str, Any]) -> tuple[int, tuple[str, ...]]:
    _keys(where, table, {"size", "indexes"}, set())
    return int(table["size"]), tuple(table["indexes"])


def _known(where: str, kind: str, names: Sequence[str]) -> None:
    known = {ALL, *(() if kind in STREAMS else PAPERS), *names_of(kind)}
    for name in names:
        if name not in known:
            raise BenchError(f"{where}: index {name!r} given; there are {', '.join(sorted(known))}")


def _keys(where: str, table: Any, needed: set[str], allowed: set[str]) -> None:
    if not isinstance(table, Mapping):
        raise BenchError(f"{where}: a table is needed, not {table!r}")
    missing, unknown = sorted(needed - set(table)), sorted(set(table) - needed - allowed)
    if missing or unknown:
        wrong = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} given"
        raise BenchError(f"{where}: {wrong}; it has {', '.join(sorted(needed | allowed))}")
