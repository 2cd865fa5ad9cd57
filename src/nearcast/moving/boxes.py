"""Boxes of moving subscriptions: which regions are one box, and boxes to move to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import SubscriptionColumns
from nearcast.columns.messages import NOT_A_BOX
from nearcast.columns.seal import bad_boxes, refuse


class Moved(NamedTuple):
    """Entries that go from one box to another."""

    entries: NDArray[np.int64]
    old: NDArray[np.float64]  # [n, 4]
    new: NDArray[np.float64]  # [n, 4]


def one_box_each(columns: SubscriptionColumns) -> NDArray[np.bool_]:
    """By subscription: is its region exactly one box? (A circle is not, nor a box that was cut at a meridian.)"""
    plain = np.ones(len(columns.boxes), np.bool_)
    if columns.conditions is not None:
        plain = np.isnan(columns.conditions.circles[:, 2])
        plain[list(columns.conditions.polygons)] = False
    if columns.owner is None:
        return plain
    first = np.flatnonzero(np.diff(columns.owner, prepend=-1))
    plain &= (columns.boxes == columns.boxes[first[columns.owner]]).all(axis=1)
    return np.logical_and.reduceat(plain, first) if len(first) else plain


def sealed_boxes(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    refuse(bad_boxes(boxes), NOT_A_BOX)
    return boxes


def touching(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Row by row: do two closed boxes share a point?"""
    west, south, east, north = (a[:, 0] <= b[:, 2]), (a[:, 1] <= b[:, 3]), (b[:, 0] <= a[:, 2]), (b[:, 1] <= a[:, 3])
    return np.asarray(west & south & east & north)
