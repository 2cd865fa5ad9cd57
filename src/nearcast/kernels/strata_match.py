"""Matching with `strata`: message terms to lists, lists to leaves, leaves to entries, exact checks last.

Each step reads one work list and writes the next, so that the memory which the next step needs can be asked
for in time. Tests are made for eight boxes at once and give a word of bits: what a processor cannot predict
(does this box hold the message?) then costs arithmetic instead of stalls. Numbers are unsigned throughout, for
a signed index would be checked for a negative value at every access.

    terms -> keys ---> runs of lone lists --------------------------> look -> found
                \\--> runs of other lists ---------------------------> look -> mark -> verify -> found
                 \\-> branches -> branches -> leaves in reach -------> look (one of the two above)
                             \\          \\-> leaves that are core hits -> copy -> found
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import inlined, kernel, prefetch
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.strata_layout import LANES, RUN, packed_message
from nearcast.kernels.strata_steps import (
    ITEM_BITS,
    N0,
    N1,
    N8,
    TERMS_AT_A_TIME,
    USED_BITS,
    WORK,
    copy_leaves,
    look,
    open_branch,
    open_classes,
    open_leaves,
    open_lists,
    sift_more,
    take_lone,
    verify_lone,
    verify_more,
)
from nearcast.kernels.strata_terms import clear_seen, set_seen

ENOUGH_WORK = np.uint64(WORK - 2 * LANES)
MANY_BRANCHES = np.uint64(3 * WORK)
MOST_LANES = np.uint64(RUN)
ALL_FOUND = np.uint64(1 << 62)  # what a row says that found no room in the output


@inlined
def lanes_of(items, n_items):
    lanes = N0
    for i in range(n_items):
        lanes += items[i] & USED_BITS
    return lanes


@inlined
def ask_for_rows(strata, rows, first, last):
    """The rows of the terms [first, last) will be read soon,"""
    for i in range(first, last):
        prefetch(strata.rows, min(np.int64(rows.terms[i]), len(strata.rows)))


@inlined
def ask_for_keys(strata, rows, first, last):
    """and the keys: their rows are at hand by now."""
    for i in range(first, last):
        if rows.terms[i] < len(strata.rows):
            prefetch(strata.keys, max(np.int64(strata.rows[rows.terms[i]]), 0))


@inlined
def ask_for_messages(strata, rows, row):
    """While one message is served, the keys of the next and the rows of the one after that are on their way."""
    if row + 2 < len(rows.boxes):
        first = rows.term_from[row + 2]
        ask_for_rows(strata, rows, first, min(first + 2 * TERMS_AT_A_TIME, rows.term_from[row + 3]))
    if row + 1 < len(rows.boxes):
        first = rows.term_from[row + 1]
        ask_for_keys(strata, rows, first, min(first + TERMS_AT_A_TIME, rows.term_from[row + 2]))


@inlined
def probe_row(strata, entries, rows, row, message, work, found, n_found, counters):
    """All entries for one message, or ALL_FOUND where there is no room for them."""
    nodes, candidates = N0, N0
    at, last = rows.term_from[row], rows.term_from[row + 1]
    n_lone, n_more, head, tail, n_splits, at_class = N0, N0, N0, N0, N0, np.int64(0)
    while True:
        n_copies = N0
        if head == tail and n_splits > N0:
            n_more, tail, n_splits, at_class, opened = open_classes(
                strata, rows, row, message, work, n_splits, at_class
            )
            nodes += opened
            head = N0
        elif head == tail:
            upto = min(at + TERMS_AT_A_TIME, last)
            following = min(upto + TERMS_AT_A_TIME, last)
            ask_for_rows(strata, rows, following, min(following + TERMS_AT_A_TIME, last))
            ask_for_keys(strata, rows, upto, following)
            n_lone, n_more, tail, n_splits = open_lists(strata, rows, at, upto, message, work)
            nodes += np.uint64(upto - at)
            at, head = upto, N0
        while head < tail and max(n_copies, max(n_lone, n_more)) <= ENOUGH_WORK:
            if tail < MANY_BRANCHES:
                item = work.branches[head]
                head += N1
            else:  # no room to go on in breadth: in depth, it takes no more than 15 a level
                tail -= N1
                item = work.branches[tail]
            branch, level, more = item >> N8, (item & ITEM_BITS) >> N1, item & N1
            nodes += N1
            if level > N1:
                tail = open_branch(strata, branch, level, message, more, work.branches, tail)
            else:
                n_copies, n_lone, n_more = open_leaves(strata, branch, message, more, work, n_copies, n_lone, n_more)
        items = n_copies + n_lone + n_more
        if n_found + MOST_LANES * (items + N1) > np.uint64(len(found)):
            return ALL_FOUND
        nodes += items
        candidates += lanes_of(work.lone, n_lone) + lanes_of(work.more, n_more) + lanes_of(work.copies, n_copies)
        n_found = copy_leaves(strata, work.copies, n_copies, found, n_found)
        middle = look(strata.boxes, message, work.lone, n_lone, work.hits, N0, strata.entries)
        end = look(strata.boxes, message, work.more, n_more, work.hits, middle, strata.others)
        n_found, n_lanes = take_lone(strata, entries, work.hits, middle, work.lanes, found, n_found)
        end = sift_more(strata, work.seen, work.hits, middle, end, work.lanes, n_lanes)
        n_found = verify_lone(strata, entries, rows, row, work.lanes, n_lanes, found, n_found)
        n_found = verify_more(strata, entries, rows, row, message, work, n_lanes, end, found, n_found)
        n_lone, n_more = N0, N0
        if head == tail and at == last and n_splits == N0:
            break
    counters[NODES] += np.int64(nodes)
    counters[CANDIDATES] += np.int64(candidates)
    return n_found


@kernel
def probe(strata, entries, rows, first_row, frame, work, found, counters):
    """Append all (row, entry) pairs from first_row on. Returns (next row, number found).

    A row is written whole or not at all; counters are added when it is complete.
    """
    n_found = N0
    for row in range(first_row, len(rows.boxes)):
        row_from = n_found
        message = packed_message(rows.boxes, row, frame)
        ask_for_messages(strata, rows, row)
        set_seen(work.seen, work.terms, rows, row)
        n_found = probe_row(strata, entries, rows, row, message, work, found.entries, n_found, counters)
        clear_seen(work.seen, rows, row)
        if n_found == ALL_FOUND:
            work.classes[:] = N0
            return row, np.int64(row_from)
        for i in range(row_from, n_found):
            found.rows[i] = row
    return len(rows.boxes), np.int64(n_found)
