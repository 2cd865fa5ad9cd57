"""Insertion into the lists of `strata`, in place: what is full on the way down is split.

An entry goes down to the leaf whose fields it moves least. What is full is split before it is entered, so there
is always room for one more child above.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.strata_build import root_parent
from nearcast.kernels.strata_classes import list_for
from nearcast.kernels.strata_keys import key_and_others
from nearcast.kernels.strata_layout import (
    FAN_MOST,
    FULL_CLASS,
    HOT,
    LEAF_MOST,
    LEVEL,
    MORE,
    N_RUNS,
    PARENT,
    USED,
    excess,
    lower,
    packed_entry,
    run_most,
    run_root,
    tree_root,
    upper,
)
from nearcast.kernels.strata_order import select, widest_field
from nearcast.kernels.strata_room import attach, give_run, has_room, take_branch, take_leaf, take_run
from nearcast.kernels.strata_split import (
    branch_bounds,
    lane_bounds,
    move_lanes,
    put_lane,
    set_bounds,
    split_branch,
    split_leaf,
)


@primitive
def moved_by(strata, branch, at, box):
    """How far the bounds of a child have to move to take the box in."""
    return excess(strata.bounds[branch, 0, at], box) + excess(box, strata.bounds[branch, 1, at])


@primitive
def nearest_child(strata, branch, box):
    """The child whose bounds the box moves least."""
    best, least = 0, np.int64(1) << 62
    for i in range(strata.children[branch, USED]):
        moved = moved_by(strata, branch, i, box)
        if moved < least:
            best, least = i, moved
            if moved == 0:
                break
    return best


@primitive
def nearer_half(strata, branch, at, box):
    """Of a child that was just split and its other half, which is the last child. No third one: it may be full."""
    last = strata.children[branch, USED] - 1
    return last if moved_by(strata, branch, last, box) < moved_by(strata, branch, at, box) else at


@primitive
def new_root(strata, lst, level, word, low, high):
    """A branch over the one child that was the root so far."""
    branch = take_branch(strata, level)
    strata.children[branch, PARENT] = root_parent(lst)
    attach(strata, branch, word, low, high)
    strata.keys[lst >> 1, 2 + (lst & MORE)] = tree_root(branch, level)
    return branch


@primitive
def is_full(strata, level, word):
    if level == 1:
        return word & 31 == strata.state[LEAF_MOST]
    return strata.children[word >> 5, USED] == strata.state[FAN_MOST]


@primitive
def insert_below(strata, branch, box, entry, other, place):
    """Into the tree below a branch that has room."""
    while True:
        level = strata.children[branch, LEVEL]
        at = nearest_child(strata, branch, box)
        if is_full(strata, level, np.int64(strata.children[branch, at])):
            if level == 1:
                split_leaf(strata, branch, at, place)
            else:
                split_branch(strata, branch, at)
            at = nearer_half(strata, branch, at, box)
        low, high = lower(strata.bounds[branch, 0, at], box), upper(strata.bounds[branch, 1, at], box)
        set_bounds(strata, branch, at, low, high)
        word = np.int64(strata.children[branch, at])
        if level == 1:
            put_lane(strata, ((word >> 5) << FULL_CLASS) + (word & 31), box, entry, other, place)
            strata.children[branch, at] = word + 1
            return
        branch = word >> 5


@primitive
def insert_in_run(strata, lst, root, box, entry, other, place):
    """Into a list without a tree whose run may still grow; a full run moves to a larger one."""
    lane, size, used = root >> 24, (root >> 8) & 0xFF, root & 0xFF
    if used == size:
        larger = min(size + 1 + (size >> 2), run_most(strata))
        target = take_run(strata, larger)
        move_lanes(strata, lane, target, used, place)
        if size:
            give_run(strata, lane, size)
        else:
            strata.state[N_RUNS] += 1
        lane, size = target, larger
    put_lane(strata, lane + used, box, entry, other, place)
    strata.keys[lst >> 1, 2 + (lst & MORE)] = run_root(lane, size, used + 1)


@primitive
def run_to_tree(strata, lst, lane, place):
    """A full run of the longest kind becomes a branch over two full leaves."""
    size, last = strata.state[LEAF_MOST], lane + run_most(strata)
    by, _ = widest_field(strata.boxes, lane, last)
    select(strata.entries, strata.boxes, strata.others, lane, last, lane + size, by)
    branch = take_branch(strata, 1)
    strata.children[branch, PARENT] = root_parent(lst)
    for half in range(lane, last, size):
        leaf = take_leaf(strata)
        low, high = lane_bounds(strata, half, size)
        move_lanes(strata, half, leaf << FULL_CLASS, size, place)
        attach(strata, branch, (leaf << 5) | size, low, high)
    give_run(strata, lane, run_most(strata))
    strata.state[N_RUNS] -= 1
    strata.keys[lst >> 1, 2 + (lst & MORE)] = tree_root(branch, 1)
    return branch


@primitive
def insert_one(strata, lst, box, entry, other, place):
    key, which = lst >> 1, lst & MORE
    strata.keys[key, which] = lower(strata.keys[key, which], box)
    root = np.int64(strata.keys[key, 2 + which])
    level = (root >> 16) & 0xFF
    if level == 0 and root & 0xFF < run_most(strata):
        insert_in_run(strata, lst, root, box, entry, other, place)
        return
    if level == 0:
        branch = run_to_tree(strata, lst, root >> 24, place)
    else:
        branch = root >> 24
        if strata.children[branch, USED] == strata.state[FAN_MOST]:
            low, high = branch_bounds(strata, branch)
            branch = new_root(strata, lst, level + 1, branch << 5, low, high)
    insert_below(strata, branch, box, entry, other, place)


@primitive
def top_children(strata, lst):
    """Something that grows with the tree of a list: levels, then the children of its root; 0 below two levels."""
    root = np.int64(strata.keys[lst >> 1, 2 + (lst & MORE)])
    level = (root >> 16) & 0xFF
    return level * 32 + np.int64(strata.children[root >> 24, USED]) if level > 1 else np.int64(0)


@kernel
def insert(strata, entries, numbers, first, weights, frame, place):
    """Take in numbers[first:]. Returns how far it came: less than all where there is no room."""
    for i in range(first, len(numbers)):
        if not has_room(strata):
            return i
        entry = numbers[i]
        key, second, other = key_and_others(entries, entry, weights)
        more = np.int64(second >= 0)
        lst = list_for(strata, key, more, second)
        before = top_children(strata, lst)
        insert_one(strata, lst, packed_entry(entries.boxes, entry, frame), entry, other, place)
        if more and strata.rows[key] > 0 and top_children(strata, lst) > before:
            strata.state[HOT] = key
    return len(numbers)
