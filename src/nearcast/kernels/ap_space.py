"""Space partition of an AP-Tree node (VLDBJ'17 3.3.3), and the space node made of it."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ap_cost import cells_cost, divide_evenly, improve, line_of_spans, place_of
from nearcast.kernels.ap_layout import (
    BORN,
    DUMMY,
    NOTHING,
    PART_RUNS,
    PARTS,
    SPACE,
    START,
    capacity_for,
    has_room,
    steps_of,
    take_run,
)
from nearcast.kernels.ap_task import (
    HIGH,
    LOW,
    NODE,
    NORTH,
    SAMPLE,
    SEEN,
    TRIE,
    WEST,
    XS,
    YS,
    child_task,
    least_size,
    open_node,
)
from nearcast.kernels.jit import primitive

A_LINE = 4  # elements in a cache line: parts are not made smaller on average


@primitive
def covers(box, region):
    """Whether a box holds the whole region: it belongs into the dummy cell."""
    return box[0] <= region[0] and box[1] <= region[1] and box[2] >= region[2] and box[3] >= region[3]


@primitive
def divide_space(tree, plan, entries, work, desk):
    """Choose columns, then rows, independently: (columns, rows, expected cost).

    As many cells as the fanout allows, unless copies in several cells would then take up more room than the
    partition saves of the matching cost: then a quarter of them, and so on.
    """
    task, spans, seen = desk.task, desk.spans, desk.seen
    region, size = task[WEST : NORTH + 1], task[HIGH] - task[LOW]
    n, n_all = take_spans(tree, task, entries, work, region, spans)
    n_seen = see_places(plan.places, region, seen)
    cells = min(plan.fanout, max(2, size // A_LINE))
    while cells > 1 and n > 0:
        rows = np.int64(np.sqrt(float(cells)))
        columns = cells // rows
        for axis in range(2):
            parts = divide_axis(plan, n, n_seen, axis, region, rows if axis else columns, desk)
            columns, rows = (columns, parts) if axis else (parts, rows)
        xs, ys = desk.borders[XS], desk.borders[YS]
        cost, stored = cells_cost(spans, n, seen, n_seen, region, xs, columns, ys, rows, desk.counts)
        cost += n_all - n  # the dummy cell is always explored
        stored += n_all - n
        if columns * rows > 1 and cost * stored <= float(n_all) * n_all:
            return columns, rows, cost * size / n_all
        cells //= 4
    return np.int64(1), np.int64(1), np.inf


@primitive
def see_places(places, region, seen):
    """Up to SEEN places of messages in the region."""
    n = 0
    for i in range(len(places)):
        x, y = places[i, 0], places[i, 1]
        if n < SEEN and region[0] <= x <= region[2] and region[1] <= y <= region[3]:
            seen[n, 0] = x
            seen[n, 1] = y
            n += 1
    return n


@primitive
def take_spans(tree, task, entries, work, region, spans):
    """A sample of the entries that do not cover the region, cut to it: (how many, sample size)."""
    stride = (task[HIGH] - task[LOW] + SAMPLE - 1) // SAMPLE
    n, n_all = 0, 0
    for i in range(task[LOW], task[HIGH], stride):
        box = steps_of(entries.boxes, work[i], tree.frame)
        n_all += 1
        if not covers(box, region):
            spans[n, 0], spans[n, 1] = max(box[0], region[0]), max(box[1], region[1])
            spans[n, 2], spans[n, 3] = min(box[2], region[2]), min(box[3], region[3])
            n += 1
    return n, n_all


@primitive
def divide_axis(plan, n, n_seen, axis, region, parts, desk):
    """Inner borders of an axis as coordinates, into desk.borders[axis]; how many parts they make."""
    low, high, borders, line = region[axis], region[axis + 2], desk.borders[axis], desk.line
    if plan.priority == TRIE:
        borders[0] = (low + high + 1) // 2
        return np.int64(2 if high > low else 1)
    last = line_of_spans(
        desk.spans, n, desk.seen, n_seen, axis, low, high, line, desk.packs[1], desk.packs[2], desk.counts
    )
    parts = np.int64(min(parts, last))
    divide_evenly(line, last, parts, borders)
    improve(line, parts, borders)
    for i in range(1, parts):
        borders[i - 1] = line.at[borders[i]]
    return parts


@primitive
def build_space(tree, plan, entries, tasks, at, work, desk, columns, rows):
    """Algorithm 4, lines 18 to 24. Returns the tasks left, or NOTHING without room."""
    task, ends, n_cells = desk.task, desk.line.mass, columns * rows
    fits = has_room(tree, capacity_for(n_cells + PARTS), 0) and at + n_cells + 1 <= len(tasks)
    total = np.int64(0)
    for fill in range(2):
        if not fits or task[HIGH] + total > len(work):
            return np.int64(NOTHING)
        total = spread(tree, entries, work, desk, columns, rows, ends, fill)
    start = take_run(tree.state, PART_RUNS, tree.parts[:, START], n_cells + PARTS)
    size, limit = task[HIGH] - task[LOW], least_size(plan)
    open_node(tree, task[NODE], SPACE, start, columns | rows << 14, n_cells, size, 0, limit)
    for i in range(columns + rows - 2):
        border = desk.borders[XS, i] if i < columns - 1 else desk.borders[YS, i - columns + 1]
        tree.last[start + PARTS + i] = border
    low = task[LOW]
    for cell in range(n_cells + 1):  # the dummy cell is the last one
        part = start + PARTS + cell if cell < n_cells else start + DUMMY
        high = task[LOW] + ends[cell]
        tree.parts[part, BORN] = high - low
        if high > low:
            child_task(tree, plan.recut, task, part, low, high, tasks[at])
            at += 1
        low = high
    return at


@primitive
def spread(tree, entries, work, desk, columns, rows, ends, fill):
    """Count the entries by cell, those that cover the region last; the second time, put them there.

    Returns how many copies there are. ends[cell] becomes the sum over the cells before it, then with it. Copies
    are written after the task's entries, then take their place.
    """
    task, xs, ys = desk.task, desk.borders[XS], desk.borders[YS]
    region, n_cells, base = task[WEST : NORTH + 1], columns * rows, task[HIGH]
    for cell in range(0 if fill else n_cells + 1):
        ends[cell] = 0
    for i in range(task[LOW], task[HIGH]):
        box = steps_of(entries.boxes, work[i], tree.frame)
        x0, x1, y0, y1 = np.int64(0), np.int64(0), rows, rows
        if not covers(box, region):
            x0, x1 = place_of(xs, columns, box[0]), place_of(xs, columns, box[2])
            y0, y1 = place_of(ys, rows, box[1]), place_of(ys, rows, box[3])
        for y in range(y0, y1 + 1):
            for cell in range(y * columns + x0, y * columns + x1 + 1):
                if fill:
                    work[base + ends[cell]] = work[i]
                ends[cell] += 1
    if fill:
        for i in range(ends[n_cells]):
            work[task[LOW] + i] = work[base + i]
        return ends[n_cells]
    total = np.int64(0)
    for cell in range(n_cells + 1):
        total += ends[cell]
        ends[cell] = total - ends[cell]
    return total
