"""An IR-tree over messages (Cong et al., PVLDB 2009), as Skype re-evaluates with: a yardstick for `rank_shelf`.

A packed R-tree; every node has an inverted file that says, for each term below, which children have it and with which
greatest weight. Best first: a node's bound is that of its box and of these weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.distance import box_distance_plane
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.rank_heap import best_first, offer
from nearcast.kernels.rank_layout import MAX_DISTANCE, score_of

FAN_OUT = 50


class IrTree(NamedTuple):
    """Node i has children child_from[i] to child_from[i + 1]: nodes, or in a leaf rows. Node 0 is the root."""

    boxes: NDArray[np.float64]  # [nodes, 4]
    child_from: NDArray[np.int64]  # [nodes + 1]
    children: NDArray[np.int32]  # [*]
    is_leaf: NDArray[np.bool_]  # [nodes]
    entry_from: NDArray[np.int64]  # [nodes + 1]  entries of its inverted file, by term
    terms: NDArray[np.int32]  # [entries]
    child: NDArray[np.int32]  # [entries]  position among the node's children
    weights: NDArray[np.float64]  # [entries]  the greatest below it


class IrDesk(NamedTuple):
    """Room for a search."""

    hopes: NDArray[np.float64]  # [*]  of nodes that wait: a heap, greatest first
    waiting: NDArray[np.int32]  # [*]
    text: NDArray[np.float64]  # [FAN_OUT]  -1: the child shares no term


@primitive
def _push(desk, n, hope, node):
    i = n
    while i > 0 and desk.hopes[(i - 1) >> 1] < hope:
        desk.hopes[i], desk.waiting[i] = desk.hopes[(i - 1) >> 1], desk.waiting[(i - 1) >> 1]
        i = (i - 1) >> 1
    desk.hopes[i], desk.waiting[i] = hope, node
    return n + 1


@primitive
def _pop(desk, n):
    n -= 1
    hope, node, i = desk.hopes[n], desk.waiting[n], 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and desk.hopes[child + 1] > desk.hopes[child]:
            child += 1
        if desk.hopes[child] <= hope:
            break
        desk.hopes[i], desk.waiting[i] = desk.hopes[child], desk.waiting[child]
        i = child
    desk.hopes[i], desk.waiting[i] = hope, node
    return n


@primitive
def _read_lists(tree, node, wants, slot, desk):
    """Greatest textual similarity below each child."""
    for i in range(tree.child_from[node + 1] - tree.child_from[node]):
        desk.text[i] = -1.0
    last, low = tree.entry_from[node + 1], wants.term_from[slot]
    at = tree.entry_from[node]
    for p in range(low, low + wants.term_count[slot]):
        at = lower_bound(tree.terms, at, last, wants.terms[p])
        while at < last and tree.terms[at] == wants.terms[p]:
            i = tree.child[at]
            desk.text[i] = max(desk.text[i], 0.0) + wants.weights[p] * tree.weights[at]
            at += 1


@primitive
def search(tree, wants, slot, posts, desk, found, most, space):
    """The best `most` of the tree's messages, which are points of a plane; how many."""
    alpha, x, y = wants.alpha[slot], wants.points[slot, 0], wants.points[slot, 1]
    n, waiting = 0, _push(desk, 0, np.inf, 0)
    while waiting > 0 and (n < most or desk.hopes[0] >= found.scores[0]):
        node = np.int64(desk.waiting[0])
        waiting = _pop(desk, waiting)
        _read_lists(tree, node, wants, slot, desk)
        first = tree.child_from[node]
        for i in range(tree.child_from[node + 1] - first):
            if desk.text[i] < 0.0:
                continue
            child = np.int64(tree.children[first + i])
            if tree.is_leaf[node]:
                n = offer(found, n, most, score_of(wants, slot, posts, child, space), child)
                continue
            b = tree.boxes
            distance = box_distance_plane(x, y, b[child, 0], b[child, 1], b[child, 2], b[child, 3])
            near = max(0.0, 1.0 - distance / space[MAX_DISTANCE])
            hope = alpha * near + (1.0 - alpha) * desk.text[i] + 1e-9
            if n < most or hope >= found.scores[0]:
                waiting = _push(desk, waiting, hope, child)
    best_first(found, n)
    return n


@kernel
def search_all(tree, wants, posts, desk, found, most, space, into):
    """Row i of `into`: the rows of the best messages of slot i, best first, then -1."""
    for slot in range(len(wants.k)):
        n = search(tree, wants, slot, posts, desk, found, most, space)
        for i in range(most):
            into[slot, i] = found.seqs[i] if i < n else -1
