"""Split terms of `strata`: heavy lists in classes by the second term, see `strata_layout`.

Which terms are split is the cost model's choice (`indexes.strata_cost`). No answer depends on it: a message opens the
list of the term itself and the classes of all its terms, so that entries may move from one to the other while
others match.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.strata_layout import (
    FULL_CLASS,
    MORE,
    N_SPLITS,
    NEVER,
    ROW_TOP,
    SPLIT_COLUMNS,
    SPLIT_LISTS,
    SPLIT_MASK,
    SPLIT_ROW,
    SPLITS,
    USED,
)


@primitive
def split_at(split):
    """Where the numbers of a split begin in `state`."""
    return SPLITS + SPLIT_COLUMNS * split


@primitive
def row_of(strata, term):
    """The row of a term that has one; 0 where it has none."""
    row = np.int64(strata.rows[term])
    return row if row >= 0 else strata.state[split_at(~row) + SPLIT_ROW]


@primitive
def take_rows(strata, count):
    """New rows with empty lists; the caller sees to room."""
    row = strata.state[ROW_TOP]
    strata.state[ROW_TOP] = row + count
    for i in range(row, row + count):
        strata.keys[i, 0] = NEVER
        strata.keys[i, 1] = NEVER
        strata.keys[i, 2] = 0
        strata.keys[i, 3] = 0
    return row


@primitive
def class_list(strata, term, second):
    """The list for this second term of a split term."""
    at = split_at(~np.int64(strata.rows[term]))
    return strata.state[at + SPLIT_LISTS] + (second & strata.state[at + SPLIT_MASK])


@primitive
def list_for(strata, term, more, second):
    """The list of an entry with this key; a term without a row gets one."""
    if strata.rows[term] == 0:
        strata.rows[term] = take_rows(strata, 1)
    if more and strata.rows[term] < 0:
        return class_list(strata, term, second)
    return 2 * row_of(strata, term) + more


@kernel
def lists_for(strata, keys, seconds, lists):
    """The list of each entry by its key and second term (-1: it has none)."""
    for i in range(len(keys)):
        more = np.int64(seconds[i] >= 0)
        lists[i] = list_for(strata, np.int64(keys[i]), more, np.int64(seconds[i]))


@kernel
def split_terms(strata, terms, masks):
    """Give these terms classes, empty ones; the caller sees to room for rows and splits."""
    for i in range(len(terms)):
        term = terms[i]
        if strata.rows[term] == 0:
            strata.rows[term] = take_rows(strata, 1)
        at = split_at(strata.state[N_SPLITS])
        strata.state[at + SPLIT_ROW] = row_of(strata, term)
        strata.state[at + SPLIT_LISTS] = 2 * take_rows(strata, (masks[i] + 1) >> 1)
        strata.state[at + SPLIT_MASK] = masks[i]
        strata.rows[term] = ~strata.state[N_SPLITS]
        strata.state[N_SPLITS] += 1


@kernel
def entries_of_list(strata, lst, stack, found):
    """Numbers of the entries of one list, as far as `found` has room: how many."""
    root = np.int64(strata.keys[lst >> 1, 2 + (lst & MORE)])
    level, n = (root >> 16) & 0xFF, np.int64(0)
    if level == 0:
        for lane in range(root >> 24, (root >> 24) + min(root & 0xFF, len(found))):
            found[n] = strata.entries[lane]
            n += 1
        return n
    stack[0, 0], stack[0, 1] = root >> 24, level
    depth = 1
    while depth:
        depth -= 1
        branch, level = stack[depth, 0], stack[depth, 1]
        for i in range(strata.children[branch, USED]):
            word = np.int64(strata.children[branch, i])
            if level > 1:
                stack[depth, 0], stack[depth, 1] = word >> 5, level - 1
                depth += 1
                continue
            lane = (word >> 5) << FULL_CLASS
            for j in range(lane, lane + (word & 31)):
                if n < len(found):
                    found[n] = strata.entries[j]
                    n += 1
    return n
