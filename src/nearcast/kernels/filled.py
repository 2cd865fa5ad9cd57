"""Lists that are kept in order, and whole lists at once: see `kernels.lists`."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.lists import NO_RUN, give_run, push, take_run


@primitive
def put_at(lists, at, offset, value):
    """Insert a value into list `at` before the one at an offset; False if the pool has no room."""
    if not push(lists, at, value):
        return False
    # Unsigned, because the wrap-around of negative indices keeps the compiler from moving many at once.
    one = np.uint64(1)
    last = np.uint64(lists.start[at] + lists.length[at] - 1)
    for i in range(lists.length[at] - 1 - offset):
        position = last - np.uint64(i)
        lists.pool[position] = lists.pool[position - one]
    lists.pool[lists.start[at] + offset] = value
    return True


@primitive
def take_at(lists, at, offset):
    """Remove the value at an offset of list `at`; the order of the others stays."""
    one = np.uint64(1)
    first = np.uint64(lists.start[at] + offset)
    for i in range(lists.length[at] - 1 - offset):
        position = first + np.uint64(i)
        lists.pool[position] = lists.pool[position + one]
    lists.length[at] -= 1
    if lists.length[at] == 0:
        give_run(lists, lists.start[at], np.int64(lists.klass[at]))
        lists.klass[at] = NO_RUN


@kernel
def fill(lists, targets, run_from, run):
    """Let list targets[i] be run[run_from[i]:run_from[i + 1]]. The caller has made room in the pool."""
    for i in range(len(targets)):
        at, count = targets[i], run_from[i + 1] - run_from[i]
        if lists.klass[at] != NO_RUN:
            give_run(lists, lists.start[at], np.int64(lists.klass[at]))
        lists.length[at] = count
        lists.klass[at] = NO_RUN
        if count == 0:
            continue
        klass = np.int64(0)
        while np.int64(1) << klass < count:
            klass += 1
        lists.start[at] = take_run(lists, klass)
        lists.klass[at] = klass
        for j in range(count):
            lists.pool[lists.start[at] + j] = run[run_from[i] + j]
