"""Sort-tile-recursive packing (Leutenegger et al. 1997). KDD'13 does not say how its trees were built."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FILL = 0.8  # share of B that a packed node holds, so that the next insertions find room


def tiles(boxes: NDArray[np.float64], capacity: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(order, starts): tile i holds the boxes order[starts[i]:starts[i + 1]], all tiles alike in size.

    The boxes are cut by the x of their centres into as many slabs as each slab then has tiles by y.
    """
    n = len(boxes)
    n_tiles = -(-n // capacity)
    n_slabs = int(np.ceil(np.sqrt(n_tiles)))
    starts = np.arange(n_tiles + 1) * n // n_tiles
    slab_starts = starts[np.arange(n_slabs + 1) * n_tiles // n_slabs]
    slab = np.repeat(np.arange(n_slabs), np.diff(slab_starts))
    by_x = np.argsort(boxes[:, 0] / 2 + boxes[:, 2] / 2, kind="stable")
    y = (boxes[:, 1] / 2 + boxes[:, 3] / 2)[by_x]
    return by_x[np.lexsort((y, slab))], starts


def bounds_of(boxes: NDArray[np.float64], used: NDArray[np.int32]) -> NDArray[np.float64]:
    """The smallest box around boxes[i, :used[i]], for each i."""
    outside = np.arange(boxes.shape[1]) >= used[:, None]
    low = np.where(outside[:, :, None], np.inf, boxes[:, :, :2]).min(axis=1)
    high = np.where(outside[:, :, None], -np.inf, boxes[:, :, 2:]).max(axis=1)
    return np.concatenate([low, high], axis=1)
