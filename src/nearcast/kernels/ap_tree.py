"""Matching with an AP-Tree (VLDBJ'17 3.2.3, Algorithm 1), for points and for boxes.

The walk puts down the leaves that it reaches; when there are enough they are read together (see `ap_leaf`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ap_layout import (
    DUMMY,
    FIELD,
    FIRST,
    KEYWORD,
    LAST_STEP,
    NOTHING,
    PARTS,
    ROOT,
    SPACE,
    START,
    WHAT,
    steps_of,
)
from nearcast.kernels.ap_leaf import EMPTY, N_MARKS, finish, gather
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES

N_RUNS = 64  # leaves that are read together
EVERYWHERE = LAST_STEP << 2 * FIELD | LAST_STEP << 3 * FIELD
"""A region as one number: west, south, east, north."""


class Scratch(NamedTuple):
    """Room for one message at a time."""

    words: NDArray[np.int64]  # [*]  its keys, ascending
    table: NDArray[np.int64]  # [2**b]  its keys plus one, hashed: open addressing, EMPTY between messages
    marks: NDArray[np.bool_]  # [N_MARKS]  the same, smaller and less exact
    stack: NDArray[np.int64]  # [*, 4]  inner nodes to enter: START; WHAT; first key to look at; region
    runs: NDArray[np.int64]  # [N_RUNS + *, 3]  leaves to read: START; WHAT; region


def make_scratch(longest: int, fanout: int, height: int) -> Scratch:
    """For messages of up to so many terms. A node leaves at most one row a term, or a cell, and a dummy."""
    most = longest + fanout + 6
    bits = max(10, int(longest).bit_length() + 3)
    marks = np.zeros(N_MARKS, dtype=np.bool_)
    marks[0] = True  # no key at all
    return Scratch(
        np.empty(max(longest, 1), dtype=np.int64),
        np.full(1 << bits, EMPTY, dtype=np.int64),
        marks,
        np.empty((most * (height + 1), 4), dtype=np.int64),
        np.zeros((N_RUNS + most, 3), dtype=np.int64),
    )


@kernel
def probe(tree, entries, keys, ranks, rows, scratch, first_row, found, counters):
    """Append all (row, entry) pairs from first_row on. Returns (next row, number found); see `scan.probe`."""
    n_found = np.int64(0)
    for row in range(first_row, len(rows.boxes)):
        n_words = read_row(rows, row, ranks, scratch)
        n, m, candidates, nodes = walk(tree, rows, row, n_words, scratch, found, n_found)
        fits = n_found + candidates <= len(found.rows)
        if fits:
            n_found = finish(tree, entries, keys, rows, row, scratch, found, n_found, n, m)
        for i in range(n_words):
            clear(scratch.table, scratch.marks, scratch.words[i] + 1)
        if not fits:
            return row, n_found
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found


# -- the keys of a message ---------------------------------------------------------------------------------


@primitive
def read_row(rows, row, ranks, scratch):
    """The keys of a row, ascending, and hashed; terms that no subscription ever had are left out."""
    words, n = scratch.words, 0
    for i in range(rows.term_from[row], rows.term_from[row + 1]):
        term = rows.terms[i]
        if term < len(ranks) and ranks[term] != NOTHING:
            words[n] = ranks[term]
            n += 1
    gap = 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's sort
        for i in range(gap, n):
            value, j = words[i], i
            while j >= gap and words[j - gap] > value:
                words[j] = words[j - gap]
                j -= gap
            words[j] = value
        gap //= 3
    mask = len(scratch.table) - 1
    for i in range(n):
        key = words[i] + 1
        scratch.marks[key & (N_MARKS - 1)] = True
        slot = key & mask
        while scratch.table[slot] != EMPTY:
            slot = (slot + 1) & mask
        scratch.table[slot] = key
    return n


@primitive
def clear(table, marks, key):
    """Runs of the table are cleared to their ends, so that no key is left behind an empty place."""
    marks[key & (N_MARKS - 1)] = key & (N_MARKS - 1) == 0
    slot = key & (len(table) - 1)
    while table[slot] != EMPTY:
        table[slot] = EMPTY
        slot = (slot + 1) & (len(table) - 1)


# -- the walk ----------------------------------------------------------------------------------------------


@primitive
def walk(tree, rows, row, n_words, scratch, found, row_from):
    """Algorithm 1: (end of the certain, end of the doubtful, candidates, nodes).

    Stops where the candidates, each of which may be found, have no room.
    """
    box = steps_of(rows.boxes, row, tree.frame)
    n, m, candidates, nodes = row_from, row_from, np.int64(0), np.int64(0)
    n_stack, n_runs = put(tree, ROOT, 0, EVERYWHERE, scratch, np.int64(0), np.int64(0))
    while True:
        if n_stack == 0 or n_runs >= N_RUNS:
            for i in range(n_runs):
                candidates += scratch.runs[i, 1] >> 2
            if row_from + candidates > len(found.rows):
                return n, m, candidates, nodes
            n, m = gather(tree.pool, scratch, n_runs, box, found, n, m)
            nodes += n_runs
            n_runs = np.int64(0)
            if n_stack == 0:
                return n, m, candidates, nodes
        n_stack -= 1
        nodes += 1
        if scratch.stack[n_stack, 1] & 3 == KEYWORD:
            n_stack, n_runs = enter_cuts(tree, n_words, scratch, n_stack, n_runs)
        else:
            n_stack, n_runs = enter_cells(tree, box, scratch, n_stack, n_runs)


@primitive
def put(tree, part, word, region, scratch, n_stack, n_runs):
    """A part that the message meets: a leaf to read, an inner node to enter, or nothing."""
    start, what = np.int64(tree.parts[part, START]), np.int64(tree.parts[part, WHAT])
    kind = what & 3
    if kind == KEYWORD or kind == SPACE:
        stack = scratch.stack
        stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2] = start, what, word
        stack[n_stack, 3] = region
        n_stack += 1
    elif what != 0:
        runs = scratch.runs
        runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = start, what, region
        n_runs += 1
    return n_stack, n_runs


@primitive
def enter_cuts(tree, n_words, scratch, n_stack, n_runs):
    """The cuts that hold a keyword of the message, each once, from the first such keyword on (lines 5 to 10)."""
    start, what = scratch.stack[n_stack, 0], scratch.stack[n_stack, 1]
    word, region = scratch.stack[n_stack, 2], scratch.stack[n_stack, 3]
    at, end = start + PARTS, start + PARTS + (what >> 2)
    n_stack, n_runs = put(tree, start + DUMMY, word, region, scratch, n_stack, n_runs)
    while word < n_words:
        key = scratch.words[word]
        word += 1
        at = first_ending(tree.last, at, end, key)
        if at == end:
            break
        first = tree.parts[at, FIRST]
        if first <= key:
            # A cut of several keywords may be cut again at the same offset: this key is still wanted.
            again = np.int64(first < tree.last[at])
            n_stack, n_runs = put(tree, at, word - again, region, scratch, n_stack, n_runs)
            at += 1
    return n_stack, n_runs


@primitive
def first_ending(last, low, high, key):
    """The first cut from low on that does not end below the key, without a branch that depends on it."""
    n = high - low
    while n > 1:
        half = n >> 1
        low += half * np.int64(last[low + half - 1] < key)
        n -= half
    return low + np.int64(n == 1 and last[low] < key)


@primitive
def border_place(last, first, n, value):
    """The part of an axis that holds a coordinate: how many of its n - 1 inner borders do not lie above it."""
    place = np.int64(0)
    for i in range(first, first + n - 1):
        place += last[i] <= value
    return place


@primitive
def enter_cells(tree, box, scratch, n_stack, n_runs):
    """The cells that the message touches, for a point one, and the dummy cell (lines 12 to 15)."""
    first, size = scratch.stack[n_stack, 0] + PARTS, scratch.stack[n_stack, 1] >> 2
    word, region = scratch.stack[n_stack, 2], scratch.stack[n_stack, 3]
    columns, n_rows = size & 0x3FFF, size >> 14
    n_stack, n_runs = put(tree, first + DUMMY - PARTS, word, region, scratch, n_stack, n_runs)
    ys = first + columns - 1
    x0, y0 = border_place(tree.last, first, columns, box[0]), border_place(tree.last, ys, n_rows, box[1])
    if box[0] == box[2] and box[1] == box[3]:
        return put(tree, first + y0 * columns + x0, word, region, scratch, n_stack, n_runs)
    x1, y1 = border_place(tree.last, first, columns, box[2]), border_place(tree.last, ys, n_rows, box[3])
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            within = narrowed(tree.last, first, columns, n_rows, x, y, region)
            part = first + y * columns + x
            n_stack, n_runs = put(tree, part, word, within, scratch, n_stack, n_runs)
    return n_stack, n_runs


@primitive
def narrowed(last, first, columns, n_rows, x, y, region):
    """The region of a cell."""
    west, south = region & LAST_STEP, region >> FIELD & LAST_STEP
    east, north = region >> 2 * FIELD & LAST_STEP, region >> 3 * FIELD & LAST_STEP
    ys = first + columns - 1
    if x > 0:
        west = np.int64(last[first + x - 1])
    if y > 0:
        south = np.int64(last[ys + y - 1])
    if x < columns - 1:
        east = np.int64(last[first + x]) - 1
    if y < n_rows - 1:
        north = np.int64(last[ys + y]) - 1
    return west | south << FIELD | east << 2 * FIELD | north << 3 * FIELD
