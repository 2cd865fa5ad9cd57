"""LFilter: Algorithm 3, list pruning and HybridPrune (CIKM'15 5.2, 5.4, Figure 6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.lfilter_costs import expected_leaves, prefers_pruning, quadtree_cost, trie_cost
from nearcast.kernels.lists import Lists
from nearcast.kernels.mbr_trie import (
    FULL,
    PROBE_COST,
    Scratch,
    match_row,
    next_pair,
    open_frame,
    report_leaf,
    sorted_tokens,
    steps,
)
from nearcast.kernels.pivotal_quadtree import Quad
from nearcast.kernels.pt_quadtree import Walk, filter_row, is_point, mark, report_run, verify_row
from nearcast.kernels.token_trie import COUNT, HIGH, LEAF, LOW, NONE, ROOT, Trie

ANY, TRIE, QUADTREE = 0, 1, 2  # algorithm: by cost, always Algorithm 1, always the quadtree first
HYBRID, LISTS, DIRECT = 0, 1, 2  # verification: by cost, always list pruning, never
BY_TRIE, BY_QUADTREE, EXPECTED, CHOSEN, PRUNED, VERIFIED = range(6)
"""Tally: messages by algorithm; of the second kind, leaves expected and chosen; nodes pruned or verified."""
N_TALLY = 6


class Both(NamedTuple):
    """The two structures."""

    trie: Trie
    leaf_lists: Lists  # entries by leaf of the trie
    label_of: NDArray[np.int32]  # [entries]  id of its leaf
    quad: Quad
    node_lists: Lists  # entries by node of the quadtree, ascending by id
    sets: Lists  # cover set of node n: 2n; non-cover set: 2n + 1


class Work(NamedTuple):
    """What one row is worked on with."""

    trie: Scratch
    walk: Walk
    span: NDArray[np.int64]  # [height + 1, quadtree nodes, 3]  by depth: sublists left, from, to, their node
    n_spans: NDArray[np.int64]  # [height + 1]  sublists at each depth
    tally: NDArray[np.float64]  # [N_TALLY]  of one row


def work(scratch: Scratch, walk: Walk) -> Work:
    levels, n_nodes = len(scratch.frames), len(walk.chosen)
    span = np.empty((levels, n_nodes, 3), dtype=np.int64)
    return Work(scratch, walk, span, np.zeros(levels, dtype=np.int64), np.zeros(N_TALLY, dtype=np.float64))


@primitive
def first_above(both, low, high, label):
    """First position of an id-ordered list's part low:high with an id above label."""
    while low < high:
        middle = (low + high) >> 1
        if both.label_of[both.node_lists.pool[middle]] <= label:
            low = middle + 1
        else:
            high = middle
    return low


@primitive
def take_lists(both, work, n_chosen):
    """The lists of the candidate nodes, whole, at depth 0."""
    for i in range(n_chosen):
        node = work.walk.chosen[i]
        work.span[0, i, 0] = both.node_lists.start[node]
        work.span[0, i, 1] = both.node_lists.start[node] + both.node_lists.length[node]
        work.span[0, i, 2] = node
    work.n_spans[0] = n_chosen


@primitive
def prune_lists(both, work, depth, node):
    """ListPruning: what the lists at a depth have in a trie node's id range, one depth below. Is it any?"""
    low, high = both.trie.links[node, LOW], both.trie.links[node, HIGH]
    n = 0
    for i in range(work.n_spans[depth]):
        start = first_above(both, work.span[depth, i, 0], work.span[depth, i, 1], low - 1)
        end = first_above(both, start, work.span[depth, i, 1], high)
        if start < end:
            work.span[depth + 1, n, 0] = start
            work.span[depth + 1, n, 1] = end
            work.span[depth + 1, n, 2] = work.span[depth, i, 2]
            n += 1
    work.n_spans[depth + 1] = n
    return n > 0


@primitive
def report_lists(both, work, depth, once, entries, rows, row, found, n_found):
    """PT-QUADTREE-VERIFY of the sublists at a depth."""
    for i in range(work.n_spans[depth]):
        start, end, node = work.span[depth, i, 0], work.span[depth, i, 1], work.span[depth, i, 2]
        work.trie.work[CANDIDATES] += end - start
        n_found = report_run(
            both.quad, node, both.node_lists.pool, start, end, once, work.walk.marks, entries, rows, row,
            found, n_found,
        )  # fmt: skip
        if n_found == FULL:
            return n_found
    return n_found


@primitive
def report_own(both, work, depth, leaf, once, entries, rows, row, found, n_found):
    """The leaf case: what the sublists have with the leaf's id, or its own list if that is shorter."""
    n, label = np.int64(0), both.trie.label[leaf]
    for i in range(work.n_spans[depth]):
        start = work.span[depth, i, 0]
        n += first_above(both, start, work.span[depth, i, 1], label) - start
    if n >= both.leaf_lists.length[leaf]:
        work.trie.work[CANDIDATES] += both.leaf_lists.length[leaf]
        return report_leaf(both.leaf_lists, leaf, entries, rows, row, found, n_found)
    work.trie.work[CANDIDATES] += n
    for i in range(work.n_spans[depth]):
        start, node = work.span[depth, i, 0], work.span[depth, i, 2]
        end = first_above(both, start, work.span[depth, i, 1], label)
        n_found = report_run(
            both.quad, node, both.node_lists.pool, start, end, once, work.walk.marks, entries, rows, row,
            found, n_found,
        )  # fmt: skip
        if n_found == FULL:
            return n_found
    return n_found


@primitive
def is_worth_pruning(both, costs, how, node, depth, given, work):
    """Is it cheaper to go on with the node's children than to verify its sublists?"""
    if how == LISTS:
        return True
    total, logs = 0.0, 0.0
    for i in range(work.n_spans[depth]):
        length = work.span[depth, i, 1] - work.span[depth, i, 0]
        total += length
        logs += steps(length)
    return prefers_pruning(both.trie, costs, node, depth, given, logs, total)


@primitive
def visit(both, costs, how, node, depth, given, work, once, entries, rows, row, found, n_found):
    """One call of HybridPrune: (new number found or FULL, do its children follow?)."""
    work.trie.work[NODES] += 1
    leaf = both.trie.links[node, LEAF]
    follow = given > 0 and both.trie.links[node, COUNT] > 0
    if follow and not is_worth_pruning(both, costs, how, node, depth, given, work):
        work.tally[VERIFIED] += 1
        return report_lists(both, work, depth, once, entries, rows, row, found, n_found), False
    if leaf != NONE:
        n_found = report_own(both, work, depth, leaf, once, entries, rows, row, found, n_found)
    if follow:
        work.tally[PRUNED] += 1
        open_frame(both.trie, work.trie.frames, depth, node, given, PROBE_COST)
    return n_found, follow


@primitive
def hybrid_row(both, costs, how, given, work, once, entries, rows, row, found, n_found):
    """HybridPrune (Figure 6) from the root on, with an explicit path; the new number found, or FULL."""
    node, depth, rest = np.int64(ROOT), 0, np.int64(given)
    while True:
        n_found, follow = visit(both, costs, how, node, depth, rest, work, once, entries, rows, row, found, n_found)
        if n_found == FULL:
            return n_found
        if not follow:
            depth -= 1
        node = np.int64(NONE)
        while depth >= 0 and node == NONE:
            node, rest = next_pair(both.trie, work.trie.frames, depth, work.trie.tokens, rows, row)
            if node == NONE:
                depth -= 1
            elif not prune_lists(both, work, depth, node):
                node = np.int64(NONE)
        if depth < 0:
            return n_found
        depth += 1


@primitive
def quadtree_row(both, costs, how, given, work, once, entries, rows, row, found, n_found):
    """Lines 7 to 9 of Algorithm 3: filter by the quadtree, then verify with the help of the trie."""
    n_chosen, n_visited = filter_row(both.quad, both.node_lists, both.sets, rows, row, work.walk)
    work.trie.work[NODES] += n_visited
    work.tally[CHOSEN] += n_chosen
    if how == DIRECT:
        n_found, candidates = verify_row(
            both.quad, both.node_lists, entries, rows, row, once, work.walk, n_chosen, found, n_found
        )
        work.trie.work[CANDIDATES] += candidates
        return n_found
    if n_chosen == 0:
        return n_found
    take_lists(both, work, n_chosen)
    mark(work.walk.marks, rows, row, True)
    once = once or is_point(rows.boxes, row)
    n_found = hybrid_row(both, costs, how, given, work, once, entries, rows, row, found, n_found)
    mark(work.walk.marks, rows, row, False)
    return n_found


@primitive
def takes_trie(costs, algorithm, given, leaves):
    """Line 4 of Algorithm 3, unless the choice was made before."""
    if algorithm != ANY:
        return algorithm == TRIE
    return quadtree_cost(costs, given, leaves) > trie_cost(costs, given)


@kernel
def probe(both, costs, key_of, algorithm, how, once, entries, rows, work, first_row, found, counters, tally):
    """Algorithm 3 for all rows from first_row on; (next row, number found)."""
    n_found = 0
    for row in range(first_row, len(rows.boxes)):
        work.trie.work[:] = 0
        work.tally[:] = 0.0
        given = sorted_tokens(key_of, rows, row, work.trie.tokens)
        leaves = expected_leaves(costs, rows, row)
        if takes_trie(costs, algorithm, given, leaves):
            work.tally[BY_TRIE] = 1
            after = match_row(
                both.trie, both.leaf_lists, entries, rows, row, given, PROBE_COST, work.trie, found, n_found
            )
        else:
            work.tally[BY_QUADTREE] = 1
            work.tally[EXPECTED] = leaves
            after = quadtree_row(both, costs, how, given, work, once, entries, rows, row, found, n_found)
        if after == FULL:
            return row, n_found
        n_found = after
        counters[CANDIDATES] += work.trie.work[CANDIDATES]
        counters[NODES] += work.trie.work[NODES]
        tally += work.tally
    return len(rows.boxes), n_found
