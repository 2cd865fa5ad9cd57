"""The runner: takes the experiments of a suite through their cases, and knows no index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from nearcast.bench import moving, ranking
from nearcast.bench.heat import Group, Heat, Surroundings, Tell
from nearcast.bench.measure import load
from nearcast.bench.results import CaseResult, ExperimentResult, IndexResult, with_speedups
from nearcast.bench.searches import measure_searches
from nearcast.bench.spec import Spec
from nearcast.bench.suite import STREAMS, Case, Experiment, Suite
from nearcast.bench.workload import Workloads
from nearcast.workloads import DataAbsent


def pairs_to_measure(suite: Suite) -> int:
    cases = ((experiment, case) for experiment in suite.experiments for case in experiment.cases())
    return sum(len(experiment.contestants(case)[0]) * (1 + len(experiment.also)) for experiment, case in cases)


class Runner:
    """Runs the experiments of a suite, one after the other, in this thread."""

    def __init__(self, suite: Suite, seed: int, tell: Tell = lambda _what, _done: None) -> None:
        self.suite = suite
        self._around = Surroundings(suite.pace, seed, tell, set())
        self._workloads = Workloads(seed)

    def run(self) -> Iterator[ExperimentResult]:
        """Each experiment as soon as it is done. Contestants that disagree end the run with `BenchError`."""
        for experiment in self.suite.experiments:
            late: dict[str, str] = {}
            cases = [self._case(experiment, case, late) for case in experiment.cases()]
            about = (experiment.mirrors, experiment.kind, experiment.vary, experiment.baseline)
            names = [(experiment.name, experiment.title), *((one.name, one.title) for one in experiment.also)]
            for (name, title), of_one in zip(names, zip(*cases, strict=True), strict=True):
                yield ExperimentResult(name, title, *about, of_one, experiment.beside)

    def _case(self, experiment: Experiment, case: Case, late: dict[str, str]) -> list[CaseResult]:
        """A result for the messages of the case, and one for each of `experiment.also`.

        `late` collects indexes whose build took too long; they are left out of the cases that follow.
        """
        if experiment.kind in STREAMS:
            return [self._stream(experiment, case)]
        present, _ = experiment.contestants(case)
        where, busy, specs = f"{experiment.name} {case.label}", load(), experiment.specs(case)
        tell, pace = self._around.tell, self.suite.pace
        tell(f"{where}: data", 0)
        try:
            workload = self._workloads.prepare(case.spec, texts=experiment.kind == "text")
        except DataAbsent as reason:
            tell(where, len(present) * len(specs))
            return [CaseResult(case.label, _described(spec), skipped=str(reason)) for spec in specs]
        others = [self._workloads.with_messages(workload, spec) for spec in specs[1:]]
        heats = [Heat(self._around, experiment, one, where) for one in (workload, *others)]
        results = [_unmeasured(experiment, case, late) for _ in specs]
        running = [name for name in present if name not in late]
        together = case.spec.subscriptions <= pace.together
        self._judge(heats, running)
        for names in [running] if together else _one_by_one(running, experiment.beside):
            group: Group | None = None
            for heat, found in zip(heats, results, strict=True):
                group = heat.measure(names, group)
                found |= {result.index: result for result in group.results}
        for name, result in results[0].items():
            if result.build_s is not None and result.build_s > pace.build_limit:
                late[name] = f"its build took {result.build_s:.0f} s in case {case.label}"
        tell(where, (len(present) - len(running)) * len(specs))
        interleaved = together or experiment.beside in running
        return [
            CaseResult(
                case.label,
                _described(spec),
                interleaved=interleaved,
                load=busy,
                results=with_speedups([*found.values(), *heat.yardstick()], experiment.baseline),
            )
            for spec, heat, found in zip(specs, heats, results, strict=True)
        ]

    def _stream(self, experiment: Experiment, case: Case) -> CaseResult:
        """Rankers or movers, one after the other; the first one's changes are what the others are compared with."""
        present, _ = experiment.contestants(case)
        where, busy, tell = f"{experiment.name} {case.label}", load(), self._around.tell
        tell(f"{where}: data", 0)
        try:
            told = self._told(experiment.kind, case.spec, present)
        except DataAbsent as reason:
            tell(where, len(present))
            return CaseResult(case.label, _described(case.spec), skipped=str(reason))
        found = []
        for result in told:
            tell(f"{where}: {result.index}", 1)
            found.append(result)
        results = with_speedups(found, experiment.baseline)
        return CaseResult(case.label, _described(case.spec), interleaved=False, load=busy, results=results)

    def _told(self, kind: str, spec: Spec, names: list[str]) -> Iterator[IndexResult]:
        """The world is made at once, so that data that is not there is told here; results come one by one."""
        if kind in ("rank", "search"):
            ranked = ranking.make_world(self._workloads, spec)
            searched = kind == "search"
            return measure_searches(ranked, names) if searched else ranking.measure(ranked, names, self._workloads)
        moved = moving.make_world(self._workloads, spec)
        return (told.result for told in moving.measure(moved, names, self._workloads))

    def _judge(self, heats: list[Heat], running: list[str]) -> None:
        if self.suite.judge not in running:
            referee = heats[0].judge(self.suite.judge)
            for heat in heats[1:]:
                heat.judge(self.suite.judge, referee)


def _unmeasured(experiment: Experiment, case: Case, late: dict[str, str]) -> dict[str, IndexResult]:
    """By name, in the order of the suite: what will not be measured, and room for the others."""
    present, absent = experiment.contestants(case)
    results = {name: IndexResult(name, "left out", (late.get(name, ""),)) for name in present}
    return results | {name: IndexResult(name, "absent", ("not in this version",)) for name in absent}


def _one_by_one(names: list[str], first: str) -> list[list[str]]:
    """Groups of one; `first` stays in memory and is measured again beside the others."""
    return [[name] for name in sorted(names, key=lambda name: name != first)]


def _described(spec: Spec) -> dict[str, Any]:
    return {name: value for name, value in asdict(spec).items() if value is not None}
