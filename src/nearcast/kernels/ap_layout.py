"""The arrays of an AP-Tree (VLDBJ'17 3.2.2), how boxes are packed into them, and where rows come from.

A node is a row of `parts` and of the arrays beside it; the root is row 0. An inner node owns a run of rows: a
header, the dummy cut or cell, then one row for each cut, or each cell row by row. A leaf owns a run of `pool`. The
capacity of a run follows from the number of rows in use, so it need not be kept; free runs are chained by capacity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive

NOTHING = -1
ROOT = 0

# Columns of Tree.parts. FIRST key of a cut; START of the run; WHAT: kind | size << 2; size: elements, cuts, or
# columns | rows << 14; BORN: weight when the parent was built.
FIRST, START, WHAT, BORN = 0, 1, 2, 3
LEAF, KEYWORD, SPACE, SURE = 0, 1, 2, 3
"""Kinds. SURE is a leaf whose elements the path has proven but for their boxes; an empty part is an empty LEAF."""

# Columns of a header. WEIGHT: entries below, each once; BUILT: WEIGHT when the node was built; CHANGED:
# insertions and removals since; OFFSET: which of an entry's ordered keywords is cut.
WEIGHT, BUILT, CHANGED, OFFSET = 0, 1, 2, 3
DUMMY, PARTS = 1, 2  # rows of a run: the dummy part, the first cut or cell

# Tree.care of a leaf: the size above which it is due to be divided (DUE: whatever its size); of an inner node:
# FINE, or DUE, or BELOW: some node below is due.
DUE, FINE, BELOW = -1, 0, 1

# Columns of Tree.pool. BOX: see `pack_entry`. ENTRY: entry | OPEN | (key + 1) << 32, a key that the path has
# not proven (0: all are), the rarest; OPEN: there are more of them.
BOX, ENTRY = 0, 1
OPEN = 1 << 31
ENTRY_MASK = OPEN - 1

N_CLASSES = 40
# Tree.state: the first free run of each class, then the first row never used, of parts and of pool.
PART_RUNS, POOL_RUNS, HEIGHT = 0, N_CLASSES + 1, 2 * N_CLASSES + 2
N_STATE = HEIGHT + 1


class Tree(NamedTuple):
    parts: NDArray[np.int32]  # [*, 4]  see above
    last: NDArray[np.int32]  # [*]     beside parts: last key of a cut; from a space node's first cell on its
    #                                   x borders, then its y borders
    care: NDArray[np.int32]  # [*]     beside parts: what only changes need
    pool: NDArray[np.int64]  # [*, 2]  elements of leaves
    state: NDArray[np.int64]  # [N_STATE]
    frame: NDArray[np.float64]  # [4]  west, south of everything; steps per unit of x and of y


def empty_tree(n_parts: int, n_elements: int, frame: NDArray[np.float64]) -> Tree:
    """A root that is an empty leaf, and room for more."""
    state = np.full(N_STATE, NOTHING, dtype=np.int64)
    state[PART_RUNS + N_CLASSES], state[POOL_RUNS + N_CLASSES], state[HEIGHT] = 4, 0, 0
    return Tree(
        np.zeros((max(n_parts, 4), 4), dtype=np.int32),
        np.zeros(max(n_parts, 4), dtype=np.int32),
        np.zeros(max(n_parts, 4), dtype=np.int32),
        np.zeros((n_elements, 2), dtype=np.int64),
        state,
        frame,
    )


# -- boxes -------------------------------------------------------------------------------------------------
# Coordinates become steps, whole numbers of 15 bits, by a map that never reverses an order: where the steps of
# two coordinates differ the coordinates differ the same way, where they are equal the coordinates must be asked.

BITS = 15
LAST_STEP = (1 << BITS) - 1
FIELD = BITS + 1
ONES = 1 | 1 << FIELD | 1 << 2 * FIELD | 1 << 3 * FIELD
GUARDS = (ONES << BITS) - (1 << 64)  # the bit above each field; the topmost is the sign


@primitive
def step(value, start, per_unit):
    """What lies outside the frame goes to its edge; without extent (0 steps per unit) all is one step."""
    if per_unit == 0.0 or value <= start:
        return np.int64(0)
    scaled = (value - start) * per_unit
    return np.int64(scaled) if scaled < LAST_STEP else np.int64(LAST_STEP)


@primitive
def steps_of(boxes, row, frame):
    """A box in steps: west, south, east, north, all included."""
    return (
        step(boxes[row, 0], frame[0], frame[2]),
        step(boxes[row, 1], frame[1], frame[3]),
        step(boxes[row, 2], frame[0], frame[2]),
        step(boxes[row, 3], frame[1], frame[3]),
    )


@primitive
def pack_entry(box):
    """East and north are counted from the far side, so that a message, packed the other way round, overlaps when
    no field of the entry is greater: one subtraction compares all four."""
    west, south, east, north = box
    return west | south << FIELD | (LAST_STEP - east) << 2 * FIELD | (LAST_STEP - north) << 3 * FIELD


@primitive
def pack_message(box):
    """With all guards set: (message - entry) keeps them if the two may overlap, (message - ONES - entry) if
    they certainly do."""
    west, south, east, north = box
    return (east | north << FIELD | (LAST_STEP - west) << 2 * FIELD | (LAST_STEP - south) << 3 * FIELD) | GUARDS


# -- runs --------------------------------------------------------------------------------------------------


@primitive
def class_for(n):
    """The class of a run of n rows, NOTHING for none: steps of 4 up to 64 rows, then doubling."""
    if n <= 64:
        return np.int64((n + 3) // 4 - 1)
    klass = np.int64(16)
    while np.int64(64) << (klass - 15) < n:
        klass += 1
    return klass


@primitive
def capacity_for(n):
    """Rows in a run that was taken for n."""
    klass = class_for(n)
    return 4 * (klass + 1) if klass < 16 else np.int64(64) << (klass - 15)


@primitive
def take_run(state, runs, links, n):
    """A run for n rows; the caller has made sure of the room. links[run] chains free runs."""
    klass = class_for(n)
    if klass == NOTHING:
        return np.int64(0)
    run = state[runs + klass]
    if run != NOTHING:
        state[runs + klass] = np.int64(links[run])
        return run
    run = state[runs + N_CLASSES]
    state[runs + N_CLASSES] = run + capacity_for(n)
    return run


@primitive
def give_run(state, runs, links, run, n):
    klass = class_for(n)
    if klass != NOTHING:
        links[run] = state[runs + klass]
        state[runs + klass] = run


@primitive
def has_room(tree, n_parts, n_elements):
    """Whether so many rows could be taken even if no free run served."""
    part_top, pool_top = tree.state[PART_RUNS + N_CLASSES], tree.state[POOL_RUNS + N_CLASSES]
    return part_top + n_parts <= len(tree.parts) and pool_top + n_elements <= len(tree.pool)


# -- nodes -------------------------------------------------------------------------------------------------


@primitive
def kind_of(tree, node):
    return np.int64(tree.parts[node, WHAT]) & 3


@primitive
def size_of(tree, node):
    return np.int64(tree.parts[node, WHAT]) >> 2


@primitive
def n_parts_of(tree, node):
    """Cuts or cells of an inner node, the dummy not counted."""
    size = size_of(tree, node)
    return size if kind_of(tree, node) == KEYWORD else (size & 0x3FFF) * (size >> 14)


@primitive
def is_leaf(tree, node):
    kind = kind_of(tree, node)
    return kind == LEAF or kind == SURE


@primitive
def weight_of(tree, node):
    """Entries below a node, each counted once."""
    if is_leaf(tree, node):
        return size_of(tree, node)
    return np.int64(tree.parts[tree.parts[node, START], WEIGHT])


@primitive
def set_node(tree, node, kind, start, size):
    tree.parts[node, START] = start
    tree.parts[node, WHAT] = kind | size << 2


@primitive
def free_run_of(tree, node):
    """Give back the run of a node, which becomes an empty leaf."""
    start = np.int64(tree.parts[node, START])
    if is_leaf(tree, node):
        give_run(tree.state, POOL_RUNS, tree.pool[:, ENTRY], start, size_of(tree, node))
    else:
        give_run(tree.state, PART_RUNS, tree.parts[:, START], start, n_parts_of(tree, node) + PARTS)
    set_node(tree, node, LEAF, 0, 0)
