"""How long the lists of `strata` are."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel
from nearcast.kernels.strata_layout import FULL_CLASS, LANE_TOP, LANES, MORE, PARENT


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
