"""R^t-tree and R^t+-tree (KDD'13 3 and 4): R-tree nodes with the tokens of the entries below them.

`words` are the index's entries with their terms in order of choice; the first `width` of each are tokens: all
of them for R^t, one representative for R^t+. The value beside a node's token counts the entries below the node
that brought it, so that a token goes when its last entry goes. The root has no table: KDD'13 keeps a node's
token set in the entry of its parent.
"""

from __future__ import annotations

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.node_tokens import EMPTY, NO_PLACE, clear, find, reserve, run_of, seat, shares_token, unseat
from nearcast.kernels.rtree import HEIGHT, NO_NODE, PARENT, ROOT, USED, meets
from nearcast.kernels.sieve import SIEVE, set_sieve
from nearcast.kernels.spatial_first import NO_ROOM, append, has_terms


@primitive
def _count(tables, node, token, times):
    """Note a token so many times more; False if there is no room."""
    place = seat(tables, node, token)
    if place == NO_PLACE:
        return False
    tables.values[place] += times
    return True


@primitive
def _uncount(tables, node, token, times):
    place = find(tables, node, token)
    tables.values[place] -= times
    if tables.values[place] == 0:
        unseat(tables, node, place)


@primitive
def _token_run(words, width, entry):
    start = words.term_from[entry]
    return start, start + min(width, words.term_count[entry])


@primitive
def _count_below(tree, tables, words, width, node):
    """Note all tokens of a node's entries; False if there is no room."""
    for i in range(tree.nodes[node, USED]):
        child = tree.child[node, i]
        if tree.nodes[node, HEIGHT] == 0:
            low, high = _token_run(words, width, child)
            for k in range(low, high):
                if not _count(tables, node, words.terms[k], 1):
                    return False
        else:
            low, high = run_of(tables, child)
            for k in range(low, high):
                token = tables.sets.pool[k]
                if token != EMPTY and not _count(tables, node, token, tables.values[k]):
                    return False
    return True


@kernel
def fill(tree, tables, words, width, nodes, first):
    """Make the tables of nodes[first:] anew, children before parents. Returns the next: less than all if full."""
    for i in range(first, len(nodes)):
        clear(tables, nodes[i])
        if not _count_below(tree, tables, words, width, nodes[i]):
            clear(tables, nodes[i])
            return i
    return len(nodes)


@kernel
def empty(tables, node):
    clear(tables, node)


@primitive
def _reserve_upwards(tree, tables, node, more):
    """Room for `more` tokens in a node and all nodes above but the root; False if there is none."""
    while tree.nodes[node, PARENT] != NO_NODE:
        if not reserve(tables, node, more):
            return False
        node = tree.nodes[node, PARENT]
    return True


@kernel
def add(tree, tables, words, width, entries, first):
    """Note entries[first:], which are in their leaves. Returns the next: less than all if full."""
    for i in range(first, len(entries)):
        low, high = _token_run(words, width, entries[i])
        node = tree.leaf_of[entries[i]]
        if not _reserve_upwards(tree, tables, node, high - low):
            return i
        while tree.nodes[node, PARENT] != NO_NODE:
            for k in range(low, high):
                _count(tables, node, words.terms[k], 1)
            node = tree.nodes[node, PARENT]
    return len(entries)


@kernel
def remove(tree, tables, words, width, entries):
    """Forget entries that are still in their leaves."""
    for i in range(len(entries)):
        low, high = _token_run(words, width, entries[i])
        node = tree.leaf_of[entries[i]]
        while tree.nodes[node, PARENT] != NO_NODE:
            for k in range(low, high):
                _uncount(tables, node, words.terms[k], 1)
            node = tree.nodes[node, PARENT]


@kernel
def attach(tree, tables, node):
    """Note a node's tokens in all nodes above it. False, with nothing noted, if there is no room."""
    above = tree.nodes[node, PARENT]
    if not _reserve_upwards(tree, tables, above, tables.sets.length[node]):
        return False
    while tree.nodes[above, PARENT] != NO_NODE:
        low, high = run_of(tables, node)
        for k in range(low, high):
            if tables.sets.pool[k] != EMPTY:
                _count(tables, above, tables.sets.pool[k], tables.values[k])
        above = tree.nodes[above, PARENT]
    return True


@kernel
def detach(tree, tables, node):
    """Forget a node's tokens in all nodes above it."""
    above = tree.nodes[node, PARENT]
    low, high = run_of(tables, node)
    while tree.nodes[above, PARENT] != NO_NODE:
        for k in range(low, high):
            if tables.sets.pool[k] != EMPTY:
                _uncount(tables, above, tables.sets.pool[k], tables.values[k])
        above = tree.nodes[above, PARENT]


@primitive
def _push_candidates(tree, tables, sieve, node, rows, row, stack, depth):
    """Put the children that pass the MBR filter and the token filter on the stack; its new depth."""
    boxes, place = tree.boxes[node], rows.boxes[row]
    west, south, east, north = place[0], place[1], place[2], place[3]
    low, high = rows.term_from[row], rows.term_from[row + 1]
    for i in range(tree.nodes[node, USED]):
        if meets(boxes, i, west, south, east, north):
            child = tree.child[node, i]
            if shares_token(tables, child, sieve, rows.terms, low, high):
                stack[depth] = child
                depth += 1
    return depth


@primitive
def _verify_leaf(tree, leaf, entries, sieve, rows, row, found, n_found):
    """Append the entries of a leaf that the row satisfies; number found or NO_ROOM. Guards settle most."""
    boxes, guards, place = tree.boxes[leaf], tree.guard[leaf], rows.boxes[row]
    west, south, east, north = place[0], place[1], place[2], place[3]
    for i in range(tree.nodes[leaf, USED]):
        if not sieve[guards[i] & (SIEVE - 1)] or not meets(boxes, i, west, south, east, north):
            continue
        if has_terms(entries, tree.child[leaf, i], rows, row):
            if not append(found, n_found, row, tree.child[leaf, i]):
                return NO_ROOM
            n_found += 1
    return n_found


@kernel
def probe(tree, tables, entries, scratch, rows, first_row, found, counters):
    """KDD'13 3.2: find the leaf candidate nodes and verify all their entries, which are the candidates."""
    stack, n_found = scratch.stack, 0
    for row in range(first_row, len(rows.boxes)):
        row_from, candidates, nodes = n_found, 0, 0
        set_sieve(scratch.sieve, rows, row, True)
        stack[0], depth = tree.state[ROOT], 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            nodes += 1
            if tree.nodes[node, HEIGHT] > 0:
                depth = _push_candidates(tree, tables, scratch.sieve, node, rows, row, stack, depth)
                continue
            n_found = _verify_leaf(tree, node, entries, scratch.sieve, rows, row, found, n_found)
            if n_found == NO_ROOM:
                set_sieve(scratch.sieve, rows, row, False)
                return row, row_from
            candidates += tree.nodes[node, USED]
        set_sieve(scratch.sieve, rows, row, False)
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found
