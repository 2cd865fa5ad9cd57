"""What a space node costs because its subscriptions move (VLDBJ'17 4.3.1, equations 7 to 15, Algorithm 8).

Costs are per message here, as in `ap_cost`: the paper's costs of one timestamp, divided by the messages of one.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ap_layout import steps_of
from nearcast.kernels.ap_task import DEPTH, HIGH, LATEST, LOW, MESSAGES, NORTH, UPDATES, WEST
from nearcast.kernels.jit import primitive

LOOKED_AT = 256  # entries of a node that stand for all
SMOOTH = 1.0  # added to every cell: one that was or became empty would make the divergence infinite
SIDE = 8  # the forecast's grid has at most so many cells a side


@primitive
def moving_cost(tree, plan, entries, n_words, work, desk):
    """Equations 9 and 13: location updates and reconstruction, which only a space node has (15)."""
    task = desk.task
    if len(plan.velocity) == 0 or plan.rates[MESSAGES] <= 0.0:
        return 0.0
    size = float(task[HIGH] - task[LOW])
    fanout = float(plan.fanout)
    way = (task[DEPTH] + 1) * np.log2(fanout)
    updates = plan.rates[UPDATES] * size * 2.0 * share_that_leaves(tree, plan, work, task) * way
    height = max(0.0, np.log(size / plan.threshold) / np.log(fanout))
    reconstruction = (size * np.log2(fanout) + size * np.sqrt(fanout) + fanout * n_words) * (height + 1.0)
    reconstruction /= next_reconstruction(tree, plan, entries, work, desk)
    return (updates + reconstruction) / plan.rates[MESSAGES]


@primitive
def share_that_leaves(tree, plan, work, task):
    """The mean of min(1, ζ): regions of this size that an entry passes in one timestamp (equation 9)."""
    width, height = float(task[WEST + 2] - task[WEST] + 1), float(task[NORTH] - task[WEST + 1] + 1)
    stride = max(1, (task[HIGH] - task[LOW]) // LOOKED_AT)
    total, n = 0.0, 0
    for i in range(task[LOW], task[HIGH], stride):
        entry = work[i]
        if entry < len(plan.velocity):
            x, y = plan.velocity[entry, 0] * tree.frame[2], plan.velocity[entry, 1] * tree.frame[3]
            total += min(1.0, abs(x) / width + abs(y) / height)
        n += 1
    return total / n


@primitive
def next_reconstruction(tree, plan, entries, work, desk):
    """Algorithm 8: timestamps until the weights of an even grid have diverged by more than θKL, at most LATEST."""
    side = min(SIDE, max(2, np.int64(np.sqrt(float(plan.fanout)))))
    before, now = desk.counts[: side * side], desk.counts[side * side : 2 * side * side]
    count_cells(tree, plan, entries, work, desk.task, 0, side, before)
    latest = np.int64(plan.rates[LATEST])
    for timestamp in range(1, latest):
        count_cells(tree, plan, entries, work, desk.task, timestamp, side, now)
        if spread(before, now) > plan.divergence:
            return float(timestamp)
    return float(max(latest, 1))


@primitive
def count_cells(tree, plan, entries, work, task, timestamp, side, counts):
    """How many entries are in which cell after some timestamps, if they drive on as they do."""
    counts[:] = 0
    width, height = float(task[WEST + 2] - task[WEST] + 1), float(task[NORTH] - task[WEST + 1] + 1)
    stride = max(1, (task[HIGH] - task[LOW]) // LOOKED_AT)
    for i in range(task[LOW], task[HIGH], stride):
        entry = work[i]
        box = steps_of(entries.boxes, entry, tree.frame)
        x, y = 0.5 * (box[0] + box[2]) - task[WEST], 0.5 * (box[1] + box[3]) - task[WEST + 1]
        if entry < len(plan.velocity):
            x += timestamp * plan.velocity[entry, 0] * tree.frame[2]
            y += timestamp * plan.velocity[entry, 1] * tree.frame[3]
        if 0.0 <= x < width and 0.0 <= y < height:
            counts[np.int64(y / height * side) * side + np.int64(x / width * side)] += 1


@primitive
def spread(before, now):
    """Kullback-Leibler divergence of the cells' shares."""
    n_before, n_now, total = SMOOTH * len(before), SMOOTH * len(now), 0.0
    for i in range(len(before)):
        n_before += before[i]
        n_now += now[i]
    for i in range(len(before)):
        old = (before[i] + SMOOTH) / n_before
        total += old * np.log(old * n_now / (now[i] + SMOOTH))
    return total
