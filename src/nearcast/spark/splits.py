"""Row groups of many files, divided among tasks: about the same cost for each, in order, few groups read twice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_ROWS = 5_000
"""Of a task: about what its start costs."""

MOST_ROWS = 250_000
"""Of a task, about: where there are more, a task that is slow or fails must not hold up the others for long."""

OPENING = 300
"""Rows that could be matched while a row group is opened: many small files are dear."""

SLACK = 0.05
"""Of a task's share: a cut as near as that to the end of a row group is made there, for a group that is cut is
decoded twice."""


class Group(NamedTuple):
    """A row group of a file, as the driver found it."""

    path: str
    size: int  # bytes of the whole file: another size means another file
    number: int
    rows: int


class Piece(NamedTuple):
    """Rows of a row group."""

    group: Group
    start: int
    stop: int


Split = tuple[Piece, ...]
"""What one task reads."""


def spread(groups: Sequence[Group], at_a_time: int) -> list[Split]:
    """The tasks, for so many that run at a time. Every row of every group is in exactly one; none is empty."""
    groups = [group for group in groups if group.rows]
    rows = sum(group.rows for group in groups)
    tasks = min(at_a_time, -(-rows // LEAST_ROWS))
    if not tasks:
        return []
    tasks *= -(-rows // (tasks * MOST_ROWS))
    ends = np.cumsum([group.rows + OPENING for group in groups])
    cuts = np.unique(_cuts(ends, tasks))
    splits = [_between(groups, ends, low, high) for low, high in pairwise(cuts.tolist())]
    return [split for split in splits if split]


def _cuts(ends: NDArray[np.int64], tasks: int) -> NDArray[np.int64]:
    """[tasks + 1] where tasks begin and end, on a line on which every group has its cost."""
    cuts = np.arange(tasks + 1) * int(ends[-1]) // tasks
    borders = np.concatenate([[0], ends])
    after = np.searchsorted(borders, cuts).clip(1)
    nearest = np.where(cuts - borders[after - 1] < borders[after] - cuts, borders[after - 1], borders[after])
    is_near = np.abs(nearest - cuts) <= SLACK * int(ends[-1]) / tasks
    return np.asarray(np.where(is_near, nearest, cuts), np.int64)


def _between(groups: Sequence[Group], ends: NDArray[np.int64], low: int, high: int) -> Split:
    """The rows on this part of the line; the cost of opening comes before the rows of a group."""
    pieces = []
    for at in range(int(np.searchsorted(ends, low, "right")), int(np.searchsorted(ends, high)) + 1):
        first = int(ends[at]) - groups[at].rows
        start, stop = (min(max(int(cut) - first, 0), groups[at].rows) for cut in (low, high))
        if start < stop:
            pieces.append(Piece(groups[at], start, stop))
    return tuple(pieces)
