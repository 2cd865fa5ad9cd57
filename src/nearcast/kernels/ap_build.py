"""Construction of an AP-Tree, whole or below a node (VLDBJ'17 3.3.4, Algorithm 4).

A task is a node to build and the entries that go below it: tasks[:n] is a stack, and so are their entries in
`work`. The last task owns the end of `work`; its children take its place there.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ap_cost import divide_evenly, divide_optimally, improve, line_of_words
from nearcast.kernels.ap_layout import (
    BORN,
    DUMMY,
    ENTRY,
    FIRST,
    HEIGHT,
    KEYWORD,
    LEAF,
    NOTHING,
    PART_RUNS,
    PARTS,
    POOL_RUNS,
    SPACE,
    START,
    SURE,
    capacity_for,
    has_room,
    set_node,
    take_run,
)
from nearcast.kernels.ap_motion import moving_cost
from nearcast.kernels.ap_space import A_LINE, build_space, divide_space
from nearcast.kernels.ap_task import (
    ADAPTIVE,
    ALLOWED,
    BY_KEYWORD,
    BY_SPACE,
    CUT,
    DEPTH,
    HIGH,
    KEYWORD_FIRST,
    LOW,
    N_TASK,
    NEXT_OFFSET,
    NODE,
    PROVEN,
    SPACE_FIRST,
    TRIE,
    child_task,
    least_size,
    open_node,
    write_element,
)
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.sorting import sort_by_bits

MAX_DEPTH = 40  # of a path: below it everything is a leaf


@kernel
def grow(tree, plan, entries, keys, tasks, n_tasks, work, desk):
    """Do the tasks, the last one first. Returns how many are left: not 0 if room ran out."""
    while n_tasks > 0:
        left = build_node(tree, plan, entries, keys, tasks, n_tasks - 1, work, desk)
        if left == NOTHING:
            return n_tasks
        n_tasks = left
    return n_tasks


@primitive
def build_node(tree, plan, entries, keys, tasks, at, work, desk):
    """Do task `at`, the last; its children become tasks. Returns the tasks left, or NOTHING without room."""
    task = desk.task
    for i in range(N_TASK):
        task[i] = tasks[at, i]
    size = task[HIGH] - task[LOW]
    offset, n_words, n_cuts, by_words = np.int64(NOTHING), np.int64(0), np.int64(0), np.inf
    columns, rows, by_cells = np.int64(1), np.int64(1), np.inf
    may_divide = size > least_size(plan) and task[DEPTH] < MAX_DEPTH
    if may_divide and task[ALLOWED] & BY_KEYWORD:
        offset, n_words = read_words(task, entries, keys, work, desk.packs[0], desk.packs[2], desk.counts)
        if offset != NOTHING:
            n_cuts, by_words = divide_words(plan, size, n_words, desk)
    wants_space = plan.priority == ADAPTIVE or plan.priority == SPACE_FIRST or offset == NOTHING
    if may_divide and size > plan.threshold and task[ALLOWED] & BY_SPACE and wants_space:
        columns, rows, by_cells = divide_space(tree, plan, entries, work, desk)
        by_cells += moving_cost(tree, plan, entries, n_words, work, desk)
    tree.state[HEIGHT] = max(tree.state[HEIGHT], task[DEPTH])
    kind = choose(plan.priority, size, by_words, by_cells)
    if kind == KEYWORD:
        return build_keyword(tree, plan, tasks, at, work, desk, offset, n_words, n_cuts)
    if kind == SPACE:
        return build_space(tree, plan, entries, tasks, at, work, desk, columns, rows)
    return build_leaf(tree, plan, entries, keys, task, at, work)


@primitive
def choose(priority, size, by_words, by_cells):
    """Algorithm 4, line 9; a partition that promises nothing is not made."""
    if priority == TRIE or priority == KEYWORD_FIRST:
        if by_words < np.inf:
            return KEYWORD
        return SPACE if by_cells < size else LEAF
    if min(by_words, by_cells) >= size:
        return LEAF
    if priority == SPACE_FIRST:
        return SPACE if by_cells < size else KEYWORD
    return KEYWORD if by_words < by_cells else SPACE


# -- keyword nodes -----------------------------------------------------------------------------------------


@primitive
def read_words(task, entries, keys, work, packs, spare, counts):
    """Sort the entries by their key at the first offset that tells them apart: (offset, how many have one).

    The others, whose keywords are exhausted, follow them in `packs`. Keywords that all entries share are
    passed over (Algorithm 4 would make a cut of everything). (NOTHING, 0): no offset tells them apart.
    """
    offset = task[NEXT_OFFSET]
    size = task[HIGH] - task[LOW]
    while True:
        n, end = np.int64(0), size
        least, most = np.int64(1) << 40, np.int64(-1)
        for i in range(task[LOW], task[HIGH]):
            entry = np.int64(work[i])
            if entries.term_count[entry] > offset:
                key = np.int64(keys[entries.term_from[entry] + offset])
                packs[n] = (key << 32) | entry
                least, most = min(least, key), max(most, key)
                n += 1
            else:
                end -= 1
                packs[end] = entry
        if n == 0:
            return np.int64(NOTHING), n
        if n < size or least < most:
            sort_by_bits(packs, n, 32, spare, counts)
            return offset, n
        offset += 1


@primitive
def divide_words(plan, size, n_words, desk):
    """Cut the sorted keywords: (number of cuts, expected cost). desk.borders[CUT] holds rows of desk.packs."""
    line, cut = desk.line, desk.borders[CUT]
    words = np.int64(line_of_words(desk.packs[0], n_words, plan.chances, line))
    n_cuts = words
    if plan.priority != TRIE:
        n_cuts = min(words, plan.fanout, max(2, n_words // A_LINE))
    if n_cuts == words:
        for i in range(words + 1):
            cut[i] = i
    elif plan.optimal:
        divide_optimally(line, words, n_cuts, cut, desk.best)
    else:
        divide_evenly(line, words, n_cuts, cut)
        improve(line, n_cuts, cut)
    cost = float(size - n_words)  # the dummy cut is always explored
    for i in range(n_cuts):
        hit = min(1.0, line.chance[cut[i + 1]] - line.chance[cut[i]])  # 3.3.1 adds up what may exceed 1
        cost += (line.mass[cut[i + 1]] - line.mass[cut[i]]) * hit
    for i in range(n_cuts + 1):
        cut[i] = line.mass[cut[i]]
    return n_cuts, cost


@primitive
def build_keyword(tree, plan, tasks, at, work, desk, offset, n_words, n_cuts):
    """Algorithm 4, lines 10 to 16. Returns the tasks left, or NOTHING without room."""
    task, packs, cut = desk.task, desk.packs[0], desk.borders[CUT]
    size = task[HIGH] - task[LOW]
    if not has_room(tree, capacity_for(n_cuts + PARTS), 0) or at + n_cuts + 1 > len(tasks):
        return np.int64(NOTHING)
    start = take_run(tree.state, PART_RUNS, tree.parts[:, START], n_cuts + PARTS)
    open_node(tree, task[NODE], KEYWORD, start, n_cuts, n_cuts, size, offset, least_size(plan))
    for i in range(size):
        work[task[LOW] + i] = packs[i] & 0xFFFFFFFF
    for i in range(n_cuts + (n_words < size)):  # the dummy cut is the last one
        low, high, part = n_words, size, start + DUMMY
        if i < n_cuts:
            low, high, part = cut[i], cut[i + 1], start + PARTS + i
            tree.parts[part, FIRST] = packs[low] >> 32
            tree.last[part] = packs[high - 1] >> 32
        tree.parts[part, BORN] = high - low
        child_task(tree, plan.recut, task, part, task[LOW] + low, task[LOW] + high, tasks[at])
        at += 1
    return at


# -- leaves ------------------------------------------------------------------------------------------------


@primitive
def build_leaf(tree, plan, entries, keys, task, at, work):
    """Algorithm 4, line 2. Returns the tasks left, or NOTHING without room."""
    size, node = task[HIGH] - task[LOW], task[NODE]
    if size > 0 and not has_room(tree, 0, capacity_for(size)):
        return np.int64(NOTHING)
    start = take_run(tree.state, POOL_RUNS, tree.pool[:, ENTRY], size)
    open_keys = np.int64(0)
    for i in range(size):
        write_element(tree, plan, start + i, entries, keys, work[task[LOW] + i], task[PROVEN])
        open_keys |= tree.pool[start + i, ENTRY] >> 31
    set_node(tree, node, SURE if size > 0 and open_keys == 0 else LEAF, start, size)
    # What could not be divided is tried again when it has doubled.
    tree.care[node] = least_size(plan) if size <= least_size(plan) else 2 * size
    return np.int64(at)
