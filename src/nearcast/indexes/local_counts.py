"""How often each term comes in each cell of a grid (KDD'13 4.2, the locality-aware method)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

TERM_BITS = 32  # of a key (cell << TERM_BITS) + term


class LocalCounts:
    """Counted once for a set of boxes, each in the cell of its centre; cells are grid × grid over their extent.

    The paper does not say where a region that covers several cells belongs.
    """

    def __init__(self, grid: int) -> None:
        self._grid = grid
        self.n_boxes = 0
        self._extent = np.zeros(4)  # west, south, width, height
        self._keys = np.zeros(0, dtype=np.int64)  # ascending
        self._counts = np.zeros(0, dtype=np.int32)  # beside each key

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._counts.nbytes

    def count(self, boxes: NDArray[np.float64], term_counts: NDArray[np.int64], terms: NDArray[np.int32]) -> None:
        """Count anew. Box i has the next term_counts[i] of the terms."""
        self.n_boxes = len(boxes)
        low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
        self._extent = np.concatenate([low, high - low])
        keys = np.repeat(self._cells(boxes) << TERM_BITS, term_counts) + terms
        self._keys, counts = np.unique(keys, return_counts=True)
        self._counts = counts.astype(np.int32)

    def of(self, boxes: NDArray[np.float64], row: NDArray[np.int64], terms: NDArray[np.int32]) -> NDArray[np.int32]:
        """How often terms[i] came in the cell of boxes[row[i]]."""
        keys = (self._cells(boxes) << TERM_BITS)[row] + terms
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._counts[at], np.int32(0))

    def _cells(self, boxes: NDArray[np.float64]) -> NDArray[np.int64]:
        """What lies outside the extent belongs to the cells at its border."""
        centre = boxes[:, :2] / 2 + boxes[:, 2:] / 2
        size = np.where(self._extent[2:] > 0, self._extent[2:], 1)
        steps = np.clip((centre - self._extent[:2]) / size * self._grid, 0, self._grid - 1).astype(np.int64)
        return np.asarray(steps[:, 1] * self._grid + steps[:, 0])

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "local_extent": np.append(self._extent, self.n_boxes),
            "local_keys": self._keys,
            "local_counts": self._counts,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._extent, self.n_boxes = arrays["local_extent"][:4], int(arrays["local_extent"][4])
        self._keys, self._counts = arrays["local_keys"], arrays["local_counts"]
