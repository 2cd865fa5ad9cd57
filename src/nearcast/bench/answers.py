"""What contestants answered, as checksums that do not depend on the order of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.bench.spec import BenchError
from nearcast.columns import Pairs

_GOLDEN, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


class Answer(NamedTuple):
    """Row i is message i. Number, sum and xor together notice a missing, an extra and a repeated pair."""

    counts: NDArray[np.int64]  # [n]
    sums: NDArray[np.uint64]  # [n]  sum of the pairs' mixed numbers, modulo 2 ** 64
    xors: NDArray[np.uint64]  # [n]

    @property
    def matches(self) -> int:
        return int(self.counts.sum())

    @staticmethod
    def of(pairs: Pairs, n_messages: int) -> Answer:
        """By message, so that contestants measured on fewer messages can be compared, and a difference found."""
        message = pairs.message.astype(np.int64)
        mixed = _mixed((message.astype(np.uint64) << np.uint64(32)) | pairs.slot.astype(np.uint64))
        sums, xors = np.zeros(n_messages, dtype=np.uint64), np.zeros(n_messages, dtype=np.uint64)
        np.add.at(sums, message, mixed)
        np.bitwise_xor.at(xors, message, mixed)
        return Answer(np.bincount(message, minlength=n_messages), sums, xors)

    def first_difference(self, other: Answer) -> int | None:
        """The first message on which two answers differ, of those that both have."""
        n = min(len(self.counts), len(other.counts))
        same = np.ones(n, dtype=np.bool_)
        for ours, theirs in zip(self, other, strict=True):
            same &= ours[:n] == theirs[:n]
        return None if same.all() else int(np.argmin(same))


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every key to a number that looks random (the finaliser of SplitMix64)."""
    keys = keys + _GOLDEN
    keys = (keys ^ (keys >> np.uint64(30))) * _FIRST
    keys = (keys ^ (keys >> np.uint64(27))) * _SECOND
    return keys ^ (keys >> np.uint64(31))


@dataclass
class Agreement:
    """Compares every answer of a case with the longest one so far; equal prefixes make it fair to all."""

    where: str
    name: str = ""
    longest: Answer | None = None

    def join(self, name: str, answer: Answer) -> None:
        """Take an answer in, or raise: wrong answers are never timed."""
        if self.longest is not None:
            at = self.longest.first_difference(answer)
            if at is not None:
                raise BenchError(
                    f"{self.where}: {self.name} and {name} disagree on message {at}: "
                    f"{self.longest.counts[at]} and {answer.counts[at]} matches; the run ends here"
                )
        if self.longest is None or len(answer.counts) > len(self.longest.counts):
            self.name, self.longest = name, answer
