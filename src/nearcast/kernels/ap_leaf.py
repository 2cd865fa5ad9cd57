"""Leaves of an AP-Tree against a message: what the path has not proven is verified (VLDBJ'17 Algorithm 1, line 2).

Most elements are decided where they are. While a row is worked on, its certain entries grow in found.entries and
the pool rows of its doubtful ones in found.rows, both from the row's first place on; `finish` settles the doubtful
and writes the row numbers.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ap_layout import (
    BOX,
    ENTRY,
    ENTRY_MASK,
    FIELD,
    GUARDS,
    LAST_STEP,
    ONES,
    OPEN,
    SURE,
    pack_message,
    steps_of,
)
from nearcast.kernels.jit import primitive
from nearcast.kernels.primitives import overlaps

A_LINE = 4  # elements in 64 bytes
EMPTY = -1  # in the table of a message's keys
N_MARKS = 4096


@primitive
def gather(pool, scratch, n_runs, box, found, n, m):
    """Read all leaves put down. Returns the ends of the certain and of the doubtful."""
    runs, message = scratch.runs, pack_message(box)
    # One word of every cache line first: leaves lie anywhere in memory, these reads depend on nothing, so that
    # the processor waits for all of them at once. The sum is kept for the compiler not to leave them out.
    total = np.int64(0)
    for i in range(n_runs):
        for at in range(runs[i, 0], runs[i, 0] + (runs[i, 1] >> 2), A_LINE):
            total ^= pool[at, BOX]
    runs[len(runs) - 1, 0] = total
    for i in range(n_runs):
        start, what, region = runs[i, 0], runs[i, 1], runs[i, 2]
        end = start + (what >> 2)
        if box[0] != box[2] or box[1] != box[3]:
            n, m = look_owned(pool, start, end, region, message, scratch.marks, found, n, m, box)
        elif what & 3 == SURE:
            n, m = look_sure(pool, start, end, message, found.entries, n, found.rows, m)
        else:
            n, m = look(pool, start, end, message, scratch.marks, found.entries, n, found.rows, m)
    return n, m


@primitive
def look(pool, start, end, message, marks, certain, n, doubtful, m):
    """A leaf against a packed message that meets one cell of each node.

    Certain is an element with nothing left to prove that overlaps whatever the steps have rounded away. Appends
    without branching: about half of the elements match, which no branch predictor can foresee.
    """
    for at in range(start, end):
        apart, what = message - pool[at, BOX], pool[at, ENTRY]
        is_certain = ((apart - ONES) & GUARDS == GUARDS) & (what < OPEN)
        is_possible = (apart & GUARDS == GUARDS) & marks[(what >> 32) & (N_MARKS - 1)]
        certain[n] = what & ENTRY_MASK
        n += is_certain
        doubtful[m] = at
        m += is_possible & (not is_certain)
    return n, m


@primitive
def look_sure(pool, start, end, message, certain, n, doubtful, m):
    """The same where only boxes can differ; that steps are equal is rare."""
    for at in range(start, end):
        apart = message - pool[at, BOX]
        is_certain = (apart - ONES) & GUARDS == GUARDS
        certain[n] = pool[at, ENTRY]
        n += is_certain
        if (apart & GUARDS == GUARDS) != is_certain:
            doubtful[m] = at
            m += 1
    return n, m


@primitive
def look_owned(pool, start, end, region, message, marks, found, n, m, box):
    """The same for a message that may meet an entry in several cells: it counts in the one that holds the lower
    left corner of what they have in common."""
    west, south = region & LAST_STEP, region >> FIELD & LAST_STEP
    east, north = region >> 2 * FIELD & LAST_STEP, region >> 3 * FIELD & LAST_STEP
    for at in range(start, end):
        apart, what = message - pool[at, BOX], pool[at, ENTRY]
        if apart & GUARDS != GUARDS or not marks[(what >> 32) & (N_MARKS - 1)]:
            continue
        x = max(pool[at, BOX] & LAST_STEP, box[0])
        y = max(pool[at, BOX] >> FIELD & LAST_STEP, box[1])
        if not (west <= x <= east and south <= y <= north):
            continue
        if (apart - ONES) & GUARDS == GUARDS and what < OPEN:
            found.entries[n] = what
            n += 1
        else:
            found.rows[m] = at
            m += 1
    return n, m


@primitive
def finish(tree, entries, keys, rows, row, scratch, found, row_from, n, m):
    """Settle the doubtful elements of a row, and complete its pairs. Returns the number found by now."""
    message = pack_message(steps_of(rows.boxes, row, tree.frame))
    for i in range(row_from, m):
        at = found.rows[i]
        what = tree.pool[at, ENTRY]
        entry = what & ENTRY_MASK
        if what >> 32 != 0 and not holds(scratch.table, what >> 32):
            continue
        if what & OPEN and not has_all(entries, keys, entry, scratch.table):
            continue
        if (message - tree.pool[at, BOX] - ONES) & GUARDS != GUARDS:
            if not overlaps(entries.boxes, entry, rows.boxes, row):
                continue
        found.entries[n] = entry
        n += 1
    for i in range(row_from, n):
        found.rows[i] = row
    return n


@primitive
def has_all(entries, keys, entry, table):
    start = entries.term_from[entry]
    for i in range(start, start + entries.term_count[entry]):
        if not holds(table, np.int64(keys[i]) + 1):
            return False
    return True


@primitive
def holds(table, key):
    slot = key & (len(table) - 1)
    while table[slot] != EMPTY:
        if table[slot] == key:
            return True
        slot = (slot + 1) & (len(table) - 1)
    return False
