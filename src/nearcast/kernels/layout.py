"""The arrays that every kernel works on. Sealed at the edge (`columns`, `indexes.table`), trusted here.

A *row* is a line of a message batch, an *entry* a line of an index's table: one clause in one box.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """Messages. Row i owns terms[term_from[i]:term_from[i + 1]]."""

    boxes: NDArray[np.float64]  # [n, 4]   west, south, east, north; a point has west == east
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [*]      ascending and distinct within a row


class Entries(NamedTuple):
    """What the entries of an index say. Entry e owns terms[term_from[e]:term_from[e] + term_count[e]]."""

    boxes: NDArray[np.float64]  # [n, 4]   west, south, east, north
    term_from: NDArray[np.int32]  # [n]
    term_count: NDArray[Any]  # [n]      int16 or int32, one for each kind of index; 0 marks a free entry
    terms: NDArray[np.int32]  # [*]      required terms, ascending and distinct within an entry


class Found(NamedTuple):
    """Room for (row, entry) pairs; a kernel that runs out of it stops and says how far it came."""

    rows: NDArray[np.int32]  # [capacity]
    entries: NDArray[np.int32]  # [capacity]


COUNTERS = ("candidates", "nodes")
"""Meaning of the counters array that probes add to: entries verified, index nodes or lists visited."""
CANDIDATES, NODES = 0, 1
