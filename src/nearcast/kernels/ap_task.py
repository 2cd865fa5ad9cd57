"""A node to be built, what decides how, and the scratch for it: shared by construction and changes of AP-Trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ap_cost import DP_POSITIONS, Best, Line
from nearcast.kernels.ap_layout import (
    BORN,
    BOX,
    BUILT,
    CHANGED,
    DUMMY,
    ENTRY,
    FINE,
    FIRST,
    KEYWORD,
    LAST_STEP,
    LEAF,
    OFFSET,
    OPEN,
    PARTS,
    ROOT,
    START,
    WEIGHT,
    kind_of,
    pack_entry,
    set_node,
    size_of,
    steps_of,
)
from nearcast.kernels.jit import primitive, shared
from nearcast.kernels.sorting import DIGITS

# Columns of a task. LOW, HIGH: its entries in `work`. PROVEN: bit i is set when a cut of one keyword has proven
# the keyword at offset i. WEST to NORTH: the node's region in steps, all included.
NODE, LOW, HIGH, NEXT_OFFSET, DEPTH, ALLOWED, PROVEN, WEST, SOUTH, EAST, NORTH = range(11)
N_TASK = 11

BY_KEYWORD, BY_SPACE = 1, 2  # bits of ALLOWED: Algorithm 4's kP and sP
ADAPTIVE, KEYWORD_FIRST, SPACE_FIRST, TRIE = 0, 1, 2, 3  # Plan.priority

SAMPLE = 1024  # entries that a space partition looks at
SEEN = 512  # places of messages that a space partition looks at
PROVABLE = 60  # offsets that PROVEN has bits for


class Plan(NamedTuple):
    fanout: int  # f
    threshold: int  # θp: a larger leaf is divided
    divergence: float  # θKL: a node that has changed more is built again
    priority: int
    optimal: bool  # keyword partition by dynamic programming
    rare_first: bool  # order of keywords
    recut: bool  # a cut of several keywords may be cut again at the same offset
    chances: NDArray[np.float64]  # [*]  share of messages with a key, from MIDDLE_KEY on
    places: NDArray[np.int64]  # [*, 2]  of messages, in steps, in no order
    velocity: NDArray[np.float64]  # [*, 2]  by entry, units in a timestamp; empty: nothing moves
    rates: NDArray[np.float64]  # [3]  MESSAGES and UPDATES of an entry in a timestamp, LATEST reconstruction


MESSAGES, UPDATES, LATEST = 0, 1, 2


class Desk(NamedTuple):
    """Scratch of a construction; kernels cannot allocate."""

    task: NDArray[np.int64]  # [N_TASK]  the one at work
    packs: NDArray[np.int64]  # [3, *]  key << 32 | entry; coordinates; spare room for sorting
    line: Line
    borders: NDArray[np.int64]  # [3, *]  XS, YS: coordinates; CUT: rows of packs
    spans: NDArray[np.int64]  # [SAMPLE, 4]  boxes in the region of the task
    seen: NDArray[np.int64]  # [SEEN, 2]  places of messages there
    counts: NDArray[np.int64]  # [*]  of digits, or of cells
    best: Best


XS, YS, CUT = 0, 1, 2


def make_desk(largest: int, fanout: int, optimal: bool) -> Desk:
    """Room for tasks of so many entries."""
    n = max(largest, 2 * SAMPLE, SEEN, fanout) + 3
    size, parts = (DP_POSITIONS + fanout + 2, fanout + 1) if optimal else (1, 1)
    at, mass, begun, ended = (np.empty(n, dtype=np.int64) for _ in range(4))
    line = Line(at, mass, begun, ended, np.empty(n))
    return Desk(
        np.empty(N_TASK, dtype=np.int64),
        np.empty((3, n), dtype=np.int64),
        line,
        np.empty((3, n), dtype=np.int64),
        np.empty((SAMPLE, 4), dtype=np.int64),
        np.empty((SEEN, 2), dtype=np.int64),
        np.empty(max(DIGITS, 6 * (fanout + 4)), dtype=np.int64),
        Best(np.empty(size, dtype=np.int64), np.empty((2, size)), np.empty((parts, size), dtype=np.int32)),
    )


@primitive
def least_size(plan):
    """A leaf of so many entries stays a leaf. The trie of Trie-Qd tells any two keyword sets apart."""
    return 1 if plan.priority == TRIE else plan.threshold


@shared
def root_task(task: NDArray[np.int64], n: int) -> None:
    """The root, for n entries."""
    task[NODE], task[LOW], task[HIGH], task[NEXT_OFFSET], task[DEPTH] = ROOT, 0, n, 0, 0
    task[ALLOWED], task[PROVEN] = BY_KEYWORD | BY_SPACE, 0
    task[WEST], task[SOUTH], task[EAST], task[NORTH] = 0, 0, LAST_STEP, LAST_STEP


@primitive
def child_task(tree, recut, parent, part, low, high, child):
    """The task for a part of a node, from the node's own."""
    for i in range(N_TASK):
        child[i] = parent[i]
    child[NODE], child[LOW], child[HIGH] = part, low, high
    child[DEPTH] = parent[DEPTH] + 1
    node = parent[NODE]
    start = np.int64(tree.parts[node, START])
    is_dummy = part == start + DUMMY
    if kind_of(tree, node) == KEYWORD:
        if is_dummy:  # keywords are exhausted
            child[ALLOWED] &= ~BY_KEYWORD
            return
        offset = np.int64(tree.parts[start, OFFSET])
        is_one = tree.parts[part, FIRST] == tree.last[part]
        child[NEXT_OFFSET] = offset if recut and not is_one else offset + 1
        if is_one and offset < PROVABLE:
            child[PROVEN] |= np.int64(1) << offset
    elif is_dummy:  # boxes hold the whole region
        child[ALLOWED] &= ~BY_SPACE
    else:
        cell_region(tree, node, part - start - PARTS, child[WEST : NORTH + 1])


@primitive
def cell_region(tree, node, cell, region):
    """Narrow the region of a space node to that of a cell. The outer cells end where the node does."""
    size = size_of(tree, node)
    columns, rows = size & 0x3FFF, size >> 14
    xs = np.int64(tree.parts[node, START]) + PARTS
    ys = xs + columns - 1
    x, y = cell % columns, cell // columns
    if x > 0:
        region[0] = tree.last[xs + x - 1]
    if y > 0:
        region[1] = tree.last[ys + y - 1]
    if x < columns - 1:
        region[2] = tree.last[xs + x] - 1
    if y < rows - 1:
        region[3] = tree.last[ys + y] - 1


@primitive
def open_node(tree, node, kind, start, size, n_parts, weight, offset, limit):
    """An inner node with a header and empty parts, leaves that may grow up to a limit."""
    set_node(tree, node, kind, start, size)
    tree.care[node] = FINE
    tree.parts[start, WEIGHT] = weight
    tree.parts[start, BUILT] = weight
    tree.parts[start, CHANGED] = 0
    tree.parts[start, OFFSET] = offset
    for row in range(start + DUMMY, start + PARTS + n_parts):
        set_node(tree, row, LEAF, 0, 0)
        tree.parts[row, BORN] = 0
        tree.care[row] = limit


@primitive
def write_element(tree, plan, at, entries, keys, entry, proven):
    """One entry in a leaf, with the rarest of the keys that the path leaves open."""
    start, n = entries.term_from[entry], np.int64(entries.term_count[entry])
    key, n_open = np.int64(0), 0
    for i in range(n):
        offset = i if plan.rare_first else n - 1 - i
        if offset >= PROVABLE or (proven >> offset) & 1 == 0:
            if n_open == 0:
                key = np.int64(keys[start + offset]) + 1
            n_open += 1
    tree.pool[at, BOX] = pack_entry(steps_of(entries.boxes, entry, tree.frame))
    tree.pool[at, ENTRY] = key << 32 | np.int64(entry) | (OPEN if n_open > 1 else 0)
