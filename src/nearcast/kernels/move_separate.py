"""Messages kept apart from the tree of subscriptions (VLDBJ'17 5.2.2, AP+k and AP+s): `move_strata` for its entries."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel
from nearcast.kernels.move_layout import has_terms
from nearcast.kernels.move_strata import find_differences


@kernel
def differ(postings, entries, numbers, old, new, first, frame, rows, out, counters):
    """As `move_strata.differ`, for a table that counts terms by 32 bits."""
    return find_differences(postings, entries, numbers, old, new, first, frame, rows, out, counters)


@kernel
def keep_terms(entries, numbers, rows, out, n):
    """Of the first n differences keep those whose message has all terms of the entry; how many."""
    kept = np.int64(0)
    for i in range(n):
        if has_terms(entries, numbers[out.moves[i]], rows, out.rows[i]):
            out.moves[kept], out.rows[kept], out.entered[kept] = out.moves[i], out.rows[i], out.entered[i]
            kept += 1
    return kept
