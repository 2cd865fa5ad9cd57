"""Removal from the lists of `strata`, in place: the last lane takes the place, and nearly empty leaves join.

Leaving an entry out does not tighten bounds: wider ones are only slower, never wrong. Splits and merges do.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.strata_classes import class_list, row_of
from nearcast.kernels.strata_layout import (
    FULL_CLASS,
    LANES,
    LEAF_MOST,
    LEVEL,
    LONE,
    MORE,
    N_RUNS,
    NEVER,
    PARENT,
    USED,
    excess,
    lower,
    upper,
)
from nearcast.kernels.strata_room import give_branch, give_leaf, give_run, set_parent
from nearcast.kernels.strata_split import move_lanes, put_lane, set_bounds


@primitive
def is_few(strata, used):
    """A leaf that has at most a quarter of its lanes left joins another one,"""
    return used <= strata.state[LEAF_MOST] >> 2


@primitive
def is_too_much(strata, used):
    """unless the two together have more than three quarters."""
    return used > strata.state[LEAF_MOST] - (strata.state[LEAF_MOST] >> 2)


@primitive
def clear_list(strata, lst):
    strata.keys[lst >> 1, lst & MORE] = NEVER
    strata.keys[lst >> 1, 2 + (lst & MORE)] = 0


@primitive
def drop_child(strata, branch, at):
    """The last child takes the place; a branch without children goes as well, and so on upwards."""
    while True:
        last = np.int64(strata.children[branch, USED]) - 1
        word = np.int64(strata.children[branch, last])
        strata.children[branch, at] = word
        set_bounds(strata, branch, at, strata.bounds[branch, 0, last], strata.bounds[branch, 1, last])
        strata.bounds[branch, 0, last] = NEVER
        strata.children[branch, USED] = last
        if at < last:
            set_parent(strata, strata.children[branch, LEVEL], word >> 5, branch * LANES + at)
        if last > 0:
            return
        parent = np.int64(strata.children[branch, PARENT])
        give_branch(strata, branch)
        if parent < 0:
            clear_list(strata, -2 - parent)
            return
        branch, at = parent >> FULL_CLASS, parent & (LANES - 1)


@primitive
def merge_leaf(strata, branch, at, place):
    """A leaf with few lanes left moves into the sibling that it widens least, if one has room."""
    word = np.int64(strata.children[branch, at])
    low, high = strata.bounds[branch, 0, at], strata.bounds[branch, 1, at]
    best, least = -1, np.int64(1) << 62
    for i in range(strata.children[branch, USED]):
        if i == at or is_too_much(strata, (strata.children[branch, i] & 31) + (word & 31)):
            continue
        moved = excess(strata.bounds[branch, 0, i], low) + excess(high, strata.bounds[branch, 1, i])
        if moved < least:
            best, least = i, moved
    if best < 0:
        return
    into = np.int64(strata.children[branch, best])
    target = ((into >> 5) << FULL_CLASS) + (into & 31)
    move_lanes(strata, (word >> 5) << FULL_CLASS, target, word & 31, place)
    strata.children[branch, best] = into + (word & 31)
    low, high = lower(low, strata.bounds[branch, 0, best]), upper(high, strata.bounds[branch, 1, best])
    set_bounds(strata, branch, best, low, high)
    give_leaf(strata, word >> 5)
    drop_child(strata, branch, at)


@primitive
def empty_lane(strata, lane, last, place):
    """The last lane in use takes the place of another."""
    if lane < last:
        put_lane(strata, lane, strata.boxes[last], strata.entries[last], strata.others[last], place)
    strata.boxes[last] = NEVER


@primitive
def remove_from_leaf(strata, lane, where, place):
    branch, at = where >> FULL_CLASS, where & (LANES - 1)
    word = np.int64(strata.children[branch, at])
    used = word & 31
    empty_lane(strata, lane, ((word >> 5) << FULL_CLASS) + used - 1, place)
    strata.children[branch, at] = word - 1
    if used == 1:
        give_leaf(strata, word >> 5)
        drop_child(strata, branch, at)
    elif is_few(strata, used - 1):
        merge_leaf(strata, branch, at, place)


@primitive
def has_lane(strata, lst, lane):
    """Is the list a run with this lane?"""
    root = np.int64(strata.keys[lst >> 1, 2 + (lst & MORE)])
    start = root >> 24
    return (root >> 16) & 0xFF == 0 and start <= lane < start + (root & 0xFF)


@primitive
def class_of(strata, entries, entry, term, lane):
    """The class of a split term whose run has this lane; -1: none has. Any term of the entry may be the second."""
    low = np.int64(entries.term_from[entry])
    for i in range(low, low + entries.term_count[entry]):
        lst = class_list(strata, term, np.int64(entries.terms[i]))
        if has_lane(strata, lst, lane):
            return lst
    return np.int64(-1)


@primitive
def run_of(strata, entries, entry, lane):
    """The list whose run has this lane: that of one of the entry's terms, or a class of it."""
    low = np.int64(entries.term_from[entry])
    for i in range(low, low + entries.term_count[entry]):
        key = np.int64(entries.terms[i])
        if key >= len(strata.rows) or strata.rows[key] == 0:
            continue
        row = row_of(strata, key)
        for lst in range(2 * row + LONE, 2 * row + MORE + 1):
            if has_lane(strata, lst, lane):
                return lst
        if strata.rows[key] < 0:
            lst = class_of(strata, entries, entry, key, lane)
            if lst >= 0:
                return lst
    return np.int64(-1)


@primitive
def remove_from_run(strata, lst, lane, place):
    key, which = lst >> 1, lst & MORE
    root = np.int64(strata.keys[key, 2 + which])
    used = root & 0xFF
    empty_lane(strata, lane, (root >> 24) + used - 1, place)
    if used > 1:
        strata.keys[key, 2 + which] = root - 1
        return
    give_run(strata, root >> 24, (root >> 8) & 0xFF)
    strata.state[N_RUNS] -= 1
    clear_list(strata, lst)


@kernel
def remove(strata, entries, numbers, place):
    """Forget entries that are in the structure."""
    for i in range(len(numbers)):
        lane = np.int64(place[numbers[i]])
        where = np.int64(strata.parents[lane >> FULL_CLASS])
        if where >= 0:
            remove_from_leaf(strata, lane, where, place)
        else:
            remove_from_run(strata, run_of(strata, entries, numbers[i], lane), lane, place)
