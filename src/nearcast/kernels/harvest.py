"""From posting lists to pairs: most postings are decided in their list, the doubtful ones by the exact predicate.

While a row is worked on, its certain entries grow in found.entries and its doubtful ones in found.rows, both from
the row's first place on; `finish` verifies the doubtful and writes the row numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive
from nearcast.kernels.postings import (
    ALWAYS,
    BOX,
    ENTRY_MASK,
    GUARDS,
    N_SLOTS,
    ONES,
    SLOT_SHIFT,
    WHAT,
    pack_message,
    unpack_entry,
)
from nearcast.kernels.primitives import verify
from nearcast.kernels.quadtree import cell_at

N_RUNS = 64
RUN_START, RUN_END, RUN_LEVEL, RUN_CODE = range(4)  # columns of runs
A_LINE = 4  # postings in 64 bytes


def new_runs() -> NDArray[np.int64]:
    """int64 [N_RUNS + 1, 4]: posting lists to look at, and the level and code of their cells; see `touch`."""
    return np.zeros((N_RUNS + 1, 4), dtype=np.int64)


def new_marks() -> NDArray[np.bool_]:
    """bool [N_SLOTS + 1]: set at the slots of the terms of the message at hand, and at ALWAYS."""
    marks = np.zeros(N_SLOTS + 1, dtype=np.bool_)
    marks[ALWAYS] = True
    return marks


@primitive
def mark(marks, rows, row, value):
    for i in range(rows.term_from[row], rows.term_from[row + 1]):
        marks[rows.terms[i] & (N_SLOTS - 1)] = value


@primitive
def add_run(runs, n_runs, start, count, level, code):
    """Put a list down, to be looked at together with others."""
    runs[n_runs, RUN_START], runs[n_runs, RUN_END] = start, start + count
    runs[n_runs, RUN_LEVEL], runs[n_runs, RUN_CODE] = level, code
    return n_runs + np.int64(count > 0)


@primitive
def touch(pool, runs, n_runs):
    """Read a word of every cache line of the lists. Lists lie anywhere in memory; these reads depend on nothing,
    so that the processor waits for all of them at once, and `look` finds everything at hand. The sum is kept
    only for the compiler not to leave the reads out."""
    total = np.int64(0)
    for i in range(n_runs):
        for at in range(runs[i, RUN_START], runs[i, RUN_END], A_LINE):
            total ^= pool[at, BOX]
    runs[N_RUNS, 0] = total


@primitive
def gather(pool, runs, n_runs, box, marks, found, n, m):
    """All lists put down against a message (its box in steps). Returns the ends of the certain and doubtful."""
    touch(pool, runs, n_runs)
    message = pack_message(box)
    if box[0] == box[2] and box[1] == box[3]:
        for i in range(n_runs):
            n, m = look(pool, runs, i, message, marks, found.entries, n, found.rows, m)
    else:
        for i in range(n_runs):
            n, m = look_owned(pool, runs, i, message, marks, found.entries, n, found.rows, m, box)
    return n, m


@primitive
def look(pool, runs, i, message, marks, certain, n, doubtful, m):
    """The postings of a list against a packed message that meets one cell of each level.

    Certain is an entry with no further term that overlaps whatever the steps have rounded away. These are appended
    without branching: about half of the postings match, which no branch predictor can foresee. Doubtful ones are
    few. Unsigned indices carry no code for counting from the end, which takes half of the time here.
    """
    for at in range(np.uint64(runs[i, RUN_START]), np.uint64(runs[i, RUN_END])):
        apart, what = message - pool[at, BOX], pool[at, WHAT]
        slot, entry = what >> SLOT_SHIFT, np.int32(what & ENTRY_MASK)
        is_certain = ((apart - ONES) & GUARDS == GUARDS) & (slot == ALWAYS)
        certain[np.uint64(n)] = entry
        n += is_certain
        if (apart & GUARDS == GUARDS) & marks[np.uint64(slot)] & (not is_certain):
            doubtful[np.uint64(m)] = entry
            m += 1
    return n, m


@primitive
def look_owned(pool, runs, i, message, marks, certain, n, doubtful, m, box):
    """The same for range messages: an entry that is in several of the cells that the message meets is reported
    by one of them, the one with the lower left corner of what they have in common."""
    for at in range(runs[i, RUN_START], runs[i, RUN_END]):
        apart, what = message - pool[at, BOX], pool[at, WHAT]
        slot = what >> SLOT_SHIFT
        if apart & GUARDS != GUARDS or not marks[slot]:
            continue
        west, south, _, _ = unpack_entry(pool[at, BOX])
        if cell_at(runs[i, RUN_LEVEL], max(west, box[0]), max(south, box[1])) != runs[i, RUN_CODE]:
            continue
        if slot == ALWAYS and (apart - ONES) & GUARDS == GUARDS:
            certain[n] = np.int32(what & ENTRY_MASK)
            n += 1
        else:
            doubtful[m] = np.int32(what & ENTRY_MASK)
            m += 1
    return n, m


@primitive
def finish(entries, rows, row, found, row_from, n, m, runs):
    """Verify the doubtful entries of a row, and complete its pairs. Returns the number found by now."""
    touch_entries(entries, found.rows, row_from, m, runs)
    for i in range(row_from, m):
        entry = found.rows[i]
        if verify(entries, entry, rows, row):
            found.entries[n] = entry
            n += 1
    for i in range(row_from, n):
        found.rows[i] = row
    return n


@primitive
def touch_entries(entries, chosen, low, high, runs):
    """See `touch`: what `verify` will read of the entries."""
    total = np.int64(0)
    for i in range(low, high):
        entry = chosen[i]
        total ^= np.int64(entries.boxes[entry, 0] > entries.boxes[entry, 3])
        total ^= entries.term_from[entry] ^ entries.term_count[entry]
    for i in range(low, high):
        total ^= entries.terms[entries.term_from[chosen[i]]]
    runs[N_RUNS, 0] = total
