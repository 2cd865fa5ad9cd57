"""Quadtree cells as numbers, and the cheapest set of cells for a box (VLDBJ'17 3.1).

A cell has a *code*: the root is 1, the children of c are 4c .. 4c + 3 (bit 0 east, bit 1 north), so that a
code is its path in Morton order and code >> 2 its parent. Coordinates become *steps*, integers below N_STEPS,
by one monotone function: x in [west, east] implies step(x) in [step(west), step(east)], and step(x) < step(y)
implies x < y. All cell arithmetic is exact on steps. Whatever lies outside the frame is clamped to its border.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive

ROOT = 1
BITS = 14  # of a step: four of them with a guard bit each fit a positive int64, see `postings`
N_STEPS = 1 << BITS
MAX_DEPTH = 10  # the shares of 4**10 cells take 8 MB
X, Y, CODE, NEXT, MARK = range(5)  # columns of Desk.frames


class Grid(NamedTuple):
    """Where the cells lie, and how often messages come there."""

    frame: NDArray[np.float64]  # [4]  x and y of the lower left corner, steps per unit in x and y
    share: NDArray[np.float32]  # [2 * 4**depth]  by code: part of all messages that meet the cell
    depth: NDArray[np.int64]  # [1]  level of the smallest cells; the root has level 0


class Desk(NamedTuple):
    """Working room of `associate`, made by the caller for one call of a kernel."""

    frames: NDArray[np.int64]  # [depth + 1, 5]  by level: the open cell, its next child, cells before it
    costs: NDArray[np.float64]  # [depth + 1]  by level: cost of the children done so far
    cells: NDArray[np.int64]  # [*]  codes of the chosen cells


def new_desk(depth: int) -> Desk:
    """Room for two associations: the cells along the border of a box, on all levels, bound each."""
    return Desk(
        np.zeros((depth + 1, 5), dtype=np.int64),
        np.zeros(depth + 1, dtype=np.float64),
        np.zeros(2 * (16 << depth), dtype=np.int64),
    )


@primitive
def step(value, low, per_unit):
    """Monotone: a larger value never gets a smaller step."""
    if per_unit == 0.0:
        return np.int64(0)
    scaled = (value - low) * per_unit
    if not scaled > 0.0:
        return np.int64(0)
    if scaled >= N_STEPS:
        return np.int64(N_STEPS - 1)
    return np.int64(scaled)


@primitive
def steps(grid, boxes, row):
    """A box in steps: (west, south, east, north), all inclusive."""
    x, y, per_x, per_y = grid.frame[0], grid.frame[1], grid.frame[2], grid.frame[3]
    return (
        step(boxes[row, 0], x, per_x),
        step(boxes[row, 1], y, per_y),
        step(boxes[row, 2], x, per_x),
        step(boxes[row, 3], y, per_y),
    )


@primitive
def cell_at(level, x, y):
    """Code of the cell of this level at step (x, y)."""
    code = np.int64(ROOT)
    for bit in range(BITS - 1, BITS - 1 - level, -1):
        code = (code << 2) | ((x >> bit) & 1) | (((y >> bit) & 1) << 1)
    return code


@primitive
def level_of(code):
    level = np.int64(0)
    while code > 3:
        code >>= 2
        level += 1
    return level


@primitive
def halves(low, high, level, at):
    """Which halves (0 lower, 1 upper) of the cell at coordinate `at` of a level the steps low..high touch."""
    shift = BITS - level - 1
    first = np.int64((low >> shift) > (at << 1))
    last = np.int64((high >> shift) > (at << 1))
    return first, last


@primitive
def is_settled(grid, box, level, x, y, code, price):
    """Nothing below this cell can be cheaper: smallest cell, all covered, or too rarely met to pay twice."""
    if level == grid.depth[0]:
        return True
    shift = BITS - level
    west, south, east, north = box
    low_x, low_y, last = x << shift, y << shift, (np.int64(1) << shift) - 1
    if west <= low_x and east >= low_x + last and south <= low_y and north >= low_y + last:
        return True
    if grid.share[code] > price:
        return False
    half = shift - 1
    one_column = max(west, low_x) >> half == min(east, low_x + last) >> half
    one_row = max(south, low_y) >> half == min(north, low_y + last) >> half
    return not (one_column and one_row)


@primitive
def associate(grid, box, top, price, desk, first):
    """Cheapest cells for the part of a box inside cell top = (level, x, y, code); VLDBJ'17 3.1, 5.1.1.

    A cell costs its share of the messages (each means one verification) plus `price`, the cost of keeping
    one more copy. cost(c) = min(share(c) + price, sum of cost(c') over the children c' that the box meets).
    Our reading of the cost model that the paper takes from SIGMOD'13 without its formula.
    Writes codes in Morton order to desk.cells from `first` on; returns (end, cost). Post-order without
    recursion: frames[level] is the open cell of that level.
    """
    level, x, y, code = top
    end = first
    if is_settled(grid, box, level, x, y, code, price):
        desk.cells[end] = code
        return end + 1, np.float64(grid.share[code]) + price
    frames, costs, lowest = desk.frames, desk.costs, level
    open_cell(frames, costs, level, x, y, code, end)
    while True:
        child = frames[level, NEXT]
        code = frames[level, CODE]
        if child == 4:
            cost = costs[level]
            own = np.float64(grid.share[code]) + price
            if own <= cost:
                end, cost = frames[level, MARK], own
                desk.cells[end] = code
                end += 1
            if level == lowest:
                return end, cost
            level -= 1
            costs[level] += cost
            continue
        frames[level, NEXT] = child + 1
        x, y = (frames[level, X] << 1) + (child & 1), (frames[level, Y] << 1) + (child >> 1)
        shift = BITS - level - 1
        if box[0] >> shift > x or box[2] >> shift < x or box[1] >> shift > y or box[3] >> shift < y:
            continue
        code = (code << 2) + child
        if is_settled(grid, box, level + 1, x, y, code, price):
            desk.cells[end] = code
            end += 1
            costs[level] += np.float64(grid.share[code]) + price
        else:
            level += 1
            open_cell(frames, costs, level, x, y, code, end)


@primitive
def open_cell(frames, costs, level, x, y, code, end):
    frames[level, X], frames[level, Y], frames[level, CODE] = x, y, code
    frames[level, NEXT], frames[level, MARK] = 0, end
    costs[level] = 0.0
