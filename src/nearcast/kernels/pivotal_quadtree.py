"""The quadtree of the PT-Quadtree: layout, dealing entries out, insertion, removal (CIKM'15 4.1).

A node's cell is half-open, [west, east) by [south, north), and cells at the border of the root reach to
infinity, so that every point of the plane lies in one leaf and a message at a point visits one node a level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.filled import put_at, take_at
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.pivotal_tokens import has_common, include

NONE = -1
ROOT = 0
N_HINTS = 8192  # one byte each fits the first cache; a power of two


class Quad(NamedTuple):
    """Children 0 to 3 of a node are south-west, south-east, north-west, north-east, and lie side by side."""

    centre: NDArray[np.float64]  # [n, 2]  where it is divided
    cell: NDArray[np.float64]  # [n, 4]  west, south, east, north; infinite at the border of the root
    child: NDArray[np.int32]  # [n]     first of the four, or NONE
    hint: NDArray[np.uint16]  # [entries]  the entry's rarest term, modulo N_HINTS


@primitive
def quadrants(boxes, i, centre, node):
    """Which children's cells a box that meets the node's cell meets, as a mask: bit q for child q."""
    mask = 15
    if boxes[i, 0] >= centre[node, 0]:
        mask &= 10
    if boxes[i, 2] < centre[node, 0]:
        mask &= 5
    if boxes[i, 1] >= centre[node, 1]:
        mask &= 12
    if boxes[i, 3] < centre[node, 1]:
        mask &= 3
    return mask


@primitive
def shares(boxes, entry, quad, node, once):
    """Mask of the children that get the entry; bit 4: the node keeps it (MX-CIF: it meets several)."""
    mask = quadrants(boxes, entry, quad.centre, node)
    if once and mask & (mask - 1) != 0:
        return 16
    return mask


@kernel
def count_shares(quad, nodes, run_from, run, boxes, once, counts):
    """counts[i, q]: entries of run i that child q of nodes[i] gets; counts[i, 4]: those that it keeps."""
    for i in range(len(nodes)):
        for at in range(run_from[i], run_from[i + 1]):
            mask = shares(boxes, run[at], quad, nodes[i], once)
            for q in range(5):
                counts[i, q] += (mask >> q) & 1


@kernel
def deal(quad, nodes, run_from, run, boxes, once, cursor, dealt):
    """Put each entry of run i to those who get it, at cursor[i, q], in order."""
    for i in range(len(nodes)):
        for at in range(run_from[i], run_from[i + 1]):
            mask = shares(boxes, run[at], quad, nodes[i], once)
            for q in range(5):
                if (mask >> q) & 1:
                    dealt[cursor[i, q]] = run[at]
                    cursor[i, q] += 1


@primitive
def offset_of(lists, at, entry, label_of):
    """Where the entry is or belongs in a list that ascends by id, then by number."""
    low, high = lists.start[at], lists.start[at] + lists.length[at]
    label = label_of[entry]
    while low < high:
        middle = (low + high) >> 1
        other = lists.pool[middle]
        if label_of[other] < label or (label_of[other] == label and other < entry):
            low = middle + 1
        else:
            high = middle
    return low - lists.start[at]


@primitive
def list_in(lists, at, entry, label_of):
    """Put an entry into a sorted list unless it is there; False if the pool has no room."""
    offset = offset_of(lists, at, entry, label_of)
    if offset < lists.length[at] and lists.pool[lists.start[at] + offset] == entry:
        return True
    return put_at(lists, at, offset, entry)


@primitive
def usual_token(entries, entry, frequency):
    """The entry's most frequent token: likely to stand for others as well."""
    first = entries.term_from[entry]
    best, most = entries.terms[first], np.int64(NONE)
    for at in range(first, first + entries.term_count[entry]):
        term = entries.terms[at]
        times = frequency[term] if term < len(frequency) else np.int64(0)
        if times > most:
            best, most = term, times
    return best


@primitive
def insert_one(quad, lists, sets, entries, entry, label_of, frequency, once, stack):
    """One entry into its node or leaves, one of its tokens into the sets on the way; False without room.

    Where the cover set of a node has one of its tokens, the nodes below need none: a message with that
    token takes them all. Doing it twice is the same as doing it once.
    """
    low = entries.term_from[entry]
    high = low + entries.term_count[entry]
    stack[0, 0], stack[0, 1] = ROOT, 0
    top = 1
    while top > 0:
        top -= 1
        node, covered = stack[top, 0], stack[top, 1]
        covered = covered or has_common(sets, 2 * node, entries.terms, low, high)
        if not covered and not has_common(sets, 2 * node + 1, entries.terms, low, high):
            if not include(sets, 2 * node + 1, usual_token(entries, entry, frequency)):
                return False
        mask = shares(entries.boxes, entry, quad, node, once)
        if quad.child[node] == NONE or mask == 16:
            if not list_in(lists, node, entry, label_of):
                return False
            continue
        for q in range(4):
            if (mask >> q) & 1:
                stack[top, 0], stack[top, 1] = quad.child[node] + q, covered
                top += 1
    return True


@kernel
def insert(quad, lists, sets, entries, numbers, label_of, frequency, once, stack, first):
    """Insert numbers[first:] (CIKM'15 4.1, Updates). Returns the next i: less than all if room ran out."""
    for i in range(first, len(numbers)):
        if not insert_one(quad, lists, sets, entries, numbers[i], label_of, frequency, once, stack):
            return i
    return len(numbers)


@kernel
def remove(quad, lists, entries, numbers, label_of, once, stack):
    """Take entries out of their lists; the pivotal tokens stay until the next build."""
    for i in range(len(numbers)):
        stack[0, 0] = ROOT
        top = 1
        while top > 0:
            top -= 1
            node = stack[top, 0]
            mask = shares(entries.boxes, numbers[i], quad, node, once)
            if quad.child[node] == NONE or mask == 16:
                take_at(lists, node, offset_of(lists, node, numbers[i], label_of))
                continue
            for q in range(4):
                if (mask >> q) & 1:
                    stack[top, 0] = quad.child[node] + q
                    top += 1
