"""Insertion into and removal from an AP-Tree (VLDBJ'17 3.3.5).

A *trail* holds the nodes that an entry passes, parents first, as tasks (see `ap_task`) whose LOW is the row of
the parent.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ap_due import mark_above, note_change
from nearcast.kernels.ap_layout import (
    BORN,
    DUE,
    DUMMY,
    ENTRY,
    ENTRY_MASK,
    FIRST,
    KEYWORD,
    LEAF,
    NOTHING,
    OFFSET,
    OPEN,
    PART_RUNS,
    PARTS,
    POOL_RUNS,
    START,
    SURE,
    capacity_for,
    class_for,
    give_run,
    has_room,
    is_leaf,
    kind_of,
    set_node,
    size_of,
    steps_of,
    take_run,
)
from nearcast.kernels.ap_space import covers
from nearcast.kernels.ap_task import (
    LOW,
    NODE,
    NORTH,
    PROVEN,
    TRIE,
    WEST,
    child_task,
    least_size,
    root_task,
    write_element,
)
from nearcast.kernels.ap_tree import border_place, first_ending
from nearcast.kernels.jit import kernel, primitive


@kernel
def order_keys(entries, ranks, chosen, keys):
    """The keys of the chosen entries, ascending, into `keys`, which lies beside entries.terms."""
    for i in range(len(chosen)):
        start = entries.term_from[chosen[i]]
        for at in range(start, start + entries.term_count[chosen[i]]):
            key, j = ranks[entries.terms[at]], at
            while j > start and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key


@kernel
def change(tree, plan, entries, keys, chosen, first, by, may_cut, trail):
    """Insert (by 1) or remove (by -1) the chosen entries from `first` on; see `route` on may_cut.

    Returns the next one, less than all if room ran out: an entry is treated wholly or not at all.
    """
    for i in range(first, len(chosen)):
        entry = chosen[i]
        box = steps_of(entries.boxes, entry, tree.frame)
        n = route(tree, plan, entries, keys, entry, box, trail, may_cut)
        if n == NOTHING or not has_room(tree, 0, elements_for(tree, trail, n, by)):
            return i
        for j in range(n):
            if not is_leaf(tree, trail[j, NODE]):
                note_change(tree, plan, trail, j, by)
            elif by > 0:
                append(tree, plan, entries, keys, entry, trail, j)
            else:
                take_out(tree, trail[j, NODE], entry)
    return len(chosen)


# -- the way of an entry -----------------------------------------------------------------------------------


@primitive
def route(tree, plan, entries, keys, entry, box, trail, may_cut):
    """All nodes that an entry passes in a box of steps, into `trail`; how many, or NOTHING without room.

    Where no cut holds the entry's key the cuts are changed with may_cut, else it goes to the dummy cut.
    """
    root_task(trail[0], 0)
    trail[0, LOW] = NOTHING
    n, at = 1, 0
    while at < n:
        node = trail[at, NODE]
        first, last, n_rows, row_step = np.int64(0), np.int64(-1), np.int64(1), np.int64(0)
        if kind_of(tree, node) == KEYWORD:
            first = part_for(tree, plan, entries, keys, entry, trail, at, may_cut)
            if first == NOTHING:
                return np.int64(NOTHING)
            last = first
        elif not is_leaf(tree, node):
            first, last, n_rows, row_step = cells_for(tree, node, box, trail[at, WEST : NORTH + 1])
        for row in range(n_rows):
            for part in range(first + row * row_step, last + row * row_step + 1):
                if n == len(trail):
                    return np.int64(NOTHING)
                child_task(tree, plan.recut, trail[at], part, at, 0, trail[n])
                n += 1
        at += 1
    return np.int64(n)


@primitive
def cells_for(tree, node, box, region):
    """The cells of a space node for a box: (first, last of its lowest row, rows, from row to row)."""
    start = np.int64(tree.parts[node, START])
    if covers(box, region):
        return start + DUMMY, start + DUMMY, np.int64(1), np.int64(0)
    first, size = start + PARTS, size_of(tree, node)
    columns, n_rows = size & 0x3FFF, size >> 14
    ys = first + columns - 1
    x0, x1 = border_place(tree.last, first, columns, box[0]), border_place(tree.last, first, columns, box[2])
    y0, y1 = border_place(tree.last, ys, n_rows, box[1]), border_place(tree.last, ys, n_rows, box[3])
    low = first + y0 * columns
    return low + x0, low + x1, y1 - y0 + 1, columns


@primitive
def part_for(tree, plan, entries, keys, entry, trail, at, may_cut):
    """The cut of a keyword node that holds the entry's key, or the dummy cut; NOTHING without room."""
    node = trail[at, NODE]
    start = np.int64(tree.parts[node, START])
    offset = np.int64(tree.parts[start, OFFSET])
    if offset >= entries.term_count[entry]:
        return start + DUMMY
    key = np.int64(keys[entries.term_from[entry] + offset])
    first, end = start + PARTS, start + PARTS + size_of(tree, node)
    part = first_ending(tree.last, first, end, key)
    if part < end and tree.parts[part, FIRST] <= key:
        return part
    if not may_cut:
        return start + DUMMY
    if part > first and tree.parts[part - 1, FIRST] < tree.last[part - 1]:
        tree.last[part - 1] = key
        return part - 1
    if part < end and tree.parts[part, FIRST] < tree.last[part]:
        tree.parts[part, FIRST] = key
        return part
    if plan.priority == TRIE or end - first < plan.fanout:
        return add_cut(tree, plan, node, part - first, key)
    return widen(tree, trail, at, part if part < end else part - 1, key)


@primitive
def widen(tree, trail, at, part, key):
    """Let a cut of one keyword hold another one. What its leaves took as proven is no longer: they are due."""
    tree.parts[part, FIRST] = min(tree.parts[part, FIRST], key)
    tree.last[part] = max(tree.last[part], key)
    tree.care[part] = DUE
    mark_above(tree, trail, at)
    return part


@primitive
def add_cut(tree, plan, node, position, key):
    """A new cut for one key between others; NOTHING without room."""
    start, n = np.int64(tree.parts[node, START]), size_of(tree, node)
    if class_for(n + PARTS) != class_for(n + PARTS + 1):
        if not has_room(tree, capacity_for(n + PARTS + 1), 0):
            return np.int64(NOTHING)
        larger = take_run(tree.state, PART_RUNS, tree.parts[:, START], n + PARTS + 1)
        for i in range(n + PARTS):
            copy_part(tree, start + i, larger + i)
        give_run(tree.state, PART_RUNS, tree.parts[:, START], start, n + PARTS)
        start = larger
    set_node(tree, node, KEYWORD, start, n + 1)
    part = start + PARTS + position
    for i in range(start + PARTS + n, part, -1):
        copy_part(tree, i - 1, i)
    tree.parts[part, FIRST] = key
    tree.last[part] = key
    set_node(tree, part, LEAF, 0, 0)
    tree.parts[part, BORN] = 0
    tree.care[part] = least_size(plan)
    return part


@primitive
def copy_part(tree, source, target):
    for column in range(4):
        tree.parts[target, column] = tree.parts[source, column]
    tree.last[target] = tree.last[source]
    tree.care[target] = tree.care[source]


# -- leaves ------------------------------------------------------------------------------------------------


@primitive
def elements_for(tree, trail, n, by):
    """Elements that new runs would take if the leaves of a trail grew or shrank by one."""
    total = np.int64(0)
    for j in range(n):
        if is_leaf(tree, trail[j, NODE]):
            size = size_of(tree, trail[j, NODE])
            if class_for(size) != class_for(size + by) and size + by > 0:
                total += capacity_for(size + by)
    return total


@primitive
def resize(tree, node, size, by):
    """Let a leaf have room for size + by elements; the first of them stay. Returns its run."""
    start = np.int64(tree.parts[node, START])
    if class_for(size) == class_for(size + by):
        return start
    run = take_run(tree.state, POOL_RUNS, tree.pool[:, ENTRY], size + by)
    for i in range(min(size, size + by)):
        for column in range(2):
            tree.pool[run + i, column] = tree.pool[start + i, column]
    give_run(tree.state, POOL_RUNS, tree.pool[:, ENTRY], start, size)
    return run


@primitive
def append(tree, plan, entries, keys, entry, trail, at):
    """Put an entry into a leaf."""
    node = trail[at, NODE]
    size = size_of(tree, node)
    start = resize(tree, node, size, 1)
    write_element(tree, plan, start + size, entries, keys, entry, trail[at, PROVEN])
    is_sure = (size == 0 or kind_of(tree, node) == SURE) and tree.pool[start + size, ENTRY] < OPEN
    set_node(tree, node, SURE if is_sure else LEAF, start, size + 1)
    if size + 1 > tree.care[node]:
        mark_above(tree, trail, trail[at, LOW])


@primitive
def take_out(tree, node, entry):
    """Remove an entry from a leaf; the last element takes its place."""
    start, size = np.int64(tree.parts[node, START]), size_of(tree, node)
    at = start
    while tree.pool[at, ENTRY] & ENTRY_MASK != entry:
        at += 1
    for column in range(2):
        tree.pool[at, column] = tree.pool[start + size - 1, column]
    start = resize(tree, node, size, -1)
    set_node(tree, node, kind_of(tree, node) if size > 1 else LEAF, start, size - 1)
