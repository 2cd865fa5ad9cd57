"""The steps of a match with `strata`, from one work list to the next; see `strata_match`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import inlined, prefetch, trailing_zeros
from nearcast.kernels.primitives import overlaps
from nearcast.kernels.strata_classes import split_at
from nearcast.kernels.strata_layout import (
    GUARD,
    MARK_BITS,
    MOST_CLASSES,
    ONES,
    RUN,
    SPLIT_LISTS,
    SPLIT_MASK,
    SPLIT_ROW,
)
from nearcast.kernels.strata_terms import has_others, others_seen, where_terms_are
from nearcast.kernels.vectors import compare_eight, pick_eight

TERMS_AT_A_TIME = 32
LISTS_AT_A_TIME = np.uint64(64)  # classes of split terms
WORK = 256  # items of a work list; a step adds at most 2 * TERMS_AT_A_TIME of them

N0, N1, N2, N4, N5, N6, N7, N8, N16, N24 = (np.uint64(n) for n in (0, 1, 2, 4, 5, 6, 7, 8, 16, 24))
BIT_BITS = np.uint64(63)
CHILD_BITS, USED_BITS, LEVEL_BITS, HIT_BITS = np.uint64(31), np.uint64(0xFF), np.uint64(0xFF), np.uint64(0xFF)
ITEM_BITS, LONE_LEAVES = np.uint64(0xFF), np.uint64(2)  # of a branch item: level 1 of a lone list


class Scratch(NamedTuple):
    """Work room of one call; `seen` is all zero between messages, the lists are empty."""

    seen: NDArray[np.uint64]  # [256]  bit m: the message has a term with mark m
    terms: NDArray[np.int32]  # [16384]  by mark seen: the last term of the message that has it
    branches: NDArray[np.uint64]  # [4 * WORK]  branch << 8 | level << 1 | MORE or LONE
    copies: NDArray[np.uint64]  # [WORK]  leaves to copy: lane << 8 | lanes in use
    lone: NDArray[np.uint64]  # [WORK]  runs and leaves of lone lists, likewise
    more: NDArray[np.uint64]  # [WORK]  runs and leaves of the others
    hits: NDArray[np.uint64]  # [8 * WORK + 1]  eight lanes with a box in reach: lane << 16 | certain << 8 | reached
    splits: NDArray[np.uint64]  # [TERMS_AT_A_TIME]  split terms: where in `state`
    lists: NDArray[np.uint64]  # [LISTS_AT_A_TIME + 1]  classes to open
    classes: NDArray[np.uint64]  # [16]  bit c: class c of the split term at hand is named; zero between terms
    lanes: NDArray[np.uint64]  # [65 * WORK]  lanes to verify: of lone lists, then of other ones


def new_scratch() -> Scratch:
    def words(size: int) -> NDArray[np.uint64]:
        return np.zeros(size, dtype=np.uint64)

    return Scratch(
        seen=words((MARK_BITS + 1) // 64),
        terms=np.empty(MARK_BITS + 1, dtype=np.int32),
        branches=words(4 * WORK),
        copies=words(WORK),
        lone=words(WORK),
        more=words(WORK),
        hits=words(8 * WORK + 1),
        splits=words(TERMS_AT_A_TIME),
        lists=words(int(LISTS_AT_A_TIME) + 1),
        classes=words(MOST_CLASSES // 64),
        lanes=np.empty((2 * RUN + 1) * WORK, dtype=np.uint64),
    )


@inlined
def is_certain(box, message):
    """1 where every field is < the message's, else 0."""
    return np.uint64((message - box - ONES) & GUARD == GUARD)


@inlined
def branch_item(branch, level, more):
    return branch << N8 | level << N1 | more


@inlined
def ask_for_branch(strata, item):
    """The line of its children, two of their lows, and of their highs where those will be looked at."""
    branch = item >> N8
    prefetch(strata.bounds, branch)
    prefetch(strata.bounds[branch, 0], 8)
    prefetch(strata.children, branch)
    if item & ITEM_BITS == LONE_LEAVES:
        prefetch(strata.bounds[branch, 1], 0)
        prefetch(strata.bounds[branch, 1], 8)


@inlined
def ask_for_boxes(boxes, items, first, last):
    for i in range(first, last):
        lane = items[i] >> N8
        prefetch(boxes, lane)
        prefetch(boxes, lane + N8)
        if items[i] & USED_BITS > N16:
            prefetch(boxes, lane + N16)
            prefetch(boxes, lane + N24)


@inlined
def open_lists(strata, rows, first, last, message, work):
    """Runs and trees of the terms [first, last) that are in reach: numbers of (lone, more, branches, splits)."""
    keys = strata.keys
    n_lone, n_more, depth, n_splits = N0, N0, N0, N0
    for i in range(first, last):
        term = np.uint64(rows.terms[i])
        if term >= np.uint64(len(strata.rows)):
            continue
        row = np.int64(strata.rows[term])
        if row < 0:
            work.splits[n_splits] = split_at(~row)
            n_splits += N1
            row = strata.state[split_at(~row) + SPLIT_ROW]
        term = np.uint64(row)
        root = keys[term, 2]
        near = np.uint64((message - keys[term, 0]) & GUARD == GUARD)
        level = (root >> N16) & LEVEL_BITS
        tree = np.uint64(level != N0)
        work.lone[n_lone] = (root >> N24) << N8 | (root & USED_BITS)
        n_lone += near & ~tree
        work.branches[depth] = branch_item(root >> N24, level, N0)
        depth += near & tree
        root = keys[term, 3]
        near = np.uint64((message - keys[term, 1]) & GUARD == GUARD)
        level = (root >> N16) & LEVEL_BITS
        tree = np.uint64(level != N0)
        work.more[n_more] = (root >> N24) << N8 | (root & USED_BITS)
        n_more += near & ~tree
        work.branches[depth] = branch_item(root >> N24, level, N1)
        depth += near & tree
    ask_for_boxes(strata.boxes, work.lone, N0, n_lone)
    ask_for_boxes(strata.boxes, work.more, N0, n_more)
    for i in range(depth):
        ask_for_branch(strata, work.branches[i])
    return n_lone, n_more, depth, n_splits


@inlined
def name_classes(strata, rows, row, work, n_splits, at, n_lists):
    """Lists of the classes of a split term that the message's terms are in, each once, from position `at` on.

    By term, or class by class where the message has more terms than there are classes. Returns the number of lists
    and the position to go on from; 0: all are named.
    """
    split = np.int64(work.splits[n_splits - N1])
    lists, mask = strata.state[split + SPLIT_LISTS], strata.state[split + SPLIT_MASK]
    low = rows.term_from[row]
    n_terms = rows.term_from[row + 1] - low
    by_term = n_terms <= mask
    last = n_terms if by_term else mask + 1
    upto = min(last, at + np.int64(LISTS_AT_A_TIME - n_lists))
    for i in range(at, upto):
        chosen = np.int64(rows.terms[low + i]) & mask if by_term else i
        word, bit = np.uint64(chosen) >> N6, np.uint64(chosen) & BIT_BITS
        work.lists[n_lists] = np.uint64(lists + chosen)
        prefetch(strata.keys, work.lists[n_lists] >> N1)
        n_lists += ~(work.classes[word] >> bit) & N1
        work.classes[word] |= N1 << bit
    if upto < last:
        return n_lists, upto
    for word in range(np.uint64((mask >> 6) + 1)):
        work.classes[word] = N0
    return n_lists, np.int64(0)


@inlined
def open_classes(strata, rows, row, message, work, n_splits, at):
    """Classes in reach of split terms: (more, branches, splits still to be opened, position in the last of them)."""
    n_lists = N0
    while n_splits > N0 and n_lists < LISTS_AT_A_TIME:
        n_lists, at = name_classes(strata, rows, row, work, n_splits, at, n_lists)
        n_splits -= np.uint64(at == 0)
    n_more, depth = N0, N0
    for i in range(n_lists):
        lst = work.lists[i]
        root = strata.keys[lst >> N1, N2 + (lst & N1)]
        near = np.uint64((message - strata.keys[lst >> N1, lst & N1]) & GUARD == GUARD)
        level = (root >> N16) & LEVEL_BITS
        tree = np.uint64(level != N0)
        work.more[n_more] = (root >> N24) << N8 | (root & USED_BITS)
        n_more += near & ~tree
        work.branches[depth] = branch_item(root >> N24, level, N1)
        depth += near & tree
    ask_for_boxes(strata.boxes, work.more, N0, n_more)
    for i in range(depth):
        ask_for_branch(strata, work.branches[i])
    return n_more, depth, n_splits, at, n_lists


@inlined
def children_reached(bounds, branch, side, message):
    """Bit i: every field of the bound of child i is <= the message's."""
    words = bounds[branch, side]
    low, high = compare_eight(words, N0, message, ONES, GUARD), compare_eight(words, N8, message, ONES, GUARD)
    return (low & HIT_BITS) | (high & HIT_BITS) << N8


@inlined
def list_leaves(children, branch, bits, items, n_items):
    """The leaves at the set bits, as items: lane << 8 | lanes in use."""
    while bits != N0:
        word = np.uint64(children[branch, np.uint64(trailing_zeros(bits))])
        items[n_items] = (word & CHILD_BITS) | ((word >> N5) << N4) << N8
        n_items += N1
        bits &= bits - N1
    return n_items


@inlined
def open_leaves(strata, branch, message, more, work, n_copies, n_lone, n_more):
    """Children of a branch of level 1: core hits of lone lists are copied, others in reach are looked at."""
    bits = children_reached(strata.bounds, branch, 0, message)
    if more:
        before = n_more
        n_more = list_leaves(strata.children, branch, bits, work.more, n_more)
        ask_for_boxes(strata.boxes, work.more, before, n_more)
        return n_copies, n_lone, n_more
    core = bits & children_reached(strata.bounds, branch, 1, message - ONES)
    before = n_lone
    n_lone = list_leaves(strata.children, branch, bits & ~core, work.lone, n_lone)
    ask_for_boxes(strata.boxes, work.lone, before, n_lone)
    before = n_copies
    n_copies = list_leaves(strata.children, branch, core, work.copies, n_copies)
    for i in range(before, n_copies):
        prefetch(strata.entries, work.copies[i] >> N8)
    return n_copies, n_lone, n_more


@inlined
def open_branch(strata, branch, level, message, more, branches, tail):
    """Children in reach of a branch of a higher level: branches to visit."""
    bits = children_reached(strata.bounds, branch, 0, message)
    while bits != N0:
        child = np.uint64(strata.children[branch, np.uint64(trailing_zeros(bits))]) >> N5
        branches[tail] = branch_item(child, level - N1, more)
        ask_for_branch(strata, branches[tail])
        tail += N1
        bits &= bits - N1
    return tail


@inlined
def copy_leaves(strata, copies, n_copies, found, n_found):
    for i in range(n_copies):
        lane = copies[i] >> N8
        pick_eight(strata.entries, lane, HIT_BITS, found, n_found)
        pick_eight(strata.entries, lane + N8, HIT_BITS, found, n_found + N8)
        n_found += copies[i] & USED_BITS
    return n_found


@inlined
def look(boxes, message, items, n_items, hits, n_hits, what):
    """Lanes with a box in reach, by eight: see `Scratch.hits`; `what` will be needed of those."""
    for i in range(n_items):
        lane, used = items[i] >> N8, items[i] & USED_BITS
        for first in range(N0, used, N8):
            in_use = (N1 << min(used - first, N8)) - N1
            bits = compare_eight(boxes, lane + first, message, ONES, GUARD) & (in_use | in_use << N8)
            hits[n_hits] = (lane + first) << N16 | bits
            if bits != N0:
                prefetch(what, lane + first)
                prefetch(what, lane + first + N7)
                n_hits += N1
    return n_hits


@inlined
def take_lone(strata, entries, hits, last, lanes, found, n_found):
    """Lanes of lone lists: a strict hit is certain, equal cells are left to the exact boxes. How many of each."""
    n_lanes = N0
    for i in range(last):
        lane, certain = hits[i] >> N16, (hits[i] >> N8) & HIT_BITS
        n_found += pick_eight(strata.entries, lane, certain, found, n_found)
        doubtful = (hits[i] & HIT_BITS) ^ certain
        while doubtful != N0:
            lanes[n_lanes] = lane + np.uint64(trailing_zeros(doubtful))
            prefetch(entries.boxes, strata.entries[lanes[n_lanes]])
            n_lanes += N1
            doubtful &= doubtful - N1
    return n_found, n_lanes


@inlined
def sift_more(strata, seen, hits, first, last, lanes, n_lanes):
    """Lanes of other lists whose further terms seem to be there, behind those of lone ones: the end of both."""
    begin = n_lanes
    for i in range(first, last):
        lane, bits = hits[i] >> N16, hits[i] & HIT_BITS
        while bits != N0:
            at = lane + np.uint64(trailing_zeros(bits))
            lanes[n_lanes] = at
            n_lanes += others_seen(seen, strata.others[at])
            bits &= bits - N1
    for i in range(begin, n_lanes):
        prefetch(strata.entries, lanes[i])
    return n_lanes


@inlined
def verify_lone(strata, entries, rows, row, lanes, last, found, n_found):
    for i in range(last):
        entry = strata.entries[lanes[i]]
        found[n_found] = entry
        n_found += np.uint64(overlaps(entries.boxes, np.uint64(entry), rows.boxes, row))
    return n_found


@inlined
def ask_for_terms(strata, entries, lanes, first, last):
    """The table's terms of lanes that ask for more than they can name."""
    for i in range(first, last):
        word = strata.others[lanes[i]]
        if word < 0:
            prefetch(entries.terms, where_terms_are(word))


@inlined
def verify_more(strata, entries, rows, row, message, work, first, last, found, n_found):
    """The exact last step for lanes that are not yet certain."""
    ask_for_terms(strata, entries, work.lanes, first, last)
    for i in range(first, last):
        lane = work.lanes[i]
        entry = strata.entries[lane]
        found[n_found] = entry
        number = np.uint64(entry)
        if has_others(work, entries, number, strata.others[lane], rows, row):
            if is_certain(strata.boxes[lane], message) or overlaps(entries.boxes, number, rows.boxes, row):
                n_found += N1
    return n_found
