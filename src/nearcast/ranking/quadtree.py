"""Leaf cells of a quadtree over points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

DEEPEST = 16


def leaf_cells(
    points: NDArray[np.float64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Cells of at most `most` points each (more only where points are equal or nearly so).

    Returns the order of points by cell, where each cell starts in it, and the cells' boxes, all without empty ones.
    """
    west, south = points.min(axis=0)
    width, height = np.maximum(points.max(axis=0) - [west, south], 1e-12)
    side = 1 << DEEPEST
    steps = np.minimum(((points - [west, south]) / [width, height] * side).astype(np.int64), side - 1)
    codes = _interleaved(steps[:, 0]) | (_interleaved(steps[:, 1]) << 1)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    starts: list[int] = []
    stack = [(0, 0, len(points))]
    while stack:
        depth, low, high = stack.pop()
        if high - low <= most or depth == DEEPEST:
            starts.append(low)
            continue
        bits = 2 * (DEEPEST - depth - 1)
        first = codes[low] >> (bits + 2) << 2
        cuts = np.searchsorted(codes[low:high], (first + np.arange(5)) << bits) + low
        stack += [(depth + 1, a, b) for a, b in pairwise(cuts.tolist()) if b > a]
    cell_from = np.array([*sorted(starts), len(points)], np.int64)
    placed = points[order]
    low_corner = np.minimum.reduceat(placed, cell_from[:-1])
    high_corner = np.maximum.reduceat(placed, cell_from[:-1])
    return order, cell_from, np.ascontiguousarray(np.hstack([low_corner, high_corner]))


def _interleaved(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The 16 bits of each value, with zeros between."""
    spread = values.copy()
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        spread = (spread | (spread << shift)) & mask
    return spread
