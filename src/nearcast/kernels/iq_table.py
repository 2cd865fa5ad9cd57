"""The inverted files of all cells of an IQ-Tree: one hash table, (cell, term) to posting list, linear probing.

A place of the table is a row of int32: head of the list (see `postings`), cell (NO_CELL: the place is free), term.
The number of places is a power of two, and at least two fifths of them are free.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive

CELL, TERM = 3, 4  # columns, after those of a head
N_COLUMNS = 5
NO_CELL = 0


@primitive
def home_of(lists, cell, term):
    """Below 2**62 for all 31-bit terms and codes of MAX_DEPTH: the same in plain Python, which never wraps."""
    mixed = np.int64(cell) * 0x9E3779B1 + np.int64(term) * 0x45D9F3B5
    return (mixed ^ (mixed >> 23)) & (len(lists) - 1)


@primitive
def find(lists, cell, term):
    """Place of a list in the table, or the free place where it belongs."""
    at = home_of(lists, cell, term)
    while lists[at, CELL] != NO_CELL and (lists[at, CELL] != cell or lists[at, TERM] != term):
        at = (at + 1) & (len(lists) - 1)
    return at


@primitive
def erase(lists, at):
    """Free a place. Lists behind it that found it taken move up, so that `find` never stops too early."""
    last, hole = len(lists) - 1, at
    while True:
        at = (at + 1) & last
        if lists[at, CELL] == NO_CELL:
            lists[hole, CELL] = NO_CELL
            return
        home = home_of(lists, lists[at, CELL], lists[at, TERM])
        if (at - home) & last >= (at - hole) & last:
            copy_place(lists, at, lists, hole)
            hole = at


@primitive
def copy_place(source, i, target, j):
    for column in range(N_COLUMNS):
        target[j, column] = source[i, column]


@kernel
def rehash(old, new):
    """Move all lists to a larger table."""
    for i in range(len(old)):
        if old[i, CELL] != NO_CELL:
            copy_place(old, i, new, find(new, old[i, CELL], old[i, TERM]))
