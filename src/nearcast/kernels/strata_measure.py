"""How long the lists of `strata` are."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel
from nearcast.kernels.strata_classes import row_of, split_at
from nearcast.kernels.strata_layout import (
    FULL_CLASS,
    LANE_TOP,
    LANES,
    MORE,
    PARENT,
    SPLIT_LISTS,
    SPLIT_MASK,
)


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


@kernel
def by_term(strata, by_list, level_of, lengths, levels):
    """The same by term: [term, LONE or MORE]; the classes of a split term count as its more list."""
    for term in range(len(lengths)):
        if strata.rows[term] == 0:
            continue
        row = row_of(strata, term)
        for which in range(2):
            lengths[term, which] = by_list[2 * row + which]
            levels[term, which] = level_of[2 * row + which]
        if strata.rows[term] < 0:
            at = split_at(~np.int64(strata.rows[term]))
            first = strata.state[at + SPLIT_LISTS]
            for lst in range(first, first + strata.state[at + SPLIT_MASK] + 1):
                lengths[term, MORE] += by_list[lst]
                levels[term, MORE] = max(levels[term, MORE], level_of[lst])
