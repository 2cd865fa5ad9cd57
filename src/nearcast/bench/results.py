"""What a run found, as frozen values that go to JSON and come back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from nearcast.bench.spec import BenchError

FORMAT, VERSION = "nearcast-bench", 2
Status = Literal["measured", "absent", "left out", "failed"]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Inserting and removing in batches of 1000, and matching afterwards."""

    inserted: int  # subscriptions the rate was measured on
    insert_per_s: float | None
    removed: int
    remove_per_s: float | None
    us_after: float | None  # microseconds per message after the changes, as IndexResult.us
    insert_longest_ms: float | None = None  # of one call: how long a match may have to wait
    remove_longest_ms: float | None = None


@dataclass(frozen=True, slots=True)
class IndexResult:
    """One index in one case. Times are taken by the runner; counters and bytes are the index' own words."""

    index: str
    status: Status
    notes: tuple[str, ...] = ()
    messages: int = 0  # measured on
    us: float | None = None  # microseconds of the processor per message in batches: median over the repeats
    us_best: float | None = None
    us_repeats: tuple[float, ...] = ()
    us_wall: float | None = None  # as `us`, but by the wall: much more means that others had the core
    per_s: float | None = None  # messages per second, from `us`
    p50: float | None = None  # microseconds of a call with a single message
    p99: float | None = None
    build_s: float | None = None
    bytes: dict[str, int] = field(default_factory=dict)  # by part
    bytes_per_subscription: float | None = None
    resident: int | None = None  # growth of the process in bytes while building, seen from outside
    candidates: float | None = None  # these per message
    nodes: float | None = None
    matches: float | None = None
    speedup: float | None = None  # the baseline's `us`, of the same rounds, divided by this one's
    times_floor: float | None = None  # this one's `us` divided by that of the yardstick, of the same rounds
    maintenance: Maintenance | None = None
    figures: dict[str, float] = field(default_factory=dict)  # of a trial, by name and unit


@dataclass(frozen=True, slots=True)
class CaseResult:
    label: str
    workload: dict[str, Any]
    skipped: str = ""  # why nothing was measured
    interleaved: bool = True  # contestants took turns; else one after the other, which noise may tell apart
    load: float | None = None  # of the machine before the case
    results: tuple[IndexResult, ...] = ()


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    name: str
    title: str
    mirrors: str
    kind: str
    vary: str
    baseline: str
    cases: tuple[CaseResult, ...]
    beside: str = ""  # index that was measured again beside every other one

    def failed(self) -> list[str]:
        return [f"{self.name} {c.label}: {r.index}" for c in self.cases for r in c.results if r.status == "failed"]


@dataclass(frozen=True, slots=True)
class RunResult:
    suite: str
    title: str
    date: str
    package: str  # version of nearcast
    seed: int
    scale: float
    pace: dict[str, Any]
    judge: str
    machine: dict[str, Any]
    experiments: tuple[ExperimentResult, ...] = ()

    def with_experiment(self, experiment: ExperimentResult) -> RunResult:
        return replace(self, experiments=(*self.experiments, experiment))

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> RunResult:
        try:
            values = json.loads(path.read_text())
            if values.pop("format") != FORMAT or values.pop("version") != VERSION:
                raise BenchError(f"{path}: a file of {FORMAT} version {VERSION} is needed")
            experiments = tuple(map(_experiment, values.pop("experiments")))
            return cls(**values, experiments=experiments)
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise BenchError(f"{path} is no result of the bench ({type(error).__name__}: {error})") from None


def with_speedups(results: list[IndexResult], baseline: str) -> tuple[IndexResult, ...]:
    """Each with its ratio to the baseline of the same case, where the two were not measured side by side."""
    base = next((result.us for result in results if result.index == baseline), None)
    return tuple(r if r.speedup or not (base and r.us) else replace(r, speedup=base / r.us) for r in results)


def with_ratios(result: IndexResult, base_us: float | None, floor_us: float | None) -> IndexResult:
    """With its ratios to the baseline and to the yardstick; none where these were not measured beside it."""
    if not result.us:
        return result
    speedup = base_us / result.us if base_us else None
    return replace(result, speedup=speedup, times_floor=result.us / floor_us if floor_us else None)


def _experiment(values: Mapping[str, Any]) -> ExperimentResult:
    return ExperimentResult(**{**values, "cases": tuple(map(_case, values["cases"]))})


def _case(values: Mapping[str, Any]) -> CaseResult:
    return CaseResult(**{**values, "results": tuple(map(_index, values["results"]))})


def _index(values: Mapping[str, Any]) -> IndexResult:
    told = values["maintenance"]
    changed = {
        "notes": tuple(values["notes"]),
        "us_repeats": tuple(values["us_repeats"]),
        "maintenance": Maintenance(**told) if told else None,
    }
    return IndexResult(**{**values, **changed})
