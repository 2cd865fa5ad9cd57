"""Guttman's quadratic split (1984, 3.5.2) of an R-tree node that has one entry too many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.rtree import HEIGHT, NO_GUARD, NO_NODE, PARENT, POSITION, ROOT, USED, Items, link, new_node

NOBODY, LEFT, RIGHT = -1, 0, 1


class Halves(NamedTuple):
    """Working room for the division of one node, made by the caller."""

    items: Items  # of B + 1  the node's entries
    side: NDArray[np.int8]  # [B + 1]     LEFT, RIGHT, or NOBODY's yet
    group: NDArray[np.float64]  # [2, 4]      box of each side
    size: NDArray[np.int64]  # [2]         entries of each side


def new_halves(most: int) -> Halves:
    return Halves(
        Items(np.zeros(most + 1, np.int64), np.zeros((most + 1, 4)), np.zeros(most + 1, np.int32)),
        np.zeros(most + 1, dtype=np.int8),
        np.zeros((2, 4)),
        np.zeros(2, dtype=np.int64),
    )


@primitive
def area_with(a, i, b, j):
    """Area of the smallest box around a[i] and b[j]."""
    width = max(a[i, 2], b[j, 2]) - min(a[i, 0], b[j, 0])
    return width * (max(a[i, 3], b[j, 3]) - min(a[i, 1], b[j, 1]))


@primitive
def pick_seeds(boxes, n):
    """The two boxes that would waste most area together (PS1, PS2)."""
    first, second, worst = 0, 1, -np.inf
    for i in range(n):
        for j in range(i + 1, n):
            waste = area_with(boxes, i, boxes, j) - area_with(boxes, i, boxes, i)
            waste -= area_with(boxes, j, boxes, j)
            if waste > worst:
                first, second, worst = i, j, waste
    return first, second


@primitive
def pick_next(boxes, n, side, group):
    """(next, its side): the box with the strongest preference for one of the two groups (PN1, PN2, QS3)."""
    area_left, area_right = area_with(group, LEFT, group, LEFT), area_with(group, RIGHT, group, RIGHT)
    best, strongest, better = NOBODY, -1.0, LEFT
    for i in range(n):
        if side[i] != NOBODY:
            continue
        left = area_with(group, LEFT, boxes, i) - area_left
        right = area_with(group, RIGHT, boxes, i) - area_right
        if best == NOBODY or abs(left - right) > strongest:
            best, strongest = i, abs(left - right)
            better = RIGHT if right < left or (right == left and area_right < area_left) else LEFT
    return best, better, strongest == 0.0 and area_left == area_right


@primitive
def copy_box(to, i, boxes, j):
    for k in range(4):
        to[i, k] = boxes[j, k]


@primitive
def join(group, to, boxes, i):
    for k in range(2):
        group[to, k] = min(group[to, k], boxes[i, k])
    for k in range(2, 4):
        group[to, k] = max(group[to, k], boxes[i, k])


@primitive
def divide(halves, n, least):
    """Give each of n boxes a side, at least `least` to each."""
    boxes, side, group, size = halves.items.boxes, halves.side, halves.group, halves.size
    for i in range(n):
        side[i] = NOBODY
    seeds = pick_seeds(boxes, n)
    for to in range(2):
        side[seeds[to]] = to
        size[to] = 1
        copy_box(group, to, boxes, seeds[to])
    for rest in range(n - 2, 0, -1):
        i, to, even = pick_next(boxes, n, side, group)
        if even:  # QS3: the last resort is the group with fewer entries, so that equal boxes are halved
            to = RIGHT if size[RIGHT] < size[LEFT] else LEFT
        if size[LEFT] + rest == least:
            to = LEFT
        elif size[RIGHT] + rest == least:
            to = RIGHT
        side[i] = to
        size[to] += 1
        join(group, to, boxes, i)


@kernel
def split(tree, node, least, halves):
    """Divide a node in two and hang the new one beside it, under a new root if it was the root.

    Returns the new node. The caller has made room for two nodes, and looks whether the parent is too full.
    """
    n = np.int64(tree.nodes[node, USED])
    items, group = halves.items, halves.group
    for i in range(n):
        items.numbers[i], items.guards[i] = tree.child[node, i], tree.guard[node, i]
        copy_box(items.boxes, i, tree.boxes[node], i)
    divide(halves, n, least)
    other = new_node(tree, tree.nodes[node, HEIGHT])
    tree.nodes[node, USED] = 0
    for i in range(n):
        half = node if halves.side[i] == LEFT else other
        link(tree, half, items.numbers[i], items.boxes, i, items.guards[i])
    parent = np.int64(tree.nodes[node, PARENT])
    if parent == NO_NODE:
        parent = new_node(tree, tree.nodes[node, HEIGHT] + 1)
        tree.state[ROOT] = parent
        link(tree, parent, node, group, LEFT, NO_GUARD)
    else:
        copy_box(tree.boxes[parent], tree.nodes[node, POSITION], group, LEFT)
    link(tree, parent, other, group, RIGHT, NO_GUARD)
    return other
