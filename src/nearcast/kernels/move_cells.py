"""Live messages in lists of (quadtree cell, term): the message index of `iq+`, `rq+`, `ss`, `kk` (VLDBJ'17 5.2.1).

One hash table leads from (cell, term) to a list of postings (see `iq_table`, `postings`), here of messages. A message
is in the cell of each *level* that its term is kept on: one level for a grid file (`ss`, `kk`); for a quadtree those
that a subscription with this key was ever put on, and always the root, from which a new level is filled. A message
that is no point is in the WIDE list of each term.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.iq_table import CELL, NO_CELL, TERM, erase, find
from nearcast.kernels.iq_tree import cells_of
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.move_layout import differs, has_terms
from nearcast.kernels.postings import (
    BOX,
    COUNT,
    GUARDS,
    KLASS,
    NO_RUN,
    START,
    TOP,
    WHAT,
    append,
    copy_posting,
    cut_to,
    grow,
    is_full,
    pack_entry,
    pack_message,
    unpack_entry,
)
from nearcast.kernels.quadtree import BITS, ROOT, cell_at, level_of, steps
from nearcast.kernels.ranked import key_of

WIDE = 2  # a code that no cell has
DONE, FULL = 0, 1


class Cells(NamedTuple):
    lists: NDArray[np.int32]  # [2**k, 5]  see `iq_table`
    levels: NDArray[np.int32]  # [terms]  bit l: messages with the term are in the cells of level l
    counts: NDArray[np.int32]  # [terms]  messages with the term
    state: NDArray[np.int64]  # [2]  lists in use; level of a grid file, or NO_RUN for a quadtree


@primitive
def has_room(cells, postings, lists, elements):
    if 5 * (cells.state[0] + lists) > 3 * len(cells.lists):
        return False
    return postings.state[TOP] + elements <= len(postings.pool)


@primitive
def post(cells, postings, code, term, box, row):
    """There is room."""
    at = find(cells.lists, code, term)
    if cells.lists[at, CELL] == NO_CELL:
        cells.lists[at, CELL], cells.lists[at, TERM] = code, term
        cells.lists[at, COUNT], cells.lists[at, KLASS] = 0, NO_RUN
        cells.state[0] += 1
    if is_full(cells.lists, at):
        grow(postings, cells.lists, at)
    append(postings, cells.lists, at, box, row)


@primitive
def is_point(box):
    return box[0] == box[2] and box[1] == box[3]


@primitive
def levels_in(levels, depth):
    n = np.int64(1)
    for level in range(depth + 1):
        n += (levels >> level) & 1
    return n


@kernel
def put(cells, postings, grid, rows, numbers, progress):
    """Post messages from progress = (row, term) on; FULL where room ran out: the lists and elements needed follow."""
    for i in range(progress[0], len(numbers)):
        row = numbers[i]
        box = steps(grid, rows.boxes, row)
        packed = pack_message(box)
        low = np.int64(rows.term_from[row])
        for at in range(low + progress[1], low + rows.term_count[row]):
            term = np.int64(rows.terms[at])
            n_levels = levels_in(cells.levels[term], grid.depth[0])
            elements = 2 * n_levels * (np.int64(cells.counts[term]) + 1)  # a list that is full doubles
            if not has_room(cells, postings, n_levels, elements):
                progress[0], progress[1], progress[2], progress[3] = i, at - low, n_levels, elements
                return FULL
            cells.counts[term] += 1
            if not is_point(box):
                post(cells, postings, np.int64(WIDE), term, packed, row)
                continue
            for level in range(grid.depth[0] + 1):
                if (cells.levels[term] >> level) & 1:
                    post(cells, postings, cell_at(level, box[0], box[1]), term, packed, row)
        progress[1] = 0
    progress[0] = len(numbers)
    return DONE


@kernel
def lists_with(cells, grid, rows, numbers, targets):
    """Places of all lists that have these messages, each as often as it has one; how many. Counts go down."""
    n = np.int64(0)
    for i in range(len(numbers)):
        row = numbers[i]
        box = steps(grid, rows.boxes, row)
        low = np.int64(rows.term_from[row])
        for at in range(low, low + rows.term_count[row]):
            term = np.int64(rows.terms[at])
            cells.counts[term] -= 1
            if not is_point(box):
                targets[n] = find(cells.lists, WIDE, term)
                n += 1
                continue
            for level in range(grid.depth[0] + 1):
                if (cells.levels[term] >> level) & 1:
                    targets[n] = find(cells.lists, cell_at(level, box[0], box[1]), term)
                    n += 1
    return n


@kernel
def sweep(cells, postings, targets, is_gone, emptied):
    """Take the messages that are gone out of lists, each list once; lists without any go. emptied: int64 [*, 2]."""
    n = 0
    for i in range(len(targets)):
        at = targets[i]
        start, count = np.int64(cells.lists[at, START]), np.int64(cells.lists[at, COUNT])
        kept = start
        for p in range(start, start + count):
            if not is_gone[postings.pool[p, WHAT]]:
                copy_posting(postings, p, kept)
                kept += 1
        cut_to(postings, cells.lists, at, kept - start)
        if kept == start:
            emptied[n, 0], emptied[n, 1] = cells.lists[at, CELL], cells.lists[at, TERM]
            n += 1
    for i in range(n):  # at the end: others move up in the table
        erase(cells.lists, find(cells.lists, emptied[i, 0], emptied[i, 1]))
    cells.state[0] -= n


@primitive
def cover(cells, grid, ranks, box, key, weight, desk):
    """Cells of a box, whose codes are then in desk.cells: of a grid file all that it meets, else the cheapest."""
    level = cells.state[1]
    if box[0] > box[2]:
        return np.int64(0)
    if level == NO_RUN:
        return cells_of(grid, ranks, box, key, weight, desk)
    n, shift = np.int64(0), BITS - level
    for y in range(box[1] >> shift, (box[3] >> shift) + 1):
        for x in range(box[0] >> shift, (box[2] >> shift) + 1):
            desk.cells[n] = cell_at(level, x << shift, y << shift)
            n += 1
    return n


@kernel
def open_levels(cells, postings, grid, ranks, entries, numbers, boxes, weight, desk, progress):
    """Fill the levels that boxes of entries come to for the first time, from progress[0] on; see `put`."""
    for i in range(progress[0], len(numbers)):
        key = key_of(ranks, entries, numbers[i])[0]
        if key >= len(cells.levels):
            continue
        for j in range(cover(cells, grid, ranks, steps(grid, boxes, i), key, weight, desk)):
            level = level_of(desk.cells[j])
            if (cells.levels[key] >> level) & 1:
                continue
            count = np.int64(cells.counts[key])
            if not has_room(cells, postings, count, 4 * count + 4):
                progress[0], progress[2], progress[3] = i, count, 4 * count + 4
                return FULL
            cells.levels[key] |= np.int32(1) << np.int32(level)
            fill_level(cells, postings, key, level)
    return DONE


@primitive
def fill_level(cells, postings, key, level):
    root = find(cells.lists, ROOT, key)
    if cells.lists[root, CELL] == NO_CELL:
        return
    start = np.int64(cells.lists[root, START])
    for p in range(start, start + cells.lists[root, COUNT]):
        packed, row = postings.pool[p, BOX], postings.pool[p, WHAT]
        x, y = unpack_entry(packed & ~GUARDS)[:2]  # of a point; packed the other way round, east and north come first
        post(cells, postings, cell_at(level, x, y), key, packed, row)


@primitive
def is_inside(code, level, box):
    """Is a cell off the border of a box of steps?"""
    x, y = np.int64(0), np.int64(0)
    for shift in range(2 * level - 2, -1, -2):
        x, y = (x << 1) | ((code >> shift) & 1), (y << 1) | ((code >> shift >> 1) & 1)
    width = BITS - level
    west, south, last = x << width, y << width, (np.int64(1) << width) - 1
    return box[0] < west and box[1] < south and west + last < box[2] and south + last < box[3]


@primitive
def look_through(cells, postings, at, entries, entry, sign, old, new, i, query, rows, out, n):
    """Append messages of a list that only the new box has (sign 1) or only the old one; -1 without room."""
    start = np.int64(cells.lists[at, START])
    for p in range(start, start + cells.lists[at, COUNT]):
        if (postings.pool[p, BOX] - query) & GUARDS != GUARDS:
            continue
        row = postings.pool[p, WHAT]
        if differs(old, new, i, rows, row) != sign or not has_terms(entries, entry, rows, row):
            continue
        if n == len(out.rows):
            return np.int64(-1)
        out.moves[n], out.rows[n], out.entered[n] = i, row, sign > 0
        n += 1
    return n


@kernel
def differ(cells, postings, grid, ranks, entries, numbers, old, new, first, weight, desk, rows, out, counters):
    """Messages that entries gain and lose, from `first` on: (how far it came, how many); see Algorithm 6.

    Cells inside both boxes are left out (case 1); those of the new box may give, those of the old one take.
    """
    n = np.int64(0)
    for i in range(first, len(numbers)):
        before, entry = n, numbers[i]
        candidates, nodes = counters[CANDIDATES], counters[NODES]
        key = key_of(ranks, entries, entry)[0]
        if key >= len(cells.counts) or cells.counts[key] == 0:
            continue
        was, comes = steps(grid, old, i), steps(grid, new, i)
        for sign in (1, -1):
            box = comes if sign > 0 else was
            if box[0] > box[2]:
                continue
            query = pack_entry(box)
            n_cells = cover(cells, grid, ranks, box, key, weight, desk)
            desk.cells[n_cells] = WIDE
            for j in range(n_cells + 1):
                code = desk.cells[j]
                if n < 0 or (j < n_cells and is_unchanged(code, was, comes)):
                    continue
                at = find(cells.lists, code, key)
                counters[NODES] += 1
                if cells.lists[at, CELL] != NO_CELL:
                    counters[CANDIDATES] += cells.lists[at, COUNT]
                    n = look_through(cells, postings, at, entries, entry, sign, old, new, i, query, rows, out, n)
        if n < 0:
            counters[CANDIDATES], counters[NODES] = candidates, nodes
            return i, before
    return len(numbers), n


@primitive
def is_unchanged(code, was, comes):
    level = level_of(code)
    return is_inside(code, level, was) and is_inside(code, level, comes)
