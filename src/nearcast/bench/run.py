"""The runner: takes contestants by name through build, check and clock."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.bench.answers import Agreement, Answer
from nearcast.bench.contestant import Contestant
from nearcast.bench.floor import Floor
from nearcast.bench.measure import load
from nearcast.bench.results import CaseResult, ExperimentResult, IndexResult, with_ratios, with_speedups
from nearcast.bench.spec import BenchError, Spec
from nearcast.bench.suite import Case, Experiment, Suite
from nearcast.bench.trials import TRIALS
from nearcast.bench.workload import Workload, Workloads
from nearcast.workloads import DataAbsent
from nearcast.workloads.sampling import generator

_REASON = 240  # characters of an error that a result keeps
_VICTIMS = 13  # keeps this random stream apart from the workload's

Tell = Callable[[str, int], None]
"""Told what happens now, and how many (index, case) pairs are done since it was last told."""


def pairs_to_measure(suite: Suite) -> int:
    return sum(len(e.contestants(case)[0]) for e in suite.experiments for case in e.cases())


class Runner:
    """Runs the experiments of a suite, one after the other, in this thread."""

    def __init__(self, suite: Suite, seed: int, tell: Tell = lambda _what, _done: None) -> None:
        self.suite, self.seed, self.tell = suite, seed, tell
        self._workloads = Workloads(seed)
        self._rehearsed: set[str] = set()

    def run(self) -> Iterator[ExperimentResult]:
        """Each experiment as soon as it is done. Contestants that disagree end the run with `BenchError`."""
        for experiment in self.suite.experiments:
            late: dict[str, str] = {}
            cases = tuple(self._case(experiment, case, late) for case in experiment.cases())
            about = (experiment.title, experiment.mirrors, experiment.kind, experiment.vary, experiment.baseline)
            yield ExperimentResult(experiment.name, *about, cases, experiment.beside)

    def _case(self, experiment: Experiment, case: Case, late: dict[str, str]) -> CaseResult:
        """`late` collects indexes whose build took too long; they are left out of the cases that follow."""
        present, absent = experiment.contestants(case)
        where, busy = f"{experiment.name} {case.label}", load()
        self.tell(f"{where}: data", 0)
        try:
            workload = self._workloads.prepare(case.spec, texts=experiment.kind == "text")
        except DataAbsent as reason:
            self.tell(where, len(present))
            return CaseResult(case.label, _described(case.spec), skipped=str(reason))
        results = {name: IndexResult(name, "absent", ("not in this version",)) for name in absent}
        results |= {name: IndexResult(name, "left out", (late[name],)) for name in present if name in late}
        running = [name for name in present if name not in late]
        together = case.spec.subscriptions <= self.suite.pace.together
        heat = _Heat(self, experiment, workload, where)
        if self.suite.judge not in running:
            heat.judge(self.suite.judge)
        for group in [running] if together else _one_by_one(running, experiment.beside):
            for result, build_s in heat.measure(group):
                results[result.index] = result
                if build_s > self.suite.pace.build_limit:
                    late[result.index] = f"its build took {build_s:.0f} s in case {case.label}"
        self.tell(where, len(present) - len(running))
        ordered = [results[name] for name in (*present, *absent)] + heat.yardstick()
        return CaseResult(
            case.label,
            _described(case.spec),
            interleaved=together or experiment.beside in running,
            load=busy,
            results=with_speedups(ordered, experiment.baseline),
        )

    def rehearse(self, contestant: Contestant) -> None:
        """Once per name and process; kernels do not depend on the data."""
        if contestant.name not in self._rehearsed:
            contestant.rehearse()
            self._rehearsed.add(contestant.name)


def _one_by_one(names: list[str], first: str) -> list[list[str]]:
    """Groups of one; `first` stays in memory and is measured again beside the others."""
    return [[name] for name in sorted(names, key=lambda name: name != first)]


class _Heat:
    """One case: all its contestants give the same answers, at every stage, or nobody is timed."""

    def __init__(self, runner: Runner, experiment: Experiment, workload: Workload, where: str) -> None:
        self._runner, self._experiment, self._workload, self._where = runner, experiment, workload, where
        self._pace, self._tell = runner.suite.pace, runner.tell
        self._maintained = experiment.kind == "maintenance"
        n = len(workload.subscriptions)
        self._victims: NDArray[np.int64] = generator(runner.seed, _VICTIMS).permutation(n)[: len(workload.newcomers)]
        self._agreements = [Agreement(where), Agreement(f"{where}, after changes")]
        self._failed: list[IndexResult] = []
        self._beside: Contestant | None = None
        self._floor: Floor | None = None

    def judge(self, name: str) -> None:
        """The answers of somebody who does not compete, on a part of the messages."""
        most = min(self._pace.judged, len(self._workload.messages))
        referee = [Contestant(name, self._workload, self._pace, most)]
        self._checked(referee)
        if self._maintained:
            self._changed(referee)
        for crashed in self._failed:
            raise BenchError(f"{self._where}: the judge {name} failed: {crashed.notes[-1]}")

    def measure(self, names: list[str]) -> list[tuple[IndexResult, float]]:
        """Results and seconds of the builds. Contestants take turns, each round in another order."""
        self._failed = []
        group = self._checked([Contestant(name, self._workload, self._pace) for name in names])
        self._make_floor()
        base_us, floor_us = self._rounds(group)
        if self._experiment.kind in TRIALS:
            trial = TRIALS[self._experiment.kind]
            group = self._each(group, self._experiment.kind, lambda contestant: contestant.attempt(trial))
        if self._maintained:
            group = self._changed(group)
            self._rounds(group)
        self._tell(self._where, len(names))
        measured = [(with_ratios(one.result(), base_us, floor_us), one.build_s) for one in group]
        if self._beside:
            measured.append((with_ratios(self._beside.result(), *self._standards({})), self._beside.build_s))
        self._beside = next((one for one in group if one.name == self._experiment.beside), self._beside)
        return measured + [(failed, 0.0) for failed in self._failed]

    def yardstick(self) -> list[IndexResult]:
        """Its result, if the experiment has one."""
        return [self._floor.result()] if self._floor else []

    def _make_floor(self) -> None:
        agreed = self._agreements[0].longest
        if self._experiment.floor and self._floor is None and agreed is not None:
            self._floor = Floor(self._workload, self._pace, agreed.counts)

    def _checked(self, group: list[Contestant]) -> list[Contestant]:
        group = self._each(group, "warming up", self._runner.rehearse)
        group = self._each(group, "building", Contestant.build)
        if self._maintained:
            group = self._each(group, "inserting", Contestant.grow)
        group = self._each(group, "checking", Contestant.plan)
        return self._agreed(group, self._agreements[0])

    def _changed(self, group: list[Contestant]) -> list[Contestant]:
        group = self._each(group, "changing", lambda contestant: contestant.change(self._victims))
        return self._agreed(group, self._agreements[1])

    def _agreed(self, group: list[Contestant], agreement: Agreement) -> list[Contestant]:
        answers: dict[str, Answer] = {}

        def ask(contestant: Contestant) -> None:
            answers[contestant.name] = contestant.answer()

        group = self._each(group, "checking", ask)
        for name, answer in answers.items():
            agreement.join(name, answer)
        return group

    def _rounds(self, group: list[Contestant]) -> tuple[float | None, float | None]:
        """Microseconds of the baseline and of the yardstick in these rounds, where they took part."""
        for contestant in group:
            contestant.start_stage()
        others = [one for one in (self._beside, self._floor) if one is not None]
        takers: list[Contestant | Floor] = [*group, *others] if group else []
        since = {taker.name: taker.rounds for taker in takers}
        for number in range(self._pace.repeat):
            self._tell(f"{self._where}: round {number + 1}", 0)
            gc.collect()  # for all alike, before the clock: there is none while it runs
            first = number % max(1, len(takers))
            for taker in takers[first:] + takers[:first]:
                taker.measure()
        return self._standards(since, group)

    def _standards(
        self, since: Mapping[str, int], group: Sequence[Contestant] = ()
    ) -> tuple[float | None, float | None]:
        """Microseconds of the baseline and of the yardstick from these rounds on."""
        known = [*group, *([self._beside] if self._beside else [])]
        base = next((one for one in known if one.name == self._experiment.baseline and one.rounds), None)
        return _us(base, since), _us(self._floor, since)

    def _each(self, group: list[Contestant], what: str, step: Callable[[Contestant], None]) -> list[Contestant]:
        """Those that came through the step; a crash is a result of its own, not the end of the run."""
        through = []
        for contestant in group:
            self._tell(f"{self._where}: {what} {contestant.name}", 0)
            try:
                step(contestant)
            except Exception as error:
                crash = f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:_REASON]}"
                self._failed.append(IndexResult(contestant.name, "failed", (*contestant.notes, crash)))
            else:
                through.append(contestant)
        return through


def _us(taker: Contestant | Floor | None, since: Mapping[str, int]) -> float | None:
    return taker.us(since.get(taker.name, 0)) if taker and taker.rounds else None


def _described(spec: Spec) -> dict[str, Any]:
    return {name: value for name, value in asdict(spec).items() if value is not None}
