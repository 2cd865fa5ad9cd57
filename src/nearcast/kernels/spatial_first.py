"""KDD'13 2.2, spatial-first: an R-tree gives what overlaps, then words are verified."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.primitives import contains_all
from nearcast.kernels.rtree import HEIGHT, ROOT, USED, meets
from nearcast.kernels.sieve import SIEVE, set_sieve

NO_ROOM = -1


class Scratch(NamedTuple):
    """Working room of a walk, made by the caller."""

    stack: NDArray[np.int32]  # [height × (B + 1)]  nodes still to be visited
    sieve: NDArray[np.bool_]  # [SIEVE]


@primitive
def has_terms(entries, entry, rows, row):
    """Does the row have all terms of an entry?"""
    low = entries.term_from[entry]
    high = low + entries.term_count[entry]
    return contains_all(entries.terms, low, high, rows.terms, rows.term_from[row], rows.term_from[row + 1])


@primitive
def append(found, n_found, row, entry):
    """Append a pair; False if there is no room."""
    if n_found == len(found.rows):
        return False
    found.rows[n_found] = row
    found.entries[n_found] = entry
    return True


@primitive
def _verify_leaf(tree, leaf, entries, sieve, rows, row, found, n_found):
    """Append the entries of a leaf that the row satisfies. (number found or NO_ROOM, number overlapping)."""
    boxes, guards, place = tree.boxes[leaf], tree.guard[leaf], rows.boxes[row]
    west, south, east, north = place[0], place[1], place[2], place[3]
    overlapping = 0
    for i in range(tree.nodes[leaf, USED]):
        if not meets(boxes, i, west, south, east, north):
            continue
        overlapping += 1
        if sieve[guards[i] & (SIEVE - 1)] and has_terms(entries, tree.child[leaf, i], rows, row):
            if not append(found, n_found, row, tree.child[leaf, i]):
                return NO_ROOM, overlapping
            n_found += 1
    return n_found, overlapping


@primitive
def _push_overlapping(tree, node, rows, row, stack, depth):
    """Put the children of a node that overlap the row on the stack; its new depth."""
    boxes, place = tree.boxes[node], rows.boxes[row]
    west, south, east, north = place[0], place[1], place[2], place[3]
    for i in range(tree.nodes[node, USED]):
        if meets(boxes, i, west, south, east, north):
            stack[depth] = tree.child[node, i]
            depth += 1
    return depth


@kernel
def probe(tree, entries, scratch, rows, first_row, found, counters):
    """Append all (row, entry) pairs from first_row on. Candidates are the entries whose box overlaps."""
    stack, n_found = scratch.stack, 0
    for row in range(first_row, len(rows.boxes)):
        row_from, candidates, nodes = n_found, 0, 0
        set_sieve(scratch.sieve, rows, row, True)
        stack[0], depth = tree.state[ROOT], 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            nodes += 1
            if tree.nodes[node, HEIGHT] > 0:
                depth = _push_overlapping(tree, node, rows, row, stack, depth)
                continue
            n_found, overlapping = _verify_leaf(tree, node, entries, scratch.sieve, rows, row, found, n_found)
            if n_found == NO_ROOM:
                set_sieve(scratch.sieve, rows, row, False)
                return row, row_from
            candidates += overlapping
        set_sieve(scratch.sieve, rows, row, False)
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found
