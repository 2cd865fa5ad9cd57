"""Whole lists at once, from Python: see `kernels.filled`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.lists import GrowingLists
from nearcast.kernels import filled
from nearcast.kernels.lists import TOP


def fill_lists(
    lists: GrowingLists, targets: NDArray[np.int64], run_from: NDArray[np.int64], run: NDArray[np.int32]
) -> None:
    """Let list targets[i] be run i of a CSR pair; all targets exist."""
    ensure_room(lists, int(power_room(np.diff(run_from)).sum()))
    filled.fill(lists.arrays, targets, run_from, run)


def ensure_room(lists: GrowingLists, needed: int) -> None:
    """At least so many elements of the pool were never used."""
    arrays = lists.arrays
    free = len(arrays.pool) - int(arrays.state[TOP])
    if free < needed:
        lists.enlarge_pool(needed - free)


def ensure_push(lists: GrowingLists) -> None:
    """Whichever list is full can move to a run of twice its size."""
    ensure_room(lists, 2 * int(lists.arrays.length.max(initial=0)) + 1)


def power_room(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The power of two that holds each count."""
    return np.left_shift(1, power_class(counts))


def power_class(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
