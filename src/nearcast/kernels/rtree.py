"""An R-tree in flat arrays: choose, link and unlink (Guttman 1984), as KDD'13 3.1 builds on it.

A node holds the boxes of its entries side by side, so that a node is read in one run. Nothing here knows of
words; see `node_tokens` and `node_lists` for what KDD'13 adds to the nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive

NO_NODE = -1
FREE_NODE = -1  # height of a node that is not in use
NO_GUARD = 0  # of an entry that is a node
USED, HEIGHT, PARENT, POSITION = range(4)  # columns of `nodes`
ROOT, TOP, FREE = range(3)  # index in `state`: the root; first node never used; first free node


class Tree(NamedTuple):
    """A node has entries: nodes one level below, or index entries in a leaf (height 0).

    A guard is one of the terms of an index entry: a message without it is spared the way to the table.
    """

    boxes: NDArray[np.float64]  # [n, B + 1, 4]  box of each entry; the last place is for overflow only
    child: NDArray[np.int32]  # [n, B + 1]     node, in a leaf the number of the index entry
    guard: NDArray[np.int32]  # [n, B + 1]     in a leaf a term of the index entry
    nodes: NDArray[np.int32]  # [n, 4]  USED: number of entries; HEIGHT: 0 for all leaves, or FREE_NODE;
    #   PARENT: NO_NODE for the root, the next free node for a free one; POSITION: where in its parent
    leaf_of: NDArray[np.int32]  # [n_entries]  the leaf that holds an index entry
    state: NDArray[np.int64]  # [3]  ROOT, TOP, FREE


class Items(NamedTuple):
    """What is to be placed in nodes of one height."""

    numbers: NDArray[np.int64]  # [n]     index entries, or nodes
    boxes: NDArray[np.float64]  # [n, 4]
    guards: NDArray[np.int32]  # [n]


@primitive
def meets(boxes, i, west, south, east, north):
    """Does closed box i share a point with the given one? Intervals, not corners (erratum of KDD'13 3.2)."""
    return boxes[i, 0] <= east and west <= boxes[i, 2] and boxes[i, 1] <= north and south <= boxes[i, 3]


@primitive
def link(tree, node, item, boxes, i, guard):
    """Make item, with boxes[i], the last entry of a node."""
    place = tree.nodes[node, USED]
    for side in range(4):
        tree.boxes[node, place, side] = boxes[i, side]
    tree.child[node, place] = item
    tree.guard[node, place] = guard
    tree.nodes[node, USED] = place + 1
    if tree.nodes[node, HEIGHT] == 0:
        tree.leaf_of[item] = node
    else:
        tree.nodes[item, PARENT] = node
        tree.nodes[item, POSITION] = place


@primitive
def unlink(tree, node, place):
    """Remove the entry at a place of a node; the last entry takes its place."""
    last = tree.nodes[node, USED] - 1
    tree.nodes[node, USED] = last
    if place != last:
        for side in range(4):
            tree.boxes[node, place, side] = tree.boxes[node, last, side]
        tree.child[node, place] = tree.child[node, last]
        tree.guard[node, place] = tree.guard[node, last]
        if tree.nodes[node, HEIGHT] > 0:
            tree.nodes[tree.child[node, last], POSITION] = place


@primitive
def new_node(tree, height):
    """An empty node; the caller has made sure that there is room for one."""
    node = tree.state[FREE]
    if node != NO_NODE:
        tree.state[FREE] = tree.nodes[node, PARENT]
    else:
        node = tree.state[TOP]
        tree.state[TOP] = node + 1
    tree.nodes[node, USED] = 0
    tree.nodes[node, HEIGHT] = height
    tree.nodes[node, PARENT] = NO_NODE
    return node


@primitive
def free_node(tree, node):
    tree.nodes[node, HEIGHT] = FREE_NODE
    tree.nodes[node, USED] = 0
    tree.nodes[node, PARENT] = tree.state[FREE]
    tree.state[FREE] = node


@primitive
def bound(tree, node):
    """The smallest box around the entries of a node that has some."""
    boxes = tree.boxes[node]
    west, south, east, north = boxes[0, 0], boxes[0, 1], boxes[0, 2], boxes[0, 3]
    for i in range(1, tree.nodes[node, USED]):
        west, south = min(west, boxes[i, 0]), min(south, boxes[i, 1])
        east, north = max(east, boxes[i, 2]), max(north, boxes[i, 3])
    return west, south, east, north


@primitive
def tighten(tree, node):
    """Give a node's box its smallest size in its parent, and so on upwards while something changes."""
    while tree.nodes[node, PARENT] != NO_NODE:
        parent, place = tree.nodes[node, PARENT], tree.nodes[node, POSITION]
        box = bound(tree, node)
        same = True
        for side in range(4):
            same = same and tree.boxes[parent, place, side] == box[side]
            tree.boxes[parent, place, side] = box[side]
        if same:
            return
        node = parent


@primitive
def best_child(tree, node, boxes, i):
    """The entry of a node whose box grows least in area to take boxes[i]; then the smallest (Guttman CL3)."""
    best, least, smallest = 0, np.inf, np.inf
    held = tree.boxes[node]
    for place in range(tree.nodes[node, USED]):
        area = (held[place, 2] - held[place, 0]) * (held[place, 3] - held[place, 1])
        width = max(held[place, 2], boxes[i, 2]) - min(held[place, 0], boxes[i, 0])
        height = max(held[place, 3], boxes[i, 3]) - min(held[place, 1], boxes[i, 1])
        growth = width * height - area
        if growth < least or (growth == least and area < smallest):
            best, least, smallest = place, growth, area
    return best


@kernel
def place_items(tree, items, height, first):
    """Put items[first:] into nodes of a height by least enlargement.

    Index entries go into leaves, nodes into nodes one level above them. Returns (next item, node): it stops
    after a node got one entry too many, which the caller must split; NO_NODE when all are placed.
    """
    most, boxes = tree.child.shape[1] - 1, items.boxes
    for i in range(first, len(boxes)):
        node = tree.state[ROOT]
        while tree.nodes[node, HEIGHT] > height:
            place = best_child(tree, node, boxes, i)
            for side in range(2):
                tree.boxes[node, place, side] = min(tree.boxes[node, place, side], boxes[i, side])
            for side in range(2, 4):
                tree.boxes[node, place, side] = max(tree.boxes[node, place, side], boxes[i, side])
            node = np.int64(tree.child[node, place])
        link(tree, node, items.numbers[i], boxes, i, items.guards[i])
        if tree.nodes[node, USED] > most:
            return i + 1, node
    return len(boxes), np.int64(NO_NODE)


@kernel
def take_out(tree, entries):
    """Remove index entries from their leaves. Boxes stay as they are, until `tighten_all`."""
    for i in range(len(entries)):
        leaf = tree.leaf_of[entries[i]]
        place = 0
        while tree.child[leaf, place] != entries[i]:
            place += 1
        unlink(tree, leaf, place)


@kernel
def tighten_all(tree, nodes):
    for i in range(len(nodes)):
        tighten(tree, nodes[i])


@kernel
def remove_node(tree, node):
    """Take a node that is not the root out of its parent, and every parent that has no other child.

    Returns the lowest node that stays. The root always does: the caller shortens the tree before, so that
    the root has two entries or more.
    """
    while True:
        parent = np.int64(tree.nodes[node, PARENT])
        unlink(tree, parent, tree.nodes[node, POSITION])
        free_node(tree, node)
        if tree.nodes[parent, USED] > 0:
            tighten(tree, parent)
            return parent
        node = parent


@kernel
def drop_root(tree):
    """The only entry of a root that is no leaf becomes the root."""
    root = tree.state[ROOT]
    child = np.int64(tree.child[root, 0])
    free_node(tree, root)
    tree.nodes[child, PARENT] = NO_NODE
    tree.state[ROOT] = child
