"""Probing the PT-Quadtree: Algorithm 2, PT-QUADTREE-FILTER and -VERIFY (CIKM'15 4.2, Figure 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.mbr_trie import FULL
from nearcast.kernels.pivotal_quadtree import N_HINTS, NONE, ROOT, quadrants
from nearcast.kernels.pivotal_tokens import has_common
from nearcast.kernels.primitives import verify

N_PUSHED = 3  # a node taken from the stack is replaced by up to four: three more a level


class Walk(NamedTuple):
    """What a walk over the quadtree writes on."""

    stack: NDArray[np.int64]  # [N_PUSHED * height + 4, 2]  node; is it taken whatever its tokens?
    chosen: NDArray[np.int64]  # [nodes]  candidate nodes: CN of Algorithm 2
    marks: NDArray[np.bool_]  # [N_HINTS]  does the row at hand have a term with this hint?


def walk(n_nodes: int, height: int) -> Walk:
    stack = np.empty((N_PUSHED * height + 4, 2), dtype=np.int64)
    return Walk(stack, np.empty(n_nodes, dtype=np.int64), np.zeros(N_HINTS, dtype=np.bool_))


@primitive
def mark(marks, rows, row, value):
    for i in range(rows.term_from[row], rows.term_from[row + 1]):
        marks[rows.terms[i] & (N_HINTS - 1)] = value


@primitive
def filter_row(quad, lists, sets, rows, row, walk):
    """PT-QUADTREE-FILTER: nodes with a list to verify, into walk.chosen. (How many, nodes visited)."""
    low, high = rows.term_from[row], rows.term_from[row + 1]
    n_chosen, n_visited = 0, 0
    walk.stack[0, 0], walk.stack[0, 1] = ROOT, 0
    top = 1
    while top > 0:
        top -= 1
        node, taken = walk.stack[top, 0], walk.stack[top, 1]
        n_visited += 1
        if not taken:
            taken = has_common(sets, 2 * node, rows.terms, low, high)
            if not taken and not has_common(sets, 2 * node + 1, rows.terms, low, high):
                continue
        if lists.length[node] > 0:
            walk.chosen[n_chosen] = node
            n_chosen += 1
        if quad.child[node] != NONE:
            mask = quadrants(rows.boxes, row, quad.centre, node)
            for q in range(4):
                if (mask >> q) & 1:
                    walk.stack[top, 0], walk.stack[top, 1] = quad.child[node] + q, taken
                    top += 1
    return n_chosen, n_visited


@primitive
def is_point(boxes, i):
    return boxes[i, 0] == boxes[i, 2] and boxes[i, 1] == boxes[i, 3]


@primitive
def owns(quad, node, entries, entry, rows, row):
    """Does the lower-left corner of entry and message together lie in the node's cell? True for one leaf."""
    x = max(entries.boxes[entry, 0], rows.boxes[row, 0])
    y = max(entries.boxes[entry, 1], rows.boxes[row, 1])
    cell = quad.cell
    return cell[node, 0] <= x and x < cell[node, 2] and cell[node, 1] <= y and y < cell[node, 3]


@primitive
def report_run(quad, node, pool, start, end, once, marks, entries, rows, row, found, n_found):
    """PT-QUADTREE-VERIFY of part of a node's list. once: no other list has its entries.

    The hint rejects most entries for the price of two bytes of memory.
    """
    for position in range(start, end):
        entry = pool[position]
        if not marks[quad.hint[entry]] or not verify(entries, entry, rows, row):
            continue
        if once or owns(quad, node, entries, entry, rows, row):
            if n_found == len(found.rows):
                return FULL
            found.rows[n_found] = row
            found.entries[n_found] = entry
            n_found += 1
    return n_found


@primitive
def verify_row(quad, lists, entries, rows, row, once, walk, n_chosen, found, n_found):
    """PT-QUADTREE-VERIFY of the chosen nodes: (new number found or FULL, candidates)."""
    candidates = 0
    once = once or is_point(rows.boxes, row)
    mark(walk.marks, rows, row, True)
    for i in range(n_chosen):
        node = walk.chosen[i]
        start, end = lists.start[node], lists.start[node] + lists.length[node]
        candidates += end - start
        n_found = report_run(quad, node, lists.pool, start, end, once, walk.marks, entries, rows, row, found, n_found)
        if n_found == FULL:
            break
    mark(walk.marks, rows, row, False)
    return n_found, candidates


@kernel
def probe(quad, lists, sets, entries, rows, once, walk, first_row, found, counters):
    """All pairs from first_row on; (next row, number found). A row is written whole or not at all."""
    n_found = 0
    for row in range(first_row, len(rows.boxes)):
        n_chosen, n_visited = filter_row(quad, lists, sets, rows, row, walk)
        after, candidates = verify_row(quad, lists, entries, rows, row, once, walk, n_chosen, found, n_found)
        if after == FULL:
            return row, n_found
        n_found = after
        counters[CANDIDATES] += candidates
        counters[NODES] += n_visited
    return len(rows.boxes), n_found
