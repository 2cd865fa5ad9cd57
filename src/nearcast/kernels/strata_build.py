"""Building the lists of `strata` in bulk: sort by list, order each list in space, lay it out.

A list is ordered like a kd-tree over the four fields of its packed boxes: halved again and again at the
median of the widest field, at multiples of what a leaf (a branch, a branch of branches) takes.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.strata_layout import (
    ALWAYS,
    FAN_MOST,
    FULL_CLASS,
    LANES,
    LEAF_MOST,
    MORE,
    N_RUNS,
    NEVER,
    PARENT,
    USED,
    filled,
    lower,
    run_most,
    run_root,
    tree_root,
    upper,
)
from nearcast.kernels.strata_order import order_in_space
from nearcast.kernels.strata_room import RUN_LANES, attach, take_branch, take_leaf, take_run

MAX_LEVELS = 32


@kernel
def count_lists(lists, starts):
    """starts[l + 1] becomes the number of items of list l, then the running sum: where list l + 1 begins."""
    for i in range(len(lists)):
        starts[lists[i] + 1] += 1
    for i in range(1, len(starts)):
        starts[i] += starts[i - 1]


@kernel
def sort_by_list(lists, numbers, boxes, others, starts, to_numbers, to_boxes, to_others):
    """Items in the order of their lists. Afterwards starts[l] is where list l ends."""
    for i in range(len(lists)):
        to = starts[lists[i]]
        starts[lists[i]] = to + 1
        to_numbers[to] = numbers[i]
        to_boxes[to] = boxes[i]
        to_others[to] = others[i]


@kernel
def room_needed(strata, ends, needed):
    """Lanes and branches that a bulk build of these lists takes at most."""
    leaf, fan = filled(strata.state[LEAF_MOST]), filled(strata.state[FAN_MOST])
    lanes, branches = np.int64(0), np.int64(0)
    low = np.int64(0)
    for i in range(len(ends)):
        count = ends[i] - low
        low = ends[i]
        if count <= run_most(strata):
            lanes += count
            continue
        units = (count + leaf - 1) // leaf
        lanes += units * LANES
        while units > 1:
            units = (units + fan - 1) // fan
            branches += units
    needed[0], needed[1] = lanes + lanes // 7 + RUN_LANES, branches  # 31 of 256 lanes may not fit a run


@primitive
def fill_lanes(strata, lane, numbers, boxes, others, low, high, place):
    """Items [low, high) into lanes; their smallest and largest fields."""
    least, most = NEVER, ALWAYS
    for i in range(low, high):
        at = lane + i - low
        strata.boxes[at] = boxes[i]
        strata.entries[at] = numbers[i]
        strata.others[at] = others[i]
        place[numbers[i]] = at
        least = lower(least, boxes[i])
        most = upper(most, boxes[i])
    return least, most


@primitive
def widen_above(strata, branch, low, high):
    """Every branch above learns of the fields of a new child; the low of all of it."""
    while True:
        parent = np.int64(strata.children[branch, PARENT])
        if parent < 0:
            break
        branch, at = parent >> FULL_CLASS, parent & (LANES - 1)
        strata.bounds[branch, 0, at] = lower(strata.bounds[branch, 0, at], low)
        strata.bounds[branch, 1, at] = upper(strata.bounds[branch, 1, at], high)


@primitive
def root_parent(lst):
    """PARENT of a root: which list it is of."""
    return -2 - lst


@primitive
def open_branches(strata, opened, level):
    """New branches below an opened one of this level, each the last child of the one above."""
    while level > 1:
        level -= 1
        branch = take_branch(strata, level)
        attach(strata, opened[level + 1], branch << 5, NEVER, ALWAYS)
        opened[level] = branch


@primitive
def lay_out_tree(strata, lst, numbers, boxes, others, low, high, place, opened):
    """Leaves and branches of one ordered list; returns its root and its low."""
    leaf_size, fan = filled(strata.state[LEAF_MOST]), filled(strata.state[FAN_MOST])
    levels = 1
    reach = leaf_size * fan
    while reach < high - low:
        levels += 1
        reach *= fan
    root = take_branch(strata, levels)
    strata.children[root, PARENT] = root_parent(lst)
    opened[levels] = root
    open_branches(strata, opened, levels)
    total = NEVER
    for first in range(low, high, leaf_size):
        last = min(first + leaf_size, high)
        leaf = take_leaf(strata)
        least, most = fill_lanes(strata, leaf << FULL_CLASS, numbers, boxes, others, first, last, place)
        level = 1
        while strata.children[opened[level], USED] == fan:
            level += 1
        open_branches(strata, opened, level)
        attach(strata, opened[1], (leaf << 5) | (last - first), least, most)
        widen_above(strata, opened[1], least, most)
        total = lower(total, least)
    return tree_root(root, levels), total


@kernel
def lay_out(strata, ends, numbers, boxes, others, place, stack, opened):
    """All lists of a bulk build; list l owns the items from ends[l - 1] to ends[l]."""
    leaf, fan = filled(strata.state[LEAF_MOST]), filled(strata.state[FAN_MOST])
    low = np.int64(0)
    for lst in range(len(ends)):
        high = ends[lst]
        if high - low > run_most(strata):
            order_in_space(numbers, boxes, others, low, high, leaf, fan, stack)
            root, least = lay_out_tree(strata, lst, numbers, boxes, others, low, high, place, opened)
        elif high > low:
            lane = take_run(strata, high - low)
            least, _ = fill_lanes(strata, lane, numbers, boxes, others, low, high, place)
            root = run_root(lane, high - low, high - low)
            strata.state[N_RUNS] += 1
        if high > low:
            strata.keys[lst >> 1, lst & MORE] = least
            strata.keys[lst >> 1, 2 + (lst & MORE)] = root
        low = high
