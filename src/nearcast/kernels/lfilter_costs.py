"""The cost model of LFilter: equations 1, 3, 5 and 6 (CIKM'15 3.3, 4.2, 5.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive
from nearcast.kernels.mbr_trie import steps
from nearcast.kernels.pt_quadtree import is_point
from nearcast.kernels.token_trie import COUNT

DISTINCT, S_AVG, H_Q, AVG_RT = range(4)  # Costs.figures: D, tokens a subscription, levels, tokens a node


class Costs(NamedTuple):
    """What the equations know of the two structures."""

    levels: NDArray[np.float64]  # [H_t + 3]  L_i: nodes of the trie by level; the last two are 0
    figures: NDArray[np.float64]  # [4]        DISTINCT, S_AVG, H_Q, AVG_RT
    regions: NDArray[np.float64]  # [*, 4]     finite regions of the k-th level of the quadtree
    leaves: NDArray[np.float64]  # [*]        leaves below each


@primitive
def trie_cost(costs, n):
    """Cost_T^F, equation 1, for n tokens: level by level the cheaper way to find the children."""
    total, reached = 0.0, 1.0
    share = min(1.0, n / max(1.0, costs.figures[DISTINCT]))
    for i in range(1, len(costs.levels) - 2):
        parents = max(1.0, costs.levels[i - 1])
        fanout = costs.levels[i] / parents
        total += min(steps(n) * costs.levels[i], n * steps(fanout) * parents) * reached
        reached *= share
    return total


@primitive
def overlap_share(region, i, boxes, row):
    """Which share of a region a box covers; a region without extent in a direction counts as covered in it."""
    share = 1.0
    for side in range(2):
        low = max(region[i, side], boxes[row, side])
        high = min(region[i, side + 2], boxes[row, side + 2])
        extent = region[i, side + 2] - region[i, side]
        if high < low:
            return 0.0
        if extent > 0:
            share *= (high - low) / extent
    return share


@primitive
def expected_leaves(costs, rows, row):
    """cand_Q: 1 for a point, else the leaves below the k-th level by share of overlap (CIKM'15 5.3)."""
    if is_point(rows.boxes, row):
        return 1.0
    total = 0.0
    for i in range(len(costs.leaves)):
        total += costs.leaves[i] * overlap_share(costs.regions, i, rows.boxes, row)
    return max(1.0, total)


@primitive
def quadtree_cost(costs, n, leaves):
    """Cost_Q^F, equation 3: every level asks its pivotal sets, the cheaper side probing."""
    size = costs.figures[AVG_RT]
    return costs.figures[H_Q] * leaves * min(steps(n) * size, steps(size) * n)


@primitive
def prefers_pruning(trie, costs, node, level, given, lists, total):
    """C_L <= C_V, equations 5 and 6, for sublists of `total` ids with `lists`, the sum of their logarithms.

    L_{i+1} and L_{i+2} are taken below this node: its own children, and theirs by the mean fanout.
    """
    children = np.float64(trie.links[node, COUNT])
    level = min(level, len(costs.levels) - 3)
    below = children * costs.levels[level + 2] / max(1.0, costs.levels[level + 1])
    share = given / max(1.0, costs.figures[DISTINCT])
    by_child = (children + below * share) * steps(given)
    by_token = (steps(children) + steps(below) * share) * given
    return min(by_child, by_token) + lists + total <= total * costs.figures[S_AVG] * steps(given)
