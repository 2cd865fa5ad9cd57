"""Many growing lists of numbers in one pool: contiguous runs, so that reading one is a linear scan.

A list owns pool[start:start + length] within a run of capacity 2**klass. A full list moves to a run of twice
the size; runs that become free are chained by size class through their first element and used again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive

NO_RUN = -1
N_CLASSES = 32
TOP = N_CLASSES  # index in `state`: the first pool element that was never used


class Lists(NamedTuple):
    start: NDArray[np.int64]  # [n]   first element in pool
    length: NDArray[np.int32]  # [n]   number of values
    klass: NDArray[np.int8]  # [n]   capacity is 2**klass; NO_RUN: the list has no run yet
    pool: NDArray[np.int32]  # [*]   values
    state: NDArray[np.int64]  # [N_CLASSES + 1]  first free run by class or NO_RUN; then TOP


@primitive
def take_run(lists, klass):
    """A run of 2**klass elements, or NO_RUN if the pool has no room."""
    run = lists.state[klass]
    if run != NO_RUN:
        lists.state[klass] = np.int64(lists.pool[run])
        return run
    run = lists.state[TOP]
    if run + (np.int64(1) << klass) > len(lists.pool):
        return np.int64(NO_RUN)
    lists.state[TOP] = run + (np.int64(1) << klass)
    return run


@primitive
def give_run(lists, run, klass):
    lists.pool[run] = lists.state[klass]
    lists.state[klass] = run


@primitive
def push(lists, at, value):
    """Append value to list `at`; False if the pool has no room (nothing is changed then)."""
    klass, count = np.int64(lists.klass[at]), lists.length[at]
    if klass == NO_RUN or count == np.int64(1) << klass:
        larger = take_run(lists, klass + 1)
        if larger == NO_RUN:
            return False
        if klass != NO_RUN:
            start = lists.start[at]
            for i in range(count):
                lists.pool[larger + i] = lists.pool[start + i]
            give_run(lists, start, klass)
        lists.start[at] = larger
        lists.klass[at] = klass + 1
    lists.pool[lists.start[at] + count] = value
    lists.length[at] = count + 1
    return True


@primitive
def drop_at(lists, at, position):
    """Remove the value at a position of list `at`; the last value takes its place."""
    last = lists.length[at] - 1
    start = lists.start[at]
    lists.pool[start + position] = lists.pool[start + last]
    lists.length[at] = last
    if last == 0:
        give_run(lists, start, np.int64(lists.klass[at]))
        lists.klass[at] = NO_RUN


@kernel
def append_all(lists, targets, values, first):
    """Append values[i] to list targets[i] from i = first on. Returns the next i: less than all if full."""
    for i in range(first, len(targets)):
        if not push(lists, targets[i], values[i]):
            return i
    return len(targets)


@kernel
def drop_marked(lists, targets, marked):
    """Remove every value v with marked[v] from the lists named in targets; one pass over each."""
    for i in range(len(targets)):
        at = targets[i]
        position = lists.length[at] - 1
        while position >= 0:
            if marked[lists.pool[lists.start[at] + position]]:
                drop_at(lists, at, position)
            position -= 1
