"""Building the lists of `strata` in bulk: choose keys, sort by key, order each list in space, lay it out.

A list is ordered like a kd-tree over the four fields of its packed boxes: halved again and again at the
median of the widest field, at multiples of what a leaf (a branch, a branch of branches) takes.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.strata_layout import (
    ALWAYS,
    FULL_CLASS,
    LANE_TOP,
    LANES,
    MORE,
    N_RUNS,
    NEVER,
    PARENT,
    RUN,
    USED,
    field,
    lower,
    mark_of,
    packed_entry,
    run_root,
    tree_root,
    upper,
    widest,
)
from nearcast.kernels.strata_room import RUN_LANES, attach, take_branch, take_leaf, take_run

FILL = 14  # lanes of a leaf and children of a branch after a bulk build; the rest is for insertions
MAX_LEVELS = 12


@primitive
def weight_of(weights, term):
    """How often a term is expected in messages; one never seen is the rarest."""
    return weights[term] if term < len(weights) else np.int32(0)


@primitive
def others_word(entries, low, count, key, second, weights):
    """What a lane says of the terms besides the key.

    One: the term itself, so that the lane is proof enough. Several: ~ of the 15-bit marks of the two rarest.
    """
    if count <= 2:
        return np.int64(second)
    third, rare = np.int64(-1), np.int32(0)
    for i in range(low, low + count):
        term = np.int64(entries.terms[i])
        if term != key and term != second and (third < 0 or weight_of(weights, term) < rare):
            third, rare = term, weight_of(weights, term)
    return ~(mark_of(second) | mark_of(third) << 15)


@primitive
def key_and_others(entries, entry, weights):
    """The rarest term of an entry, 1 if there are others, and what its lane says of those."""
    low = np.int64(entries.term_from[entry])
    count = np.int64(entries.term_count[entry])
    key, second = np.int64(entries.terms[low]), np.int64(0)
    rarest, rare = weight_of(weights, key), np.int32(0)
    for i in range(low + 1, low + count):
        term = np.int64(entries.terms[i])
        weight = weight_of(weights, term)
        if weight < rarest:
            second, rare = key, rarest
            key, rarest = term, weight
        elif i == low + 1 or weight < rare:
            second, rare = term, weight
    return key, np.int64(count > 1), others_word(entries, low, count, key, second, weights)


@kernel
def describe(entries, numbers, weights, frame, lists, boxes, others):
    """For each of the numbers: its list (2 * key + MORE or LONE), packed box and what is said of other terms."""
    for i in range(len(numbers)):
        entry = numbers[i]
        key, more, others_said = key_and_others(entries, entry, weights)
        lists[i] = 2 * key + more
        boxes[i] = packed_entry(entries.boxes, entry, frame)
        others[i] = others_said


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
def room_needed(ends, needed):
    """Lanes and branches that a bulk build of these lists takes at most."""
    lanes, branches = np.int64(0), np.int64(0)
    low = np.int64(0)
    for i in range(len(ends)):
        count = ends[i] - low
        low = ends[i]
        if count <= RUN:
            lanes += count
            continue
        units = (count + FILL - 1) // FILL
        lanes += units * LANES
        while units > 1:
            units = (units + FILL - 1) // FILL
            branches += units
    needed[0], needed[1] = lanes + lanes // 7 + RUN_LANES, branches  # 31 of 256 lanes may not fit a run


@primitive
def swap(numbers, boxes, others, i, j):
    numbers[i], numbers[j] = numbers[j], numbers[i]
    boxes[i], boxes[j] = boxes[j], boxes[i]
    others[i], others[j] = others[j], others[i]


@primitive
def select(numbers, boxes, others, low, high, middle, by):
    """Reorder [low, high) so that field `by` of all before `middle` is at most that of all after."""
    last = high - 1
    while low < last:
        pivot = field(boxes[(low + last) >> 1], by)
        i, j = low, last
        while i <= j:
            while field(boxes[i], by) < pivot:
                i += 1
            while field(boxes[j], by) > pivot:
                j -= 1
            if i <= j:
                swap(numbers, boxes, others, i, j)
                i += 1
                j -= 1
        if middle <= j:
            last = j
        elif middle >= i:
            low = i
        else:
            return


@primitive
def widest_field(boxes, low, high):
    least, most = NEVER, ALWAYS
    for i in range(low, high):
        least = lower(least, boxes[i])
        most = upper(most, boxes[i])
    return widest(least, most)


@primitive
def left_part(count):
    """How many of `count` items go left: about half, in whole leaves, branches, branches of branches."""
    leaves = (count + FILL - 1) // FILL
    unit = np.int64(1)
    while unit * FILL < leaves:
        unit *= FILL
    return ((leaves + unit - 1) // unit >> 1) * unit * FILL


@primitive
def order_in_space(numbers, boxes, others, low, high, stack):
    """kd order of one list; `stack` holds the ranges that are still to be halved."""
    stack[0, 0], stack[0, 1] = low, high
    depth = 1
    while depth:
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]
        by, apart = widest_field(boxes, low, high)
        if apart == 0:
            continue
        middle = low + left_part(high - low)
        select(numbers, boxes, others, low, high, middle, by)
        if middle - low > FILL:
            stack[depth, 0], stack[depth, 1] = low, middle
            depth += 1
        if high - middle > FILL:
            stack[depth, 0], stack[depth, 1] = middle, high
            depth += 1


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
    levels = 1
    reach = np.int64(FILL) * FILL
    while reach < high - low:
        levels += 1
        reach *= FILL
    root = take_branch(strata, levels)
    strata.children[root, PARENT] = root_parent(lst)
    opened[levels] = root
    open_branches(strata, opened, levels)
    total = NEVER
    for first in range(low, high, FILL):
        last = min(first + FILL, high)
        leaf = take_leaf(strata)
        least, most = fill_lanes(strata, leaf << FULL_CLASS, numbers, boxes, others, first, last, place)
        level = 1
        while strata.children[opened[level], USED] == FILL:
            level += 1
        open_branches(strata, opened, level)
        attach(strata, opened[1], (leaf << 5) | (last - first), least, most)
        widen_above(strata, opened[1], least, most)
        total = lower(total, least)
    return tree_root(root, levels), total


@kernel
def lay_out(strata, ends, numbers, boxes, others, place, stack, opened):
    """All lists of a bulk build; list l owns the items from ends[l - 1] to ends[l]."""
    low = np.int64(0)
    for lst in range(len(ends)):
        high = ends[lst]
        if high - low > RUN:
            order_in_space(numbers, boxes, others, low, high, stack)
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


@kernel
def count_terms(entries, numbers, weights, step):
    """Add `step` to the weight of every term of the numbered entries that is in reach; the highest term."""
    highest = np.int64(-1)
    for i in range(len(numbers)):
        low = np.int64(entries.term_from[numbers[i]])
        for j in range(low, low + entries.term_count[numbers[i]]):
            term = np.int64(entries.terms[j])
            if term < len(weights):
                weights[term] += step
            highest = max(highest, term)
    return highest


@kernel
def measure_lists(strata, lengths, levels):
    """Entries and tree levels (0: a run) of every list: runs say it, leaves are counted to their root."""
    for lst in range(len(lengths)):
        root = np.int64(strata.keys[lst >> 1, 2 + (lst & MORE)])
        levels[lst] = (root >> 16) & 0xFF
        lengths[lst] = root & 0xFF
    for leaf in range(strata.state[LANE_TOP] >> FULL_CLASS):
        where = np.int64(strata.parents[leaf])
        if where < 0:
            continue
        used = strata.children[where >> FULL_CLASS, where & (LANES - 1)] & 31
        while where >= 0:
            where = np.int64(strata.children[where >> FULL_CLASS, PARENT])
        lengths[-2 - where] += used
