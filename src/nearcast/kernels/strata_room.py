"""Room for lanes and branches: free ones are chained and used again, new ones come from the top.

Kernels never enlarge an array. The caller sees to it that a kernel has room for its next step
(`has_room`), and comes again with larger arrays where it had not.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import primitive
from nearcast.kernels.strata_layout import (
    BRANCH_FREE,
    BRANCH_TOP,
    FULL_CLASS,
    LANE_TOP,
    LANES,
    LEAF_FREE,
    LEVEL,
    N_LEAVES,
    NEVER,
    NO_PARENT,
    NONE,
    PARENT,
    ROW_TOP,
    RUN_FROM,
    RUN_UPTO,
    USED,
)

RUN_LANES = 16 * LANES  # runs are cut from ranges of so many lanes
STEP_LANES = RUN_LANES + 4 * LANES  # one insertion takes at most such a range, and three leaves
STEP_BRANCHES = 40  # and a branch a level, and a new root; the narrowest trees have 32 levels


@primitive
def has_room(strata):
    """Is there room for one insertion, whatever it splits?"""
    lanes = strata.state[LANE_TOP] + STEP_LANES <= len(strata.boxes)
    rows = strata.state[ROW_TOP] < len(strata.keys)
    return lanes and rows and strata.state[BRANCH_TOP] + STEP_BRANCHES <= len(strata.children)


@primitive
def take_lanes(strata, count):
    """Lanes that were never used; `count` is a multiple of LANES."""
    lane = strata.state[LANE_TOP]
    strata.state[LANE_TOP] = lane + count
    for slab in range(lane >> FULL_CLASS, (lane + count) >> FULL_CLASS):
        strata.parents[slab] = NO_PARENT
    return lane


@primitive
def give_run(strata, lane, size):
    strata.entries[lane] = strata.state[size]
    strata.state[size] = lane


@primitive
def take_run(strata, size):
    """First of `size` lanes in a row: a free run of this size, else cut from the current range."""
    lane = strata.state[size]
    if lane != NONE:
        strata.state[size] = np.int64(strata.entries[lane])
        return lane
    lane = strata.state[RUN_FROM]
    rest = strata.state[RUN_UPTO] - lane
    if rest < size:
        if rest > 0:
            give_run(strata, lane, rest)
        lane = take_lanes(strata, RUN_LANES)
        strata.state[RUN_UPTO] = lane + RUN_LANES
    strata.state[RUN_FROM] = lane + size
    return lane


@primitive
def take_leaf(strata):
    """A leaf of empty lanes."""
    lane = strata.state[LEAF_FREE]
    if lane == NONE:
        lane = take_lanes(strata, LANES)
    else:
        strata.state[LEAF_FREE] = np.int64(strata.entries[lane])
    for i in range(lane, lane + LANES):
        strata.boxes[i] = NEVER
    strata.state[N_LEAVES] += 1
    return lane >> FULL_CLASS


@primitive
def give_leaf(strata, leaf):
    strata.state[N_LEAVES] -= 1
    strata.parents[leaf] = NO_PARENT
    strata.entries[leaf << FULL_CLASS] = strata.state[LEAF_FREE]
    strata.state[LEAF_FREE] = leaf << FULL_CLASS


@primitive
def take_branch(strata, level):
    """A branch without children."""
    branch = strata.state[BRANCH_FREE]
    if branch == NONE:
        branch = strata.state[BRANCH_TOP]
        strata.state[BRANCH_TOP] = branch + 1
    else:
        strata.state[BRANCH_FREE] = np.int64(strata.children[branch, PARENT])
    strata.children[branch, USED] = 0
    strata.children[branch, LEVEL] = level
    for i in range(LANES):
        strata.bounds[branch, 0, i] = NEVER
    return branch


@primitive
def give_branch(strata, branch):
    strata.children[branch, PARENT] = strata.state[BRANCH_FREE]
    strata.state[BRANCH_FREE] = branch


@primitive
def set_parent(strata, level, child, where):
    """Tell the child of a branch of this level where it stands (branch * 16 + position)."""
    if level == 1:
        strata.parents[child] = where
    else:
        strata.children[child, PARENT] = where


@primitive
def attach(strata, branch, word, low, high):
    """A further child of a branch that has room."""
    at = np.int64(strata.children[branch, USED])
    strata.children[branch, at] = word
    strata.bounds[branch, 0, at] = low
    strata.bounds[branch, 1, at] = high
    strata.children[branch, USED] = at + 1
    set_parent(strata, strata.children[branch, LEVEL], word >> 5, branch * LANES + at)
