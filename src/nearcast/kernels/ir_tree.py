"""IR-tree adapted to standing queries (KDD'13 2.2 and 6, after Cong et al., PVLDB 2009).

Every node has an inverted file over its own entries: token to those children that have it somewhere below, in
a leaf token to index entries. A message asks a node for the lists of its terms, and goes where a list and the
MBR lead; in a leaf it counts how many of an entry's terms it has.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.marks import next_base
from nearcast.kernels.node_lists import clear_lists, drop, length, member, push
from nearcast.kernels.node_tokens import EMPTY, NO_PLACE, find, run_of, values_of
from nearcast.kernels.primitives import overlaps
from nearcast.kernels.rtree import HEIGHT, NO_NODE, PARENT, POSITION, ROOT, USED, meets
from nearcast.kernels.sieve import set_sieve
from nearcast.kernels.spatial_first import NO_ROOM, append


@primitive
def _climb(tree, inverted, node, token, number):
    """Enter a number under a token in a node, and the node in its parent if the token is new to it, and so on.

    False if there is no room; `_descend` with the same arguments then takes back what was done.
    """
    while True:
        is_new = find(inverted.tables, node, token) == NO_PLACE
        if not push(inverted, node, token, number):
            return False
        if not is_new or tree.nodes[node, PARENT] == NO_NODE:
            return True
        number, node = np.int64(node), np.int64(tree.nodes[node, PARENT])


@primitive
def _descend(tree, inverted, node, token, number):
    """The reverse: a node that has lost a token leaves the list of its parent."""
    while drop(inverted, node, token, number) and tree.nodes[node, PARENT] != NO_NODE:
        number, node = np.int64(node), np.int64(tree.nodes[node, PARENT])


@primitive
def _list_entries(tree, inverted, entries, leaf):
    for i in range(tree.nodes[leaf, USED]):
        entry = np.int64(tree.child[leaf, i])
        low = entries.term_from[entry]
        for k in range(low, low + entries.term_count[entry]):
            if not push(inverted, leaf, entries.terms[k], entry):
                return False
    return True


@primitive
def _list_children(tree, inverted, node):
    for i in range(tree.nodes[node, USED]):
        child = np.int64(tree.child[node, i])
        low, high = run_of(inverted.tables, child)
        for k in range(low, high):
            token = inverted.tables.sets.pool[k]
            if token != EMPTY and not push(inverted, node, token, child):
                return False
    return True


@kernel
def fill(tree, inverted, entries, nodes, first):
    """Make the inverted files of nodes[first:] anew, children before parents. Returns the next if full."""
    for i in range(first, len(nodes)):
        node = nodes[i]
        clear_lists(inverted, node)
        if tree.nodes[node, HEIGHT] == 0:
            done = _list_entries(tree, inverted, entries, node)
        else:
            done = _list_children(tree, inverted, node)
        if not done:
            clear_lists(inverted, node)
            return i
    return len(nodes)


@primitive
def _remove_entry(tree, inverted, entries, entry):
    low = entries.term_from[entry]
    for k in range(low, low + entries.term_count[entry]):
        _descend(tree, inverted, np.int64(tree.leaf_of[entry]), entries.terms[k], entry)


@kernel
def add(tree, inverted, entries, new, first):
    """Enter the index entries new[first:], which are in their leaves. Returns the next: less than all if full."""
    for i in range(first, len(new)):
        low = entries.term_from[new[i]]
        for k in range(low, low + entries.term_count[new[i]]):
            if not _climb(tree, inverted, np.int64(tree.leaf_of[new[i]]), entries.terms[k], new[i]):
                _remove_entry(tree, inverted, entries, new[i])
                return i
    return len(new)


@kernel
def remove(tree, inverted, entries, gone):
    """Forget index entries that are still in their leaves."""
    for i in range(len(gone)):
        _remove_entry(tree, inverted, entries, gone[i])


@primitive
def _leave_above(tree, inverted, node):
    low, high = run_of(inverted.tables, node)
    for k in range(low, high):
        if inverted.tables.sets.pool[k] != EMPTY:
            _descend(tree, inverted, np.int64(tree.nodes[node, PARENT]), inverted.tables.sets.pool[k], node)


@kernel
def detach(tree, inverted, node):
    """Take a node out of the inverted files above it."""
    _leave_above(tree, inverted, node)


@kernel
def attach(tree, inverted, node):
    """Enter a node in the inverted files above it. False, with nothing entered, if there is no room."""
    low, high = run_of(inverted.tables, node)
    for k in range(low, high):
        token = inverted.tables.sets.pool[k]
        if token != EMPTY and not _climb(tree, inverted, np.int64(tree.nodes[node, PARENT]), token, node):
            _leave_above(tree, inverted, node)
            return False
    return True


@primitive
def _push_listed(tree, inverted, marks, base, node, scratch, n_lists, rows, row, depth):
    """Put the children in the lists at hand that overlap the row on the stack, once each; its new depth."""
    box = rows.boxes[row]
    west, south, east, north = box[0], box[1], box[2], box[3]
    for k in range(n_lists):
        value = scratch.lists[k]
        for i in range(length(inverted, value)):
            child = member(inverted, value, i)
            if marks.marks[child] > base:
                continue
            marks.marks[child] = base + 1
            if meets(tree.boxes[node], tree.nodes[child, POSITION], west, south, east, north):
                scratch.stack[depth] = child
                depth += 1
    return depth


@primitive
def _count_leaf(inverted, left, scratch, n_lists, entries, rows, row, found, n_found):
    """Count terms down in the members of the lists at hand, append the complete ones, and count up again.

    Returns (number found or NO_ROOM, postings read). An entry is in one leaf, so that its count is not needed
    beyond it.
    """
    read, has_room = 0, True
    for k in range(n_lists):
        value = scratch.lists[k]
        for i in range(length(inverted, value)):
            entry = member(inverted, value, i)
            read += 1
            left[entry] -= 1
            if left[entry] == 0 and has_room and overlaps(entries.boxes, entry, rows.boxes, row):
                has_room = append(found, n_found, row, entry)
                n_found += 1
    for k in range(n_lists):
        value = scratch.lists[k]
        for i in range(length(inverted, value)):
            left[member(inverted, value, i)] += 1
    return n_found if has_room else NO_ROOM, read


@kernel
def probe(tree, inverted, marks, left, entries, scratch, rows, first_row, found, counters):
    """Append all (row, entry) pairs from first_row on. Candidates are the postings read in leaves.

    `left` has the number of terms of each entry.
    """
    n_found = 0
    for row in range(first_row, len(rows.boxes)):
        row_from, candidates, nodes, base = n_found, 0, 0, next_base(marks)
        low, high = rows.term_from[row], rows.term_from[row + 1]
        set_sieve(scratch.sieve, rows, row, True)
        scratch.stack[0], depth = tree.state[ROOT], 1
        while depth > 0:
            depth -= 1
            node = scratch.stack[depth]
            nodes += 1
            n_lists = values_of(inverted.tables, node, scratch.sieve, rows.terms, low, high, scratch.lists)
            if tree.nodes[node, HEIGHT] > 0:
                depth = _push_listed(tree, inverted, marks, base, node, scratch, n_lists, rows, row, depth)
                continue
            n_found, read = _count_leaf(inverted, left, scratch, n_lists, entries, rows, row, found, n_found)
            if n_found == NO_ROOM:
                set_sieve(scratch.sieve, rows, row, False)
                return row, row_from
            candidates += read
        set_sieve(scratch.sieve, rows, row, False)
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found
