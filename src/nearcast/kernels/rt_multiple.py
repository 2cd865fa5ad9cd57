"""R^t++-tree (KDD'13 5): each level of the tree holds another token of an entry, in inverted lists.

`words` are the index's entries with their terms in order of choice: s.T[1], s.T[2], … The children of the root
are level 1 (Figure 5 and Examples 7 and 8; the example below Property 1 counts the root as well). A node on
level i lists the entries below it under their i-th token; a leaf, on level H, under all tokens from the H-th
on. The root has no lists unless it is a leaf, which is level 1 then.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.marks import next_base, note
from nearcast.kernels.node_lists import clear_lists, drop, length, member, push
from nearcast.kernels.node_tokens import values_of
from nearcast.kernels.primitives import overlaps
from nearcast.kernels.rtree import HEIGHT, NO_NODE, PARENT, POSITION, ROOT, USED, meets
from nearcast.kernels.sieve import set_sieve
from nearcast.kernels.spatial_first import NO_ROOM, append


@primitive
def level_of(tree, node):
    return max(1, np.int64(tree.nodes[tree.state[ROOT], HEIGHT]) - tree.nodes[node, HEIGHT])


@primitive
def _token_run(tree, words, node, entry):
    """(first, end) in words.terms of the tokens by which a node lists an entry; empty if it has too few."""
    level, count = level_of(tree, node), np.int64(words.term_count[entry])
    start = words.term_from[entry]
    end = count if tree.nodes[node, HEIGHT] == 0 else min(level, count)
    return start + min(level - 1, count), start + end


@primitive
def _list_one(tree, inverted, words, node, entry):
    """List an entry in a node; False, half done, if there is no room."""
    low, high = _token_run(tree, words, node, entry)
    for k in range(low, high):
        if not push(inverted, node, words.terms[k], entry):
            return False
    return True


@primitive
def _unlist_one(tree, inverted, words, node, entry):
    low, high = _token_run(tree, words, node, entry)
    for k in range(low, high):
        drop(inverted, node, words.terms[k], entry)


@primitive
def has_lists(tree, node):
    return node != NO_NODE and (tree.nodes[node, PARENT] != NO_NODE or tree.nodes[node, HEIGHT] == 0)


@primitive
def _unlist_upwards(tree, inverted, words, node, entry):
    """Forget an entry in a node and all above it; where it is not listed nothing happens."""
    while has_lists(tree, node):
        _unlist_one(tree, inverted, words, node, entry)
        node = np.int64(tree.nodes[node, PARENT])


@primitive
def _list_upwards(tree, inverted, words, node, entry):
    """List an entry in a node and all above it. False, with nothing listed, if there is no room."""
    at = node
    while has_lists(tree, at):
        if not _list_one(tree, inverted, words, at, entry):
            _unlist_upwards(tree, inverted, words, node, entry)
            return False
        at = np.int64(tree.nodes[at, PARENT])
    return True


@primitive
def next_leaf(tree, top, leaf):
    """The leaf after `leaf` below node top (NO_NODE: the first one), or NO_NODE after the last."""
    if leaf == NO_NODE:
        node = top
    else:
        node = leaf
        while node != top and tree.nodes[node, POSITION] + 1 == tree.nodes[tree.nodes[node, PARENT], USED]:
            node = np.int64(tree.nodes[node, PARENT])
        if node == top:
            return np.int64(NO_NODE)
        node = np.int64(tree.child[tree.nodes[node, PARENT], tree.nodes[node, POSITION] + 1])
    while tree.nodes[node, HEIGHT] > 0:
        node = np.int64(tree.child[node, 0])
    return node


@primitive
def _list_all(tree, inverted, words, node):
    """List all entries below a node in it; False, half done, if there is no room."""
    leaf = next_leaf(tree, node, np.int64(NO_NODE))
    while leaf != NO_NODE:
        for i in range(tree.nodes[leaf, USED]):
            if not _list_one(tree, inverted, words, node, np.int64(tree.child[leaf, i])):
                return False
        leaf = next_leaf(tree, node, leaf)
    return True


@kernel
def fill(tree, inverted, words, nodes, first):
    """Make the lists of nodes[first:] anew. Returns the next: less than all if there is no room."""
    for i in range(first, len(nodes)):
        clear_lists(inverted, nodes[i])
        if not _list_all(tree, inverted, words, nodes[i]):
            clear_lists(inverted, nodes[i])
            return i
    return len(nodes)


@kernel
def add(tree, inverted, words, entries, first):
    """List entries[first:], which are in their leaves. Returns the next: less than all if there is no room."""
    for i in range(first, len(entries)):
        if not _list_upwards(tree, inverted, words, np.int64(tree.leaf_of[entries[i]]), entries[i]):
            return i
    return len(entries)


@kernel
def remove(tree, inverted, words, entries):
    """Forget entries that are still in their leaves."""
    for i in range(len(entries)):
        _unlist_upwards(tree, inverted, words, np.int64(tree.leaf_of[entries[i]]), entries[i])


@primitive
def _unlist_above(tree, inverted, words, node):
    leaf = next_leaf(tree, node, np.int64(NO_NODE))
    while leaf != NO_NODE:
        for i in range(tree.nodes[leaf, USED]):
            entry = np.int64(tree.child[leaf, i])
            _unlist_upwards(tree, inverted, words, np.int64(tree.nodes[node, PARENT]), entry)
        leaf = next_leaf(tree, node, leaf)


@kernel
def detach(tree, inverted, words, node):
    """Forget all entries below a node in the nodes above it."""
    _unlist_above(tree, inverted, words, node)


@kernel
def attach(tree, inverted, words, node):
    """List all entries below a node in the nodes above it. False, with nothing listed, if there is no room."""
    leaf = next_leaf(tree, node, np.int64(NO_NODE))
    while leaf != NO_NODE:
        for i in range(tree.nodes[leaf, USED]):
            entry = np.int64(tree.child[leaf, i])
            if not _list_upwards(tree, inverted, words, np.int64(tree.nodes[node, PARENT]), entry):
                _unlist_above(tree, inverted, words, node)
                return False
        leaf = next_leaf(tree, node, leaf)
    return True


@primitive
def _count_node(tree, inverted, marks, base, node, scratch, entries, rows, row, found, n_found):
    """Lines 4 to 10 of Figure 5: count the entries in the lists of the row's terms, append those complete.

    Returns (number found or NO_ROOM, visit flag of this node, list members read). An entry is complete when it
    was counted as often as it has terms; it then satisfies the textual constraint without verification.
    """
    read, visit, level = 0, False, level_of(tree, node)
    inner = tree.nodes[node, HEIGHT] > 0
    low, high = rows.term_from[row], rows.term_from[row + 1]
    for k in range(values_of(inverted.tables, node, scratch.sieve, rows.terms, low, high, scratch.lists)):
        value = scratch.lists[k]
        for i in range(length(inverted, value)):
            entry = member(inverted, value, i)
            read += 1
            seen = note(marks, base, entry)
            if seen < entries.term_count[entry]:
                visit = visit or (inner and seen == level)
            elif overlaps(entries.boxes, entry, rows.boxes, row):
                if not append(found, n_found, row, entry):
                    return NO_ROOM, False, read
                n_found += 1
    return n_found, visit, read


@primitive
def _visit(tree, inverted, marks, base, node, entries, scratch, rows, row, found, n_found, depth):
    """Figure 5 for one node: count in each child that overlaps, go on below those with something left.

    Line 3's `return` is a `continue`, and the visit flag belongs to each entry of the node (errata).
    Returns (number found or NO_ROOM, depth of the stack, list members read, nodes counted in).
    """
    box = rows.boxes[row]
    west, south, east, north = box[0], box[1], box[2], box[3]
    candidates, nodes = 0, 0
    for i in range(tree.nodes[node, USED]):
        if not meets(tree.boxes[node], i, west, south, east, north):
            continue
        child = np.int64(tree.child[node, i])
        n_found, visit, read = _count_node(
            tree, inverted, marks, base, child, scratch, entries, rows, row, found, n_found
        )
        if n_found == NO_ROOM:
            return n_found, depth, candidates, nodes
        candidates += read
        nodes += 1
        if visit:
            scratch.stack[depth] = child
            depth += 1
    return n_found, depth, candidates, nodes


@kernel
def probe(tree, inverted, marks, entries, scratch, rows, first_row, found, counters):
    """KDD'13 5.2, Figure 5, with a stack. Candidates are the list members read: each is counted once."""
    root = tree.state[ROOT]
    n_found = 0
    for row in range(first_row, len(rows.boxes)):
        row_from, candidates, nodes, base = n_found, 0, 1, next_base(marks)
        set_sieve(scratch.sieve, rows, row, True)
        scratch.stack[0], depth = root, 1
        if tree.nodes[root, HEIGHT] == 0:
            n_found, _, candidates = _count_node(
                tree, inverted, marks, base, root, scratch, entries, rows, row, found, n_found
            )
            depth = 0
        while depth > 0 and n_found != NO_ROOM:
            depth -= 1
            node = scratch.stack[depth]
            n_found, depth, read, counted = _visit(
                tree, inverted, marks, base, node, entries, scratch, rows, row, found, n_found, depth
            )
            candidates += read
            nodes += counted
        set_sieve(scratch.sieve, rows, row, False)
        if n_found == NO_ROOM:
            return row, row_from
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found
