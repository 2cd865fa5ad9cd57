"""One index in one case, from its build to its result. Only the protocol of an index is used."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast import indexes
from nearcast.bench.answers import Answer
from nearcast.bench.measure import Spent, Timed, affordable, latencies, per_message, quiet, resident, timed
from nearcast.bench.results import IndexResult, Maintenance
from nearcast.bench.suite import Pace
from nearcast.bench.trials import Setting, Trial
from nearcast.bench.workload import Workload, batches, some
from nearcast.columns import Pairs, SubscriptionColumns
from nearcast.indexes.report import IndexReport

CHANGES = 1_000  # subscriptions of one insert or remove
_PILOT = 32  # messages that tell how long the others will take
_LEAST = 16  # messages that are measured however slow an index is
_GONE = -1
_REHEARSED = 2_000  # subscriptions of a rehearsal


class _Changes(NamedTuple):
    """What was timed of some insertions or removals."""

    number: int = 0
    seconds: float = 0.0
    longest: float = 0.0  # seconds of one call

    def joined(self, other: _Changes) -> _Changes:
        longest = max(self.longest, other.longest)
        return _Changes(self.number + other.number, self.seconds + other.seconds, longest)

    @property
    def per_s(self) -> float | None:
        return self.number / self.seconds if self.seconds else None

    @property
    def longest_ms(self) -> float | None:
        return self.longest * 1e3 if self.number else None


class Contestant:
    """Subscriptions have numbers of the runner's own, so that an index may give out slots as it likes."""

    def __init__(self, name: str, workload: Workload, pace: Pace, most: int | None = None) -> None:
        self.name = name
        self.notes: list[str] = []
        self.build_s = 0.0
        self.n = most or len(workload.messages)
        self._workload, self._pace, self._most = workload, pace, self.n
        self._owner = np.empty(0, dtype=np.int32)  # [slot]  number of its subscription
        self._slot = np.full(len(workload.subscriptions) + len(workload.newcomers), _GONE, dtype=np.int64)
        self._spent: list[list[Spent]] = []  # one list per stage: before and after changes
        self._latencies: list[NDArray[np.float64]] = []
        self._inserted = self._removed = _Changes()
        self._figures: dict[str, float] = {}

    def again(self, workload: Workload, most: int | None = None) -> Contestant:
        """The same index for other messages: built as it is, everything else anew."""
        other = Contestant(self.name, workload, self._pace, most)
        for kept in ("_index", "_resident", "_owner", "_slot", "build_s"):
            setattr(other, kept, getattr(self, kept))
        return other

    # -- before the clock ---------------------------------------------------------------------------

    def rehearse(self) -> None:
        """Everything once on a small part: whatever is compiled on the way is not met again."""
        known = self._workload.subscriptions
        n = min(_REHEARSED, len(known))
        index = indexes.create(self.name, self._workload.history)
        slots = index.insert(some(known, 0, n // 2))
        index.insert(some(known, n // 2, n))
        index.remove(slots[: n // 4])
        index.match(batches(self._workload.messages, _PILOT, _PILOT)[0])

    def build(self) -> None:
        """The index of the subscriptions that are there at the start; timed, and again if code was compiled."""
        n = round(self._workload.spec.built * len(self._workload.subscriptions))
        columns = some(self._workload.subscriptions, 0, n)
        for _ in range(3):
            with quiet():
                before = resident()
                self._index = indexes.create(self.name, self._workload.history)
                built = timed(lambda: self._index.insert(columns))
                after = resident()
            if not built.compiled:
                break
        if built.compiled:
            self.notes.append("code was compiled during every build: its time is too long")
        self.build_s = built.seconds
        self._resident = None if before is None or after is None else max(0, after - before)
        self._own(built.value, np.arange(n))
        if self.build_s > self._pace.build_limit:
            self.notes.append(f"the build took {self.build_s:.0f} s, more than {self._pace.build_limit:.0f} s")

    def plan(self) -> None:
        """How many messages fit the budget: the check and all repeats together."""
        pilot = batches(self._workload.messages, _PILOT, min(_PILOT, self._most))[0]
        self._index.match(pilot)
        each = timed(lambda: self._index.match(pilot)).seconds / len(pilot)
        rounds = self._pace.repeat + 1
        self.n = affordable(self._pace.budget / rounds, each, _LEAST, self._most)
        self._batches = batches(self._workload.messages, self._pace.batch, self.n)
        alone = timed(lambda: self._index.match(batches(self._workload.messages, 1, 1)[0])).seconds
        spare = self._pace.budget / 4 / rounds
        n_singles = affordable(spare, max(each, alone), _LEAST, min(self.n, self._pace.singles))
        self._singles = batches(self._workload.messages, 1, n_singles)
        if self.n < self._most:
            self.notes.append(f"measured on {self.n} of {self._most} messages: {each * 1e6:.0f} µs each in a pilot")

    def answer(self) -> Answer:
        """The answer on all measured messages, and what the index counted on the way."""
        before = self._index.report()
        parts = []
        for first, batch in zip(range(0, self.n, self._pace.batch), self._batches, strict=True):
            pairs = self._index.match(batch)
            parts.append((pairs.message + np.int32(first), self._owner[pairs.slot]))
        message, number = (np.concatenate(column) for column in zip(*parts, strict=True))
        answer = Answer.of(Pairs(message, number), self.n)
        self._explain(before, self._index.report(), answer)
        return answer

    def _explain(self, before: IndexReport, after: IndexReport, answer: Answer) -> None:
        if not self._spent:  # of the first stage
            self._report = after
            self._candidates = (after.candidates - before.candidates) / self.n
            self._nodes = (after.nodes - before.nodes) / self.n
            self._matches = answer.matches / self.n

    # -- on the clock -------------------------------------------------------------------------------

    def start_stage(self) -> None:
        self._spent.append([])

    def measure(self) -> None:
        """One round."""
        with quiet():
            self._spent[-1].append(per_message(self._index, self._batches))
            if len(self._spent) == 1:
                self._latencies.append(latencies(self._index, self._singles) * 1e6)

    def grow(self) -> None:
        """Insert those subscriptions that were not there at the start."""
        known = self._workload.subscriptions
        first = round(self._workload.spec.built * len(known))
        self._insert(some(known, first, len(known)), first)

    def change(self, victims: NDArray[np.int64]) -> None:
        """Remove the subscriptions with these numbers, insert the newcomers."""
        slots = self._slot[victims].astype(np.int32)

        def remove(first: int, last: int) -> Timed[None]:
            return timed(lambda: self._index.remove(slots[first:last]))

        self._removed = self._in_batches(len(slots), remove)
        self._owner[slots], self._slot[victims] = _GONE, _GONE
        self._insert(self._workload.newcomers, len(self._workload.subscriptions))

    def _insert(self, columns: SubscriptionColumns, number: int) -> None:
        def insert(first: int, last: int) -> Timed[NDArray[np.int32]]:
            part = some(columns, first, last)
            done = timed(lambda: self._index.insert(part))
            self._own(done.value, np.arange(number + first, number + last))
            return done

        self._inserted = self._inserted.joined(self._in_batches(len(columns), insert))

    def _in_batches(self, n: int, step: Callable[[int, int], Timed[Any]]) -> _Changes:
        """What was timed; once the budget is spent, the rest goes in one call untimed."""
        done, counted = 0, _Changes()
        with quiet():
            while done < n:
                in_time = counted.seconds < self._pace.budget
                last = min(done + CHANGES, n) if in_time else n
                took = step(done, last)
                if in_time and not took.compiled:
                    counted = counted.joined(_Changes(last - done, took.seconds, took.seconds))
                done = last
        if counted.number < n:
            self.notes.append(f"rate of changes measured on {counted.number} of {n} subscriptions")
        return counted

    def _own(self, slots: NDArray[np.int32], numbers: NDArray[np.int64]) -> None:
        top = int(slots.max(initial=-1)) + 1
        if top > len(self._owner):
            more = np.full(max(top, len(self._owner) * 3 // 2) - len(self._owner), _GONE, dtype=np.int32)
            self._owner = np.concatenate([self._owner, more])
        self._owner[slots] = numbers
        self._slot[numbers] = slots

    def attempt(self, trial: Trial) -> None:
        """Take part in a trial on the index as it is; it must be left so."""
        self._figures = trial(Setting(self._index, self._batches, self._workload, self._pace))

    # -- afterwards ---------------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """Of the stage that it is in."""
        return len(self._spent[-1]) if self._spent else 0

    def us(self, since: int = 0) -> float:
        """Microseconds per message of the first stage, the median of the rounds from `since` on."""
        return median(spent.cpu for spent in self._spent[0][since:]) * 1e6

    def result(self) -> IndexResult:
        us = [spent.cpu * 1e6 for spent in self._spent[0]]
        p50, p99 = np.percentile(np.concatenate(self._latencies), [50, 99]).tolist()
        return IndexResult(
            self.name,
            "measured",
            tuple(self.notes),
            messages=self.n,
            us=median(us),
            us_best=min(us),
            us_repeats=tuple(us),
            us_wall=median(spent.wall for spent in self._spent[0]) * 1e6,
            per_s=1e6 / median(us),
            p50=p50,
            p99=p99,
            build_s=self.build_s,
            bytes=dict(self._report.bytes),
            bytes_per_subscription=self._report.bytes_per_subscription,
            resident=self._resident,
            candidates=self._candidates,
            nodes=self._nodes,
            matches=self._matches,
            maintenance=self._maintenance() if len(self._spent) > 1 else None,
            figures=self._figures,
        )

    def _maintenance(self) -> Maintenance:
        return Maintenance(
            self._inserted.number,
            self._inserted.per_s,
            self._removed.number,
            self._removed.per_s,
            median(spent.cpu for spent in self._spent[1]) * 1e6,
            self._inserted.longest_ms,
            self._removed.longest_ms,
        )
