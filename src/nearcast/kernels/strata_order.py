"""Lanes in the order of space: like a kd-tree over the four fields of their packed boxes."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import primitive
from nearcast.kernels.strata_layout import ALWAYS, NEVER, field, lower, upper, widest


@primitive
def swap(numbers, boxes, others, i, j):
    numbers[i], numbers[j] = numbers[j], numbers[i]
    boxes[i], boxes[j] = boxes[j], boxes[i]
    others[i], others[j] = others[j], others[i]


@primitive
def select(numbers, boxes, others, low, high, middle, by):
    """Reorder [low, high) so that field `by` of all before `middle` is at most that of all after."""
    last = high - 1
    while low < last:
        pivot = field(boxes[(low + last) >> 1], by)
        i, j = low, last
        while i <= j:
            while field(boxes[i], by) < pivot:
                i += 1
            while field(boxes[j], by) > pivot:
                j -= 1
            if i <= j:
                swap(numbers, boxes, others, i, j)
                i += 1
                j -= 1
        if middle <= j:
            last = j
        elif middle >= i:
            low = i
        else:
            return


@primitive
def widest_field(boxes, low, high):
    least, most = NEVER, ALWAYS
    for i in range(low, high):
        least = lower(least, boxes[i])
        most = upper(most, boxes[i])
    return widest(least, most)


@primitive
def left_part(count, leaf, fan):
    """How many of `count` items go left: about half, in whole leaves, branches, branches of branches."""
    leaves = (count + leaf - 1) // leaf
    unit = np.int64(1)
    while unit * fan < leaves:
        unit *= fan
    return ((leaves + unit - 1) // unit >> 1) * unit * leaf


@primitive
def order_in_space(numbers, boxes, others, low, high, leaf, fan, stack):
    """kd order of one list for leaves and branches of this size; `stack` holds the ranges still to be halved."""
    stack[0, 0], stack[0, 1] = low, high
    depth = 1
    while depth:
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]
        by, apart = widest_field(boxes, low, high)
        if apart == 0:
            continue
        middle = low + left_part(high - low, leaf, fan)
        select(numbers, boxes, others, low, high, middle, by)
        if middle - low > leaf:
            stack[depth, 0], stack[depth, 1] = low, middle
            depth += 1
        if high - middle > leaf:
            stack[depth, 0], stack[depth, 1] = middle, high
            depth += 1
