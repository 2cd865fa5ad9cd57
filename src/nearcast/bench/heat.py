"""One case: its contestants through build, check and clock."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.bench.answers import Agreement, Answer
from nearcast.bench.contestant import Contestant
from nearcast.bench.floor import Floor
from nearcast.bench.odd import odd
from nearcast.bench.results import IndexResult, with_ratios
from nearcast.bench.spec import BenchError
from nearcast.bench.suite import Experiment, Pace
from nearcast.bench.trials import TRIALS, Trial
from nearcast.bench.workload import Workload
from nearcast.workloads.sampling import generator

_REASON = 240  # characters of an error that a result keeps
_VICTIMS = 13  # keeps this random stream apart from the workload's

Tell = Callable[[str, int], None]
"""Told what happens now, and how many (index, case) pairs are done since it was last told."""


_TRIALS: dict[str, Trial] = TRIALS | {"odd": odd}


class Surroundings(NamedTuple):
    """What the heats of a run share."""

    pace: Pace
    seed: int
    tell: Tell
    rehearsed: set[str]  # names; kernels do not depend on the data


class Group(NamedTuple):
    """Contestants that were measured together."""

    through: list[Contestant]
    results: list[IndexResult]  # of those in `through`, of the one beside them, and of those that failed


class Heat:
    """One case: all its contestants give the same answers, at every stage, or nobody is timed."""

    def __init__(self, around: Surroundings, experiment: Experiment, workload: Workload, where: str) -> None:
        self._around, self._experiment, self._workload, self._where = around, experiment, workload, where
        self._pace, self._tell = around.pace, around.tell
        self._maintained = experiment.kind == "maintenance"
        n = len(workload.subscriptions)
        self._victims: NDArray[np.int64] = generator(around.seed, _VICTIMS).permutation(n)[: len(workload.newcomers)]
        self._agreements = [Agreement(where), Agreement(f"{where}, after changes")]
        self._failed: list[IndexResult] = []
        self._beside: Contestant | None = None
        self._floor: Floor | None = None

    def judge(self, name: str, built: Sequence[Contestant] = ()) -> list[Contestant]:
        """The answers of somebody who does not compete, on a part of the messages."""
        most = min(self._pace.judged, len(self._workload.messages))
        referee = self._checked([name], built, most)
        if self._maintained:
            self._changed(referee)
        for crashed in self._failed:
            raise BenchError(f"{self._where}: the judge {name} failed: {crashed.notes[-1]}")
        return referee

    def measure(self, names: list[str], built: Group | None = None) -> Group:
        """Build, check and time; those of a group that was built for the same subscriptions are not built again.

        Contestants take turns, each round in another order.
        """
        self._failed = [] if built is None else [one for one in built.results if one.status == "failed"]
        group = self._checked(names, built.through if built else ())
        self._make_floor()
        base_us, floor_us = self._rounds(group)
        if self._experiment.kind in _TRIALS:
            trial = _TRIALS[self._experiment.kind]
            group = self._each(group, self._experiment.kind, lambda contestant: contestant.attempt(trial))
        if self._maintained:
            group = self._changed(group)
            self._rounds(group)
        self._tell(self._where, len(names))
        measured = [with_ratios(one.result(), base_us, floor_us) for one in group]
        if self._beside:
            measured.append(with_ratios(self._beside.result(), *self._standards({})))
        self._beside = next((one for one in group if one.name == self._experiment.beside), self._beside)
        return Group(group, measured + self._failed)

    def yardstick(self) -> list[IndexResult]:
        """Its result, if the experiment has one."""
        return [self._floor.result()] if self._floor else []

    def _make_floor(self) -> None:
        agreed = self._agreements[0].longest
        if self._experiment.floor and self._floor is None and agreed is not None:
            self._floor = Floor(self._workload, self._pace, agreed.counts)

    def _checked(self, names: list[str], built: Sequence[Contestant], most: int | None = None) -> list[Contestant]:
        if built:
            group = [one.again(self._workload, most) for one in built]
        else:
            group = [Contestant(name, self._workload, self._pace, most) for name in names]
            group = self._each(group, "warming up", self._rehearse)
            group = self._each(group, "building", Contestant.build)
        if self._maintained:
            group = self._each(group, "inserting", Contestant.grow)
        group = self._each(group, "checking", Contestant.plan)
        return self._agreed(group, self._agreements[0])

    def _rehearse(self, contestant: Contestant) -> None:
        if contestant.name not in self._around.rehearsed:
            contestant.rehearse()
            self._around.rehearsed.add(contestant.name)

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
