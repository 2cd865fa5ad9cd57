"""What cost models know of the messages to come: how often terms occur, and where (VLDBJ'17 3.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.kernels.layout import Entries
from nearcast.kernels.quadtree import BITS, N_STEPS, Grid
from nearcast.kernels.ranked import Ranks


class Past:
    """Counts taken once from a message history, so that they can be saved and the history let go."""

    def __init__(self, n_messages: int, counts: NDArray[np.int64], grid: Grid) -> None:
        self.n_messages = n_messages
        self.counts = counts  # by term: messages that have it
        self.grid = grid

    @classmethod
    def of(cls, history: MessageBatch | None, depth: int) -> Self | None:
        if history is None or not len(history):
            return None
        counts = np.bincount(history.terms_once()).astype(np.int64)
        frame = _frame_of(history.boxes)
        return cls(len(history), counts, Grid(frame, _shares(frame, history.boxes, depth), _as_array(depth)))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"past.n": _as_array(self.n_messages), "past.counts": self.counts}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], grid: Grid) -> Self | None:
        return cls(int(arrays["past.n"][0]), arrays["past.counts"], grid) if "past.n" in arrays else None


def grid_of(entries: Entries, chosen: NDArray[np.int64], depth: int) -> Grid:
    """Without a history: cells over the middles of the entries, messages spread evenly (VLDBJ'17 3.3.1)."""
    share = np.ones(2 * 4**depth, dtype=np.float32)
    for level in range(depth + 1):
        share[4**level :] = 0.25**level
    return Grid(_frame_of(entries.boxes[chosen]), share, _as_array(depth))


def ranks_of(entries: Entries, chosen: NDArray[np.int64], past: Past | None) -> Ranks:
    """Terms from the rarest on: by the history, then by the entries; without a history by the entries alone.

    The chance of a term is the part of the past messages that have it, each counted once more than seen, so
    that nothing is impossible; without a history its part of all the entries' terms (VLDBJ'17 3.3.1).
    """
    starts, counts = entries.term_from[chosen], entries.term_count[chosen].astype(np.int64)
    ends = np.cumsum(counts)
    positions = np.arange(counts.sum()) + np.repeat(starts - (ends - counts), counts)
    asked = np.bincount(entries.terms[positions], minlength=0 if past is None else len(past.counts))
    seen = asked
    if past is not None:
        seen = np.zeros_like(asked)
        seen[: len(past.counts)] = past.counts
    rank = np.zeros(len(asked) + 1, dtype=np.int32)
    rank[np.lexsort((asked, seen)) + 1] = np.arange(1, len(asked) + 1)
    total = int(asked.sum()) if past is None else past.n_messages
    chance = np.concatenate([[1.0], seen + 1.0]) / (total + 1.0)
    return Ranks(rank, np.minimum(chance, 1.0))


def _frame_of(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corner and steps per unit, over the middles of the boxes: a few huge boxes do not blur the cells."""
    if not len(boxes):
        return np.zeros(4)
    middles = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    low = middles.min(axis=0)
    extent = middles.max(axis=0) - low
    with np.errstate(divide="ignore", over="ignore"):
        per_unit = N_STEPS / extent
    return np.concatenate([low, np.where(np.isfinite(per_unit), per_unit, 0.0)])


def _shares(frame: NDArray[np.float64], boxes: NDArray[np.float64], depth: int) -> NDArray[np.float32]:
    """By code: the part of the boxes that meet the cell, blended with one message spread evenly."""
    low, per_unit = np.tile(frame[:2], 2), np.tile(frame[2:], 2)
    steps = np.clip((boxes - low) * per_unit, 0, N_STEPS - 1).astype(np.int64)
    share = np.zeros(2 * 4**depth, dtype=np.float32)
    for level in range(depth + 1):
        side = 2**level
        west, south, east, north = (steps >> (BITS - level)).T
        # Every box adds 1 to a rectangle of cells: four corners of a difference, summed along both axes.
        corners = np.zeros((side + 1, side + 1))
        np.add.at(corners, (south, west), 1)
        np.add.at(corners, (north + 1, east + 1), 1)
        np.add.at(corners, (south, east + 1), -1)
        np.add.at(corners, (north + 1, west), -1)
        met = corners.cumsum(axis=0).cumsum(axis=1)[:side, :side]
        share[_codes(level)] = (met + 0.25**level) / (len(boxes) + 1)
    return share


def _codes(level: int) -> NDArray[np.int64]:
    """Codes of all cells of a level, [y, x]."""
    codes = np.ones((1, 1), dtype=np.int64)
    for _ in range(level):
        codes = np.kron(codes * 4, np.ones((2, 2), dtype=np.int64))
        codes += np.tile(np.array([[0, 1], [2, 3]]), (len(codes) // 2, len(codes) // 2))
    return codes


def _as_array(value: int) -> NDArray[np.int64]:
    return np.array([value], dtype=np.int64)
