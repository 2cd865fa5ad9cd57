"""RQ-Tree: keyword first. A list per ranked key, and a quadtree in each list that is long (VLDBJ'17 5.1.1).

Here: the layout, matching and removing. Inserting and splitting are in `rq_insert`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.harvest import N_RUNS, add_run, finish, gather, mark
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.postings import COUNT, START, forget
from nearcast.kernels.quadtree import ROOT, halves, steps
from nearcast.kernels.ranked import key_of

CHILD = 3  # column of a cell, after those of a head
N_COLUMNS = 4
NO_CELL = -1


class Tree(NamedTuple):
    """The quadtrees of all lists. A cell does not know where it lies: whoever walks to it does."""

    roots: NDArray[np.int32]  # [terms]  cell, or NO_CELL: no entry was posted under the term since the build
    cells: NDArray[np.int32]  # [n, 4]  head of its posting list; first of four children or NO_CELL
    n_cells: NDArray[np.int64]  # [1]  cells in use


@kernel
def probe(tree, postings, grid, entries, rows, first_row, marks, stack, runs, found, counters):
    """Append all (row, entry) pairs from first_row on. Returns (next row, number found); see `scan.probe`."""
    n_found = np.int64(0)
    for row in range(first_row, len(rows.boxes)):
        mark(marks, rows, row, True)
        n, m, candidates, nodes = visit(tree, postings.pool, grid, rows, row, marks, stack, runs, found, n_found)
        mark(marks, rows, row, False)
        if n_found + candidates > len(found.rows):
            return row, n_found
        n_found = finish(entries, rows, row, found, n_found, n, m, runs)
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found


@primitive
def visit(tree, pool, grid, rows, row, marks, stack, runs, found, row_from):
    """The lists of the message's terms, and in each the cells it meets.

    Returns (end of the certain, end of the doubtful, candidates, cells). Stops where the candidates, each of
    which may be found, have no room.
    """
    n, m, candidates, nodes, n_runs = row_from, row_from, np.int64(0), np.int64(0), np.int64(0)
    box = steps(grid, rows.boxes, row)
    for i in range(rows.term_from[row], rows.term_from[row + 1]):
        term = rows.terms[i]
        if term >= len(tree.roots) or tree.roots[term] == NO_CELL:
            continue
        n_open = begin(stack, tree.roots[term])
        while n_open > 0:
            n_open -= 1
            at = stack[n_open, 0]
            candidates += tree.cells[at, COUNT]
            nodes += 1
            if row_from + candidates > len(found.rows):
                return n, m, candidates, nodes
            if n_runs == N_RUNS:
                n, m = gather(pool, runs, n_runs, box, marks, found, n, m)
                n_runs = np.int64(0)
            n_runs = add_run(
                runs,
                n_runs,
                np.int64(tree.cells[at, START]),
                np.int64(tree.cells[at, COUNT]),
                stack[n_open, 1],
                stack[n_open, 4],
            )
            n_open = spread(tree, box, stack, n_open)
    n, m = gather(pool, runs, n_runs, box, marks, found, n, m)
    return n, m, candidates, nodes


@kernel
def remove(tree, postings, grid, ranks, entries, chosen, stack):
    """Take the chosen entries out of every cell that their boxes meet."""
    for i in range(len(chosen)):
        entry = chosen[i]
        key, what = key_of(ranks, entries, entry)
        box = steps(grid, entries.boxes, entry)
        n_open = begin(stack, tree.roots[key])
        while n_open > 0:
            n_open -= 1
            forget(postings, tree.cells, stack[n_open, 0], what)
            n_open = spread(tree, box, stack, n_open)


@primitive
def begin(stack, root):
    """A row of the stack is an open cell: its number, level, x, y, code."""
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = root, 0, 0, 0, ROOT
    return 1


@primitive
def spread(tree, box, stack, at):
    """Replace the cell in row `at`, the last of the stack, by its children that the box meets."""
    first = np.int64(tree.cells[stack[at, 0], CHILD])
    if first == NO_CELL:
        return at
    level, x, y, code = stack[at, 1], stack[at, 2], stack[at, 3], stack[at, 4]
    x0, x1 = halves(box[0], box[2], level, x)
    y0, y1 = halves(box[1], box[3], level, y)
    for north in range(y0, y1 + 1):
        for east in range(x0, x1 + 1):
            stack[at, 0] = first + 2 * north + east
            stack[at, 1], stack[at, 2], stack[at, 3] = level + 1, (x << 1) + east, (y << 1) + north
            stack[at, 4] = (code << 2) + 2 * north + east
            at += 1
    return at
