"""Other boxes for entries of `strata`, in place: a lane is written where its leaf's bounds take the box, else it is
taken out and goes down the tree again. The key of an entry stays, so words are not looked at."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.strata_insert import insert_one
from nearcast.kernels.strata_layout import FULL_CLASS, LANES, MORE, PARENT, excess, lower, packed_entry
from nearcast.kernels.strata_remove import remove_from_leaf, run_of
from nearcast.kernels.strata_room import has_room


@primitive
def list_above(strata, branch):
    """The list whose tree has this branch."""
    parent = np.int64(strata.children[branch, PARENT])
    while parent >= 0:
        parent = np.int64(strata.children[parent >> FULL_CLASS, PARENT])
    return -2 - parent


@primitive
def widen(strata, lst, box):
    strata.keys[lst >> 1, lst & MORE] = lower(strata.keys[lst >> 1, lst & MORE], box)


@kernel
def move(strata, entries, numbers, first, boxes, frame, place):
    """Put numbers[first:] into boxes[first:]. Returns how far it came: less than all where there is no room."""
    for i in range(first, len(numbers)):
        if not has_room(strata):
            return i
        entry = numbers[i]
        lane = np.int64(place[entry])
        box = packed_entry(boxes, i, frame)
        where = np.int64(strata.parents[lane >> FULL_CLASS])
        if where < 0:
            widen(strata, run_of(strata, entries, entry, lane), box)
            strata.boxes[lane] = box
            continue
        branch, at = where >> FULL_CLASS, where & (LANES - 1)
        if excess(strata.bounds[branch, 0, at], box) + excess(box, strata.bounds[branch, 1, at]) == 0:
            strata.boxes[lane] = box
            continue
        lst, other = list_above(strata, branch), strata.others[lane]
        remove_from_leaf(strata, lane, where, place)
        insert_one(strata, lst, box, entry, other, place)
    return len(numbers)
