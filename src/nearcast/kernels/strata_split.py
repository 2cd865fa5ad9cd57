"""Lanes and children of `strata` moved: full leaves and branches become two halves."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import primitive
from nearcast.kernels.strata_layout import (
    ALWAYS,
    FAN_MOST,
    FULL_CLASS,
    LANES,
    LEAF_MOST,
    LEVEL,
    NEVER,
    USED,
    field,
    lower,
    upper,
    widest,
)
from nearcast.kernels.strata_order import select, widest_field
from nearcast.kernels.strata_room import attach, set_parent, take_branch, take_leaf


@primitive
def lane_bounds(strata, lane, count):
    low, high = NEVER, ALWAYS
    for i in range(lane, lane + count):
        low = lower(low, strata.boxes[i])
        high = upper(high, strata.boxes[i])
    return low, high


@primitive
def branch_bounds(strata, branch):
    low, high = NEVER, ALWAYS
    for i in range(strata.children[branch, USED]):
        low = lower(low, strata.bounds[branch, 0, i])
        high = upper(high, strata.bounds[branch, 1, i])
    return low, high


@primitive
def set_bounds(strata, branch, at, low, high):
    strata.bounds[branch, 0, at] = low
    strata.bounds[branch, 1, at] = high


@primitive
def put_lane(strata, lane, box, entry, other, place):
    strata.boxes[lane] = box
    strata.entries[lane] = entry
    strata.others[lane] = other
    place[entry] = lane


@primitive
def move_lanes(strata, source, target, count, place):
    """Lanes to empty ones; the old ones become empty."""
    for i in range(count):
        put_lane(
            strata, target + i, strata.boxes[source + i], strata.entries[source + i], strata.others[source + i], place
        )
        strata.boxes[source + i] = NEVER


@primitive
def split_leaf(strata, branch, at, place):
    """A full leaf becomes two halves, apart in its widest field; the branch has room for one more."""
    leaf = np.int64(strata.children[branch, at] >> 5)
    lane, size = leaf << FULL_CLASS, strata.state[LEAF_MOST]
    half = size >> 1
    by, _ = widest_field(strata.boxes, lane, lane + size)
    select(strata.entries, strata.boxes, strata.others, lane, lane + size, lane + half, by)
    for i in range(lane, lane + half):
        place[strata.entries[i]] = i
    other = take_leaf(strata)
    move_lanes(strata, lane + half, other << FULL_CLASS, size - half, place)
    low, high = lane_bounds(strata, lane, half)
    strata.children[branch, at] = (leaf << 5) | half
    set_bounds(strata, branch, at, low, high)
    low, high = lane_bounds(strata, other << FULL_CLASS, size - half)
    attach(strata, branch, (other << 5) | (size - half), low, high)


@primitive
def swap_children(strata, branch, i, j):
    kids, bounds = strata.children, strata.bounds
    kids[branch, i], kids[branch, j] = kids[branch, j], kids[branch, i]
    bounds[branch, 0, i], bounds[branch, 0, j] = bounds[branch, 0, j], bounds[branch, 0, i]
    bounds[branch, 1, i], bounds[branch, 1, j] = bounds[branch, 1, j], bounds[branch, 1, i]


@primitive
def sort_children(strata, branch, by):
    """By the middle of one field: at most 16 of them, insertion sort."""
    bounds = strata.bounds
    for i in range(1, strata.children[branch, USED]):
        j = i
        while j > 0 and (
            field(bounds[branch, 0, j - 1], by) + field(bounds[branch, 1, j - 1], by)
            > field(bounds[branch, 0, j], by) + field(bounds[branch, 1, j], by)
        ):
            swap_children(strata, branch, j - 1, j)
            j -= 1


@primitive
def split_branch(strata, above, at):
    """A full branch becomes two halves; the one above has room for one more."""
    branch = np.int64(strata.children[above, at] >> 5)
    low, high = branch_bounds(strata, branch)
    by, _ = widest(low, high)
    sort_children(strata, branch, by)
    level = strata.children[branch, LEVEL]
    other = take_branch(strata, level)
    half = strata.state[FAN_MOST] >> 1
    for i in range(half, strata.state[FAN_MOST]):
        attach(strata, other, strata.children[branch, i], strata.bounds[branch, 0, i], strata.bounds[branch, 1, i])
        strata.bounds[branch, 0, i] = NEVER
    for i in range(half):
        set_parent(strata, level, strata.children[branch, i] >> 5, branch * LANES + i)
    strata.children[branch, USED] = half
    low, high = branch_bounds(strata, branch)
    set_bounds(strata, above, at, low, high)
    low, high = branch_bounds(strata, other)
    attach(strata, above, other << 5, low, high)
