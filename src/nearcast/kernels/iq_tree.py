"""IQ-Tree: space first. A quadtree whose cells have a ranked-key inverted file each (VLDBJ'17 3.1).

The quadtree is linear: a cell exists where its code has postings. The inverted files of all cells share one
hash table, (cell, term) to posting list: see `iq_table`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.harvest import N_RUNS, add_run, finish, gather, mark
from nearcast.kernels.iq_table import CELL, NO_CELL, TERM, erase, find, home_of
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.postings import (
    COUNT,
    KLASS,
    NO_RUN,
    START,
    append,
    forget,
    grow,
    is_full,
    pack_entry,
)
from nearcast.kernels.quadtree import ROOT, associate, cell_at, halves, level_of, steps
from nearcast.kernels.ranked import key_of, place_of

DONE, POOL_FULL, TABLE_FULL = range(3)  # outcomes of `insert`


class Tree(NamedTuple):
    lists: NDArray[np.int32]  # [2**k, 5]  head, cell (NO_CELL: free place), term; by hash
    inside: NDArray[np.int32]  # [2 * 4**depth]  by code: lists in the cell and below it
    levels: NDArray[np.int32]  # [terms]  bit l set: the term has had a list at level l since the last build
    n_lists: NDArray[np.int64]  # [1]


@kernel
def insert(tree, postings, grid, ranks, entries, chosen, desk, weight, progress):
    """Post the chosen entries, from progress = (entry, cell) on. Stops where room runs out.

    `weight` is the cost of a copy in verifications per message. A message pays chance(key) * share(cell) for
    a posting; divided by the chance, a copy costs weight / chance. The paper gives no formula (docs/papers).
    """
    for i in range(progress[0], len(chosen)):
        entry = chosen[i]
        key, what = key_of(ranks, entries, entry)
        box = steps(grid, entries.boxes, entry)
        end = cells_of(grid, ranks, box, key, weight, desk)
        if 5 * (tree.n_lists[0] + end) > 3 * len(tree.lists):
            progress[0] = i
            return TABLE_FULL
        for j in range(progress[1], end):
            at = list_of(tree, desk.cells[j], key)
            if is_full(tree.lists, at) and not grow(postings, tree.lists, at):
                progress[0], progress[1] = i, j
                return POOL_FULL
            append(postings, tree.lists, at, pack_entry(box), what)
        progress[1] = 0
    progress[0] = len(chosen)
    return DONE


@primitive
def cells_of(grid, ranks, box, key, weight, desk):
    """Number of cells of an entry's box, whose codes are then in desk.cells. Fixed until the next build."""
    price = weight / ranks.chance[place_of(ranks, key)]
    whole = (np.int64(0), np.int64(0), np.int64(0), np.int64(ROOT))
    return associate(grid, box, whole, price, desk, 0)[0]


@primitive
def list_of(tree, code, key):
    """Place of a list, made if there is none."""
    at = find(tree.lists, code, key)
    if tree.lists[at, CELL] == NO_CELL:
        tree.lists[at, CELL], tree.lists[at, TERM] = code, key
        tree.lists[at, COUNT], tree.lists[at, KLASS] = 0, NO_RUN
        tree.levels[key] |= np.int32(1) << np.int32(level_of(code))
        count_list(tree, code, 1)
    return at


@kernel
def remove(tree, postings, grid, ranks, entries, chosen, desk, weight):
    """Take the chosen entries out of all their cells."""
    for i in range(len(chosen)):
        entry = chosen[i]
        key, what = key_of(ranks, entries, entry)
        box = steps(grid, entries.boxes, entry)
        for j in range(cells_of(grid, ranks, box, key, weight, desk)):
            at = find(tree.lists, desk.cells[j], key)
            forget(postings, tree.lists, at, what)
            if tree.lists[at, COUNT] == 0:
                erase(tree.lists, at)
                count_list(tree, desk.cells[j], -1)


@primitive
def count_list(tree, code, change):
    """A list more or less: in its cell and all cells around it."""
    tree.n_lists[0] += change
    while code > 0:
        tree.inside[code] += change
        code >>= 2


@kernel
def probe(tree, postings, grid, entries, rows, first_row, marks, stack, words, runs, found, counters):
    """Append all (row, entry) pairs from first_row on. Returns (next row, number found); see `scan.probe`."""
    n_found = np.int64(0)
    for row in range(first_row, len(rows.boxes)):
        n_words = known_words(tree, rows, row, words)
        box = steps(grid, rows.boxes, row)
        mark(marks, rows, row, True)
        n, m, candidates, nodes = visit(
            tree, postings.pool, grid, box, marks, stack, words[:n_words], runs, found, n_found
        )
        mark(marks, rows, row, False)
        if n_found + candidates > len(found.rows):
            return row, n_found
        n_found = finish(entries, rows, row, found, n_found, n, m, runs)
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found


@primitive
def known_words(tree, rows, row, words):
    """The message's terms that have a list somewhere: words[i] = (term, levels of its lists). Their number."""
    n = 0
    for i in range(rows.term_from[row], rows.term_from[row + 1]):
        term = np.int64(rows.terms[i])
        if term < len(tree.levels) and tree.levels[term] != 0:
            words[n, 0], words[n, 1] = term, tree.levels[term]
            n += 1
    return n


@primitive
def visit(tree, pool, grid, box, marks, stack, words, runs, found, row_from):
    """All cells that the message meets, from the root down, and in each the lists of its terms.

    Returns (end of the certain, end of the doubtful, candidates, lists). Stops where the candidates, each of
    which may be found, have no room.
    """
    touch_lists(tree, grid, box, words, runs)
    n, m, candidates, nodes, n_runs = row_from, row_from, np.int64(0), np.int64(0), np.int64(0)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, 0, ROOT
    n_open = min(len(words), 1)
    while n_open > 0:
        n_open -= 1
        level, code = stack[n_open, 0], stack[n_open, 3]
        for i in range(len(words)):
            if not (words[i, 1] >> level) & 1:
                continue
            at = find(tree.lists, code, words[i, 0])
            if tree.lists[at, CELL] == NO_CELL:
                continue
            start, count = np.int64(tree.lists[at, START]), np.int64(tree.lists[at, COUNT])
            candidates += count
            nodes += 1
            if row_from + candidates > len(found.rows):
                return n, m, candidates, nodes
            if n_runs == N_RUNS:
                n, m = gather(pool, runs, n_runs, box, marks, found, n, m)
                n_runs = np.int64(0)
            n_runs = add_run(runs, n_runs, start, count, level, code)
        n_open = spread(tree, grid, box, stack, n_open)
    n, m = gather(pool, runs, n_runs, box, marks, found, n, m)
    return n, m, candidates, nodes


@primitive
def touch_lists(tree, grid, box, words, runs):
    """See `harvest.touch`: where the lists along the path of the message's lower left corner are in the table."""
    total = np.int64(0)
    smallest = cell_at(grid.depth[0], box[0], box[1])
    for level in range(grid.depth[0] + 1):
        code = smallest >> 2 * (grid.depth[0] - level)
        if tree.inside[code] == 0:
            break
        for i in range(len(words)):
            if (words[i, 1] >> level) & 1:
                total ^= tree.lists[home_of(tree.lists, code, words[i, 0]), CELL]
    runs[N_RUNS, 0] = total


@primitive
def spread(tree, grid, box, stack, at):
    """Replace the cell in row `at`, the last of the stack, by its children that the box meets."""
    level, x, y, code = stack[at, 0], stack[at, 1], stack[at, 2], stack[at, 3]
    if level == grid.depth[0]:
        return at
    x0, x1 = halves(box[0], box[2], level, x)
    y0, y1 = halves(box[1], box[3], level, y)
    for north in range(y0, y1 + 1):
        for east in range(x0, x1 + 1):
            child = (code << 2) + 2 * north + east
            if tree.inside[child] > 0:
                stack[at, 0], stack[at, 1], stack[at, 2] = level + 1, (x << 1) + east, (y << 1) + north
                stack[at, 3] = child
                at += 1
    return at
