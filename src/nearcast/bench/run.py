"""The runner: takes contestants by name through build, check and clock."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.bench.answers import Agreement, Answer
from nearcast.bench.contestant import Contestant
from nearcast.bench.measure import load
from nearcast.bench.results import CaseResult, ExperimentResult, IndexResult, with_speedups
from nearcast.bench.spec import BenchError, Spec
from nearcast.bench.suite import Case, Experiment, Suite
from nearcast.bench.workload import Workload, Workloads
from nearcast.workloads import DataAbsent
from nearcast.workloads.sampling import generator

_REASON = 240  # characters of an error that a result keeps
_VICTIMS = 13  # keeps this random stream apart from the workload's

Tell = Callable[[str, int], None]
"""Told what happens now, and how many (index, case) pairs are done since it was last told."""


def pairs_to_measure(suite: Suite) -> int:
    return sum(len(e.contestants()[0]) * len(e.values) for e in suite.experiments)


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
            yield ExperimentResult(experiment.name, *about, cases)

    def _case(self, experiment: Experiment, case: Case, late: dict[str, str]) -> CaseResult:
        """`late` collects indexes whose build took too long; they are left out of the cases that follow."""
        present, absent = experiment.contestants()
        where, busy = f"{experiment.name} {case.label}", load()
        self.tell(f"{where}: data", 0)
        try:
            workload = self._workloads.prepare(case.spec)
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
        for group in [running] if together else [[name] for name in running]:
            for result, build_s in heat.measure(group):
                results[result.index] = result
                if build_s > self.suite.pace.build_limit:
                    late[result.index] = f"its build took {build_s:.0f} s in case {case.label}"
        self.tell(where, len(present) - len(running))
        ordered = [results[name] for name in (*present, *absent)]
        return CaseResult(
            case.label,
            _described(case.spec),
            interleaved=together,
            load=busy,
            results=with_speedups(ordered, experiment.baseline),
        )

    def rehearse(self, contestant: Contestant) -> None:
        """Once per name and process; kernels do not depend on the data."""
        if contestant.name not in self._rehearsed:
            contestant.rehearse()
            self._rehearsed.add(contestant.name)


class _Heat:
    """One case: all its contestants give the same answers, at every stage, or nobody is timed."""

    def __init__(self, runner: Runner, experiment: Experiment, workload: Workload, where: str) -> None:
        self._runner, self._workload, self._where = runner, workload, where
        self._pace, self._tell = runner.suite.pace, runner.tell
        self._maintained = experiment.kind == "maintenance"
        n = len(workload.subscriptions)
        self._victims: NDArray[np.int64] = generator(runner.seed, _VICTIMS).permutation(n)[: len(workload.newcomers)]
        self._agreements = [Agreement(where), Agreement(f"{where}, after changes")]
        self._failed: list[IndexResult] = []

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
        self._rounds(group)
        if self._maintained:
            group = self._changed(group)
            self._rounds(group)
        self._tell(self._where, len(names))
        measured = [(contestant.result(), contestant.build_s) for contestant in group]
        return measured + [(failed, 0.0) for failed in self._failed]

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

    def _rounds(self, group: list[Contestant]) -> None:
        for contestant in group:
            contestant.start_stage()
        for number in range(self._pace.repeat):
            self._tell(f"{self._where}: round {number + 1}", 0)
            gc.collect()  # for all alike, before the clock: there is none while it runs
            first = number % max(1, len(group))
            for contestant in group[first:] + group[:first]:
                contestant.measure()

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


def _described(spec: Spec) -> dict[str, Any]:
    return {name: value for name, value in asdict(spec).items() if value is not None}
