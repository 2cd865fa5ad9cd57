"""What a contestant tells while time runs: its figures, and a checksum by which all are compared."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearcast.bench.results import IndexResult
from nearcast.bench.spec import BenchError

_GOLDEN, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Told(NamedTuple):
    """What a contestant did."""

    result: IndexResult
    answer: int  # checksum of all changes


class Changed(Protocol):
    """Changes of rankings or of moving subscriptions, as columns."""

    @property
    def slot(self) -> NDArray[Any]: ...
    @property
    def seq(self) -> NDArray[Any]: ...
    @property
    def entered(self) -> NDArray[Any]: ...


def checksum(changes: Changed) -> int:
    """Does not depend on the order of changes."""
    slot, seq = changes.slot.astype(np.uint64), changes.seq.astype(np.uint64)
    mixed = ((slot + np.uint64(1)) * _GOLDEN) ^ ((seq + np.uint64(1)) * _OTHER) ^ changes.entered.astype(np.uint64)
    spread = (mixed ^ (mixed >> np.uint64(31))) * _OTHER
    return int(np.bitwise_xor.reduce(spread)) if len(spread) else 0


def check_same(first: Told, told: Told) -> None:
    """A difference between answers ends the run."""
    if told.answer != first.answer:
        raise BenchError(f"{first.result.index} and {told.result.index} tell different changes; the run ends here")
