"""Posting lists in one pool: a posting has all that most verifications need, and a list is read in line.

A posting is two words. The first is its box in steps (see `quadtree`) as four fields of 15 bits: west, south, and
east and north counted from the far side, so that a message, packed the other way round, overlaps it when no field
of the posting is greater. One subtraction compares all four. The second is the entry and, above it, the *slot*
(term modulo N_SLOTS) of the entry's rarest term besides its key.

A list is a *head* (a row of an int32 array of the index; its first columns are START, COUNT and KLASS) and a run
of 2**klass postings. A full list moves to a run of twice the size; free runs are chained by size class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive
from nearcast.kernels.quadtree import BITS, N_STEPS

NO_RUN = -1
N_CLASSES = 31
TOP = N_CLASSES  # index in `state`: the first posting that was never used
START, COUNT, KLASS = range(3)  # first columns of a head
BOX, WHAT = range(2)  # columns of the pool
N_SLOTS = 4096
ALWAYS = N_SLOTS  # slot of an entry that has no term besides its key
SLOT_SHIFT = 32
ENTRY_MASK = (1 << SLOT_SHIFT) - 1

FIELD = BITS + 1
LAST_STEP = N_STEPS - 1
ONES = 1 | 1 << FIELD | 1 << 2 * FIELD | 1 << 3 * FIELD
GUARDS = ONES << BITS


class Postings(NamedTuple):
    pool: NDArray[np.int64]  # [n, 2]  box in steps; entry and slot. In a free run: -; next free run of its class
    state: NDArray[np.int64]  # [N_CLASSES + 1]  first free run by class or NO_RUN; then TOP


@primitive
def pack_entry(box):
    west, south, east, north = box
    return west | south << FIELD | (LAST_STEP - east) << 2 * FIELD | (LAST_STEP - north) << 3 * FIELD


@primitive
def unpack_entry(word):
    return (
        word & LAST_STEP,
        (word >> FIELD) & LAST_STEP,
        LAST_STEP - ((word >> 2 * FIELD) & LAST_STEP),
        LAST_STEP - ((word >> 3 * FIELD) & LAST_STEP),
    )


@primitive
def pack_message(box):
    """The other way round, with the guard bits set: (packed message - packed entry) keeps all guards if they
    may overlap, and (packed message - ONES - packed entry) if they certainly do."""
    west, south, east, north = box
    return east | north << FIELD | (LAST_STEP - west) << 2 * FIELD | (LAST_STEP - south) << 3 * FIELD | GUARDS


@primitive
def take_run(postings, klass):
    """A run of 2**klass postings, or NO_RUN if the pool has no room."""
    run = postings.state[klass]
    if run != NO_RUN:
        postings.state[klass] = postings.pool[run, WHAT]
        return run
    run = postings.state[TOP]
    if run + (np.int64(1) << klass) > len(postings.pool):
        return np.int64(NO_RUN)
    postings.state[TOP] = run + (np.int64(1) << klass)
    return run


@primitive
def give_run(postings, run, klass):
    postings.pool[run, WHAT] = postings.state[klass]
    postings.state[klass] = run


@primitive
def is_full(heads, at):
    klass = np.int64(heads[at, KLASS])
    return klass == NO_RUN or heads[at, COUNT] == np.int64(1) << klass


@primitive
def grow(postings, heads, at):
    """Twice the room for list `at`; False if the pool has none (nothing is changed then)."""
    klass = np.int64(heads[at, KLASS])
    larger = take_run(postings, klass + 1)
    if larger == NO_RUN:
        return False
    if klass != NO_RUN:
        start = np.int64(heads[at, START])
        for i in range(heads[at, COUNT]):
            copy_posting(postings, start + i, larger + i)
        give_run(postings, start, klass)
    heads[at, START] = larger
    heads[at, KLASS] = klass + 1
    return True


@primitive
def copy_posting(postings, source, target):
    postings.pool[target, BOX] = postings.pool[source, BOX]
    postings.pool[target, WHAT] = postings.pool[source, WHAT]


@primitive
def swap(postings, i, j):
    box, what = postings.pool[i, BOX], postings.pool[i, WHAT]
    copy_posting(postings, j, i)
    postings.pool[j, BOX], postings.pool[j, WHAT] = box, what


@primitive
def append(postings, heads, at, box, what):
    """Put a posting at the end of list `at`, which has room."""
    target = np.int64(heads[at, START]) + heads[at, COUNT]
    postings.pool[target, BOX], postings.pool[target, WHAT] = box, what
    heads[at, COUNT] += 1


@primitive
def ends_with(postings, heads, at, what):
    count = np.int64(heads[at, COUNT])
    return count > 0 and postings.pool[heads[at, START] + count - 1, WHAT] == what


@primitive
def cut_to(postings, heads, at, count):
    """Keep the first postings of a list; an empty one gives its run back."""
    heads[at, COUNT] = count
    if count == 0 and heads[at, KLASS] != NO_RUN:
        give_run(postings, np.int64(heads[at, START]), np.int64(heads[at, KLASS]))
        heads[at, KLASS] = NO_RUN


@primitive
def forget(postings, heads, at, what):
    """Remove a posting from list `at`, if it is there; the last one takes its place."""
    start, count = np.int64(heads[at, START]), np.int64(heads[at, COUNT])
    for position in range(start, start + count):
        if postings.pool[position, WHAT] == what:
            copy_posting(postings, start + count - 1, position)
            cut_to(postings, heads, at, count - 1)
            return
