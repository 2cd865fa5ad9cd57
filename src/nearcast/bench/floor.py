"""The yardstick: what the memory of this machine needs for a case, measured beside its contestants."""

from __future__ import annotations

from statistics import median

import numpy as np
from numpy.typing import NDArray

from nearcast.bench.measure import Spent, per_message, quiet
from nearcast.bench.results import IndexResult
from nearcast.bench.suite import FLOOR, Pace
from nearcast.bench.workload import Workload, batches
from nearcast.columns import MessageBatch
from nearcast.kernels.floor import LINE, touch_and_copy

_LEAST_BITS = 17  # 8 MB of lines, many times a second-level cache


class Floor:
    """Touches a random line a term and copies the answers out; see `kernels.floor`.

    There are as many lines as the subscriptions have terms. Answers are those that the contestants agreed on,
    by number: which ids are copied makes no difference to the time.
    """

    name = FLOOR

    def __init__(self, workload: Workload, pace: Pace, counts: NDArray[np.int64]) -> None:
        n_terms = int(workload.subscriptions.terms.max(initial=0)) + 1
        bits = max(_LEAST_BITS, (n_terms - 1).bit_length())
        self._lines = np.ones((1 << bits, LINE), dtype=np.uint64)
        self._shift = np.uint64(64 - bits)
        self._answer_from = np.concatenate([[0], np.cumsum(counts)])
        self._answers = np.arange(self._answer_from[-1], dtype=np.int32)
        self._batches = batches(workload.messages, pace.batch, len(counts))
        self._first = {id(batch): i * pace.batch for i, batch in enumerate(self._batches)}
        self._rounds: list[Spent] = []
        self.match(self._batches[0])  # compiles

    def match(self, batch: MessageBatch) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The answers of one of its own batches, as runs by message."""
        first = self._first[id(batch)]
        answer_from = self._answer_from[first : first + len(batch) + 1]
        found_from = np.zeros(len(batch) + 1, dtype=np.int64)
        found = np.empty(answer_from[-1] - answer_from[0], dtype=np.int32)
        touch_and_copy(batch.rows, self._lines, self._shift, answer_from, self._answers, found_from, found)
        return found_from, found

    def measure(self) -> None:
        """One round."""
        with quiet():
            self._rounds.append(per_message(self, self._batches))

    def us(self, since: int = 0) -> float:
        """Microseconds per message, the median of the rounds from `since` on."""
        return median(spent.cpu for spent in self._rounds[since:]) * 1e6

    @property
    def rounds(self) -> int:
        return len(self._rounds)

    def result(self) -> IndexResult:
        us = tuple(spent.cpu * 1e6 for spent in self._rounds)
        return IndexResult(
            self.name,
            "measured",
            messages=len(self._answer_from) - 1,
            us=median(us),
            us_best=min(us),
            us_repeats=us,
            us_wall=median(spent.wall for spent in self._rounds) * 1e6,
            per_s=1e6 / median(us),
            matches=float(self._answer_from[-1]) / (len(self._answer_from) - 1),
            times_floor=1.0,
        )
