"""The ordered token trie of the MBRTrie: layout, insertion, ids (CIKM'15 3.1).

Siblings lie side by side in one block, ascending by token, so that a binary search on a node's children is one
on a run of `token`. A block has room for 2**klass nodes; a full one moves to a block of twice the size, and
blocks that become free are chained by class. Only a parent points at a node, so a block may move.

A *token* here is the key that `indexes.trie_order` gives a term. The path of a subscription goes from its
highest key to its lowest: a token never seen before gets the highest key, and appends a child to the root.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.lists import N_CLASSES, push
from nearcast.kernels.primitives import lower_bound

NONE = -1
ROOT = 0
FIRST, COUNT, KLASS, LEAF, LOW, HIGH = range(6)  # columns of Trie.links
N_LINKS = 6
TOP, LEAVES, STEP, CROWDED, HEIGHT = range(N_CLASSES, N_CLASSES + 5)  # Trie.state, after the free blocks
N_STATE = N_CLASSES + 5
N_LEVELS = 64  # deeper nodes are counted in the last level
MOST = 2**31 - 1  # above all ids


class Trie(NamedTuple):
    """Nodes, then leaves. A leaf is the set of subscriptions with one token set; the paper's empty token."""

    token: NDArray[np.int32]  # [nodes]     ascending within a block of siblings
    box: NDArray[np.float32]  # [nodes, 4]  bounds all subscriptions below, rounded outward
    links: NDArray[np.int32]  # [nodes, 6]  FIRST child, COUNT, KLASS of their block, LEAF, ids LOW to HIGH
    label: NDArray[np.int32]  # [leaves]    id: rises along the token-set order, with ids reserved in between
    levels: NDArray[np.int64]  # [N_LEVELS]  number of nodes by level; the root is level 0
    state: NDArray[np.int64]  # [N_STATE]   free blocks by class; TOP node, LEAVES, STEP of ids, CROWDED, HEIGHT


@primitive
def widen(box, node, boxes, entry):
    """Let the float32 box of a node hold the float64 box of an entry, rounded outward."""
    for side in range(2):
        low, high = np.float32(boxes[entry, side]), np.float32(boxes[entry, side + 2])
        if low > boxes[entry, side]:
            low = np.nextafter(low, np.float32(-np.inf))
        if high < boxes[entry, side + 2]:
            high = np.nextafter(high, np.float32(np.inf))
        box[node, side] = min(box[node, side], low)
        box[node, side + 2] = max(box[node, side + 2], high)


@primitive
def make_node(trie, node, token):
    trie.token[node] = token
    for side in range(2):
        trie.box[node, side] = np.float32(np.inf)
        trie.box[node, side + 2] = np.float32(-np.inf)
    links = trie.links[node]
    links[FIRST], links[COUNT], links[KLASS], links[LEAF] = NONE, 0, NONE, NONE
    links[LOW], links[HIGH] = MOST, NONE


@primitive
def move_node(trie, source, target):
    trie.token[target] = trie.token[source]
    for side in range(4):
        trie.box[target, side] = trie.box[source, side]
    for link in range(N_LINKS):
        trie.links[target, link] = trie.links[source, link]


@primitive
def take_block(trie, klass):
    """Room for 2**klass siblings, or NONE."""
    block = trie.state[klass]
    if block != NONE:
        trie.state[klass] = np.int64(trie.links[block, FIRST])
        return block
    block = trie.state[TOP]
    if block + (np.int64(1) << klass) > len(trie.token):
        return np.int64(NONE)
    trie.state[TOP] = block + (np.int64(1) << klass)
    return block


@primitive
def add_child(trie, node, position, token):
    """A new child of the node at this position among its siblings; NONE if there is no room for it."""
    first, count = np.int64(trie.links[node, FIRST]), np.int64(trie.links[node, COUNT])
    klass = np.int64(trie.links[node, KLASS])
    block = first
    if klass == NONE or count == np.int64(1) << klass:
        block = take_block(trie, klass + 1)
        if block == NONE:
            return np.int64(NONE)
        for i in range(position):
            move_node(trie, first + i, block + i)
    for i in range(count - 1, position - 1, -1):
        move_node(trie, first + i, block + i + 1)
    if block != first:
        if klass != NONE:
            trie.links[first, FIRST] = trie.state[klass]
            trie.state[klass] = first
        trie.links[node, FIRST] = block
        trie.links[node, KLASS] = klass + 1
    trie.links[node, COUNT] = count + 1
    make_node(trie, block + position, token)
    return block + position


@primitive
def descend(trie, boxes, entry, path, low, high, trail):
    """Walk, and where needed make, the path of an entry; note its nodes in trail.

    Returns (last node or NONE if there is no room, the nearest id before it, the nearest id after it).
    """
    node, before, after = np.int64(ROOT), np.int64(NONE), np.int64(MOST)
    widen(trie.box, node, boxes, entry)
    trail[0] = node
    for at in range(low, high):
        if trie.links[node, LEAF] != NONE:
            before = np.int64(trie.label[trie.links[node, LEAF]])
        first, count = np.int64(trie.links[node, FIRST]), np.int64(trie.links[node, COUNT])
        child = np.int64(lower_bound(trie.token, first, first + count, path[at]))
        if child == first + count or trie.token[child] != path[at]:
            child = add_child(trie, node, child - first, path[at])
            if child == NONE:
                return child, before, after
            trie.levels[min(at - low + 1, N_LEVELS - 1)] += 1
            trie.state[HEIGHT] = max(trie.state[HEIGHT], at - low + 1)
        first, count = np.int64(trie.links[node, FIRST]), np.int64(trie.links[node, COUNT])
        if child > first:
            before = np.int64(trie.links[child - 1, HIGH])
        if child + 1 < first + count:
            after = np.int64(trie.links[child + 1, LOW])
        node = child
        widen(trie.box, node, boxes, entry)
        trail[at - low + 1] = node
    return node, before, min(after, np.int64(trie.links[node, LOW]))


@primitive
def make_leaf(trie, node, before, after, trail, length):
    """A leaf for the node, with one of the ids reserved between its neighbours'."""
    leaf = trie.state[LEAVES]
    trie.state[LEAVES] += 1
    label = before + max(np.int64(1), min((after - before) >> 1, trie.state[STEP]))
    trie.label[leaf] = label
    trie.links[node, LEAF] = leaf
    for i in range(length + 1):
        trie.links[trail[i], LOW] = min(trie.links[trail[i], LOW], label)
        trie.links[trail[i], HIGH] = max(trie.links[trail[i], HIGH], label)
    return leaf


@kernel
def insert(trie, lists, label_of, boxes, numbers, path_from, path, trail, first):
    """Insert entries numbers[first:], entry i by path[path_from[i]:path_from[i + 1]] (CIKM'15 3.1, Updates).

    Returns the next i: less than all if there is no room, or, with CROWDED set, if no id is left at its
    place. Coming again with it finds what was made already.
    """
    for i in range(first, len(numbers)):
        low, high = path_from[i], path_from[i + 1]
        node, before, after = descend(trie, boxes, numbers[i], path, low, high, trail)
        if node == NONE:
            return i
        leaf = np.int64(trie.links[node, LEAF])
        if leaf == NONE:
            trie.state[CROWDED] = after - before < 2
            if trie.state[CROWDED] or trie.state[LEAVES] == len(trie.label):
                return i
            leaf = make_leaf(trie, node, before, after, trail, high - low)
        if not push(lists, leaf, numbers[i]):
            return i
        label_of[numbers[i]] = trie.label[leaf]
    return len(numbers)


@kernel
def find_leaves(trie, path_from, path, leaves):
    """The leaf of every path, all of which exist."""
    for i in range(len(leaves)):
        node = np.int64(ROOT)
        for at in range(path_from[i], path_from[i + 1]):
            first = np.int64(trie.links[node, FIRST])
            node = np.int64(lower_bound(trie.token, first, first + trie.links[node, COUNT], path[at]))
        leaves[i] = trie.links[node, LEAF]


@kernel
def relabel(trie, lists, label_of, trail, cursor):
    """Number the leaves in token-set order, STEP apart, and bound the ids below every node.

    Ids keep their order, so lists that are sorted by id stay sorted. Pre-order with a node's own leaf first,
    since a prefix is smaller. trail and cursor: one more than HEIGHT.
    """
    label = np.int64(0)
    depth = 0
    trail[0], cursor[0] = ROOT, NONE
    while depth >= 0:
        links = trie.links[trail[depth]]
        if cursor[depth] == NONE:
            links[LOW] = label + trie.state[STEP]
            if links[LEAF] != NONE:
                label += trie.state[STEP]
                trie.label[links[LEAF]] = label
                start = lists.start[links[LEAF]]
                for position in range(start, start + lists.length[links[LEAF]]):
                    label_of[lists.pool[position]] = label
            cursor[depth] = 0
        if cursor[depth] == links[COUNT]:
            links[HIGH] = label
            depth -= 1
        else:
            trail[depth + 1], cursor[depth + 1] = links[FIRST] + cursor[depth], NONE
            cursor[depth] += 1
            depth += 1
