"""What kernels of moving subscriptions share: the boxes before and after a move, and room for what differs.

Live messages are laid out as entries are (`layout.Entries`): row r owns terms[term_from[r]:][:term_count[r]].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive
from nearcast.kernels.primitives import contains_all, overlaps

NOWHERE = (np.inf, np.inf, -np.inf, -np.inf)
"""A box that touches nothing: where a subscription is before it is there."""


class Differences(NamedTuple):
    """Room for (which move, row of a message, whether it enters); a kernel that runs out of it says how far it came."""

    moves: NDArray[np.int32]  # [capacity]  place among the entries that move
    rows: NDArray[np.int32]  # [capacity]
    entered: NDArray[np.bool_]  # [capacity]


@primitive
def has_terms(entries, entry, rows, row):
    """Has the message all terms of the entry?"""
    low, first = entries.term_from[entry], rows.term_from[row]
    return contains_all(
        entries.terms,
        low,
        low + entries.term_count[entry],
        rows.terms,
        first,
        first + rows.term_count[row],
    )


@primitive
def differs(old, new, i, rows, row):
    """1 if the message is only in the new box, -1 if only in the old one, else 0."""
    return np.int64(overlaps(new, i, rows.boxes, row)) - np.int64(overlaps(old, i, rows.boxes, row))
