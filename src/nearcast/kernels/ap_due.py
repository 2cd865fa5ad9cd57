"""Which nodes of an AP-Tree are due to be divided, to become a leaf or to be built again (VLDBJ'17 3.3.5).

A change marks the nodes that are due and, on their way up, the nodes above them; `find_due` follows the marks,
`gather` empties the due nodes, and `ap_build.grow` builds them again.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ap_layout import (
    BELOW,
    BORN,
    BUILT,
    CHANGED,
    DUE,
    DUMMY,
    ENTRY,
    ENTRY_MASK,
    FINE,
    KEYWORD,
    NOTHING,
    ROOT,
    START,
    WEIGHT,
    free_run_of,
    is_leaf,
    kind_of,
    n_parts_of,
    size_of,
    weight_of,
)
from nearcast.kernels.ap_task import HIGH, LOW, N_TASK, NODE, TRIE, child_task, root_task
from nearcast.kernels.jit import kernel, primitive

MIN_SHARE = 1000  # a node is built again if it covers one in so many subscriptions (VLDBJ'17 5.1.3: 0.1 %)
MIN_CHANGED = 2  # divergence is looked at when one in so many entries of a node has changed since


@primitive
def mark_above(tree, trail, at):
    """Let the nodes from row `at` of a trail upwards know that one below is due."""
    while at != NOTHING:
        if tree.care[trail[at, NODE]] == FINE:
            tree.care[trail[at, NODE]] = BELOW
        at = trail[at, LOW]


@primitive
def note_change(tree, plan, trail, at, by):
    """An entry came or went below an inner node: it may have to become a leaf, or to be built again."""
    node = trail[at, NODE]
    header = np.int64(tree.parts[node, START])
    tree.parts[header, WEIGHT] += by
    tree.parts[header, CHANGED] += 1
    weight = np.int64(tree.parts[header, WEIGHT])
    is_due = by < 0 and is_small(plan, kind_of(tree, node), weight)
    if tree.parts[header, CHANGED] * MIN_CHANGED > tree.parts[header, BUILT]:
        tree.parts[header, CHANGED] = 0
        if weight * MIN_SHARE >= weight_of(tree, ROOT):
            is_due = is_due or divergence(tree, node) > plan.divergence
    if is_due:
        tree.care[node] = DUE
        mark_above(tree, trail, trail[at, LOW])


@primitive
def is_small(plan, kind, weight):
    """Whether an inner node should be a leaf: half of what a leaf may hold, so that it does not flip at once."""
    limit = 2 if plan.priority == TRIE and kind == KEYWORD else max(2, plan.threshold)
    return 2 * weight <= limit


@primitive
def divergence(tree, node):
    """Kullback-Leibler divergence of the weights of the parts now from those when the node was built.

    One entry is added to every part, before and now: a part that was or became empty would make it infinite.
    """
    first = np.int64(tree.parts[node, START]) + DUMMY
    last = first + n_parts_of(tree, node) + 1
    before, now, total = 0.0, 0.0, 0.0
    for part in range(first, last):
        before += tree.parts[part, BORN] + 1
        now += weight_of(tree, part) + 1
    for part in range(first, last):
        old = (tree.parts[part, BORN] + 1) / before
        total += old * np.log(old * now / (weight_of(tree, part) + 1))
    return total


@primitive
def is_due(tree, node):
    if is_leaf(tree, node):
        return size_of(tree, node) > tree.care[node]
    return tree.care[node] == DUE


@kernel
def find_due(tree, plan, tasks):
    """The topmost nodes that are due, as tasks without entries, HIGH being their weight; how many.

    NOTHING without room; else the marks above them are taken away.
    """
    root_task(tasks[0], 0)
    n, at = 1, 0
    while at < n:
        node = tasks[at, NODE]
        if not is_leaf(tree, node) and tree.care[node] == BELOW:
            first = np.int64(tree.parts[node, START]) + DUMMY
            for part in range(first, first + n_parts_of(tree, node) + 1):
                if is_due(tree, part) or (not is_leaf(tree, part) and tree.care[part] == BELOW):
                    if n == len(tasks):
                        return NOTHING
                    child_task(tree, plan.recut, tasks[at], part, 0, 0, tasks[n])
                    n += 1
        at += 1
    n_due = 0
    for at in range(n):
        node = tasks[at, NODE]
        if is_due(tree, node):
            for column in range(N_TASK):
                tasks[n_due, column] = tasks[at, column]
            tasks[n_due, HIGH] = weight_of(tree, node)
            n_due += 1
        elif not is_leaf(tree, node):
            tree.care[node] = FINE
    return n_due


@kernel
def gather(tree, tasks, n_tasks, work, stamps, stamp, path):
    """Take the entries below the nodes of tasks out, each node's once, and give their runs back.

    stamps[entry] are below `stamp` before. path: int64 [MAX_DEPTH + 2, 2].
    """
    top = np.int64(0)
    for i in range(n_tasks):
        tasks[i, LOW] = top
        top = empty_node(tree, tasks[i, NODE], work, top, stamps, stamp + i, path)
        tasks[i, HIGH] = top


@primitive
def empty_node(tree, node, work, top, stamps, stamp, path):
    """Depth first: a row of `path` is an inner node and the part of it that comes next."""
    depth = np.int64(0)
    path[0, 0], path[0, 1] = node, 0
    while depth >= 0:
        node, part = path[depth, 0], path[depth, 1]
        if is_leaf(tree, node):
            start = np.int64(tree.parts[node, START])
            for at in range(start, start + size_of(tree, node)):
                entry = tree.pool[at, ENTRY] & ENTRY_MASK
                if stamps[entry] != stamp:
                    stamps[entry] = stamp
                    work[top] = entry
                    top += 1
        elif part <= n_parts_of(tree, node):
            path[depth, 1] += 1
            depth += 1
            path[depth, 0], path[depth, 1] = np.int64(tree.parts[node, START]) + DUMMY + part, 0
            continue
        free_run_of(tree, node)
        depth -= 1
    return top
