"""Everything against everything: the baseline, and a second reference that is compiled."""

from __future__ import annotations

from nearcast.kernels.jit import kernel
from nearcast.kernels.layout import CANDIDATES
from nearcast.kernels.primitives import verify


@kernel
def probe(entries, rows, first_row, found, counters):
    """Append all (row, entry) pairs from first_row on. Returns (next row, number found).

    A row is written whole or not at all: the caller enlarges `found` and comes again with the next row.
    Counters are added when a row is complete, so that coming again counts nothing twice.
    """
    n_found = 0
    for row in range(first_row, len(rows.boxes)):
        row_from = n_found
        candidates = 0
        for entry in range(len(entries.term_count)):
            if entries.term_count[entry] == 0:
                continue
            candidates += 1
            if verify(entries, entry, rows, row):
                if n_found == len(found.rows):
                    return row, row_from
                found.rows[n_found] = row
                found.entries[n_found] = entry
                n_found += 1
        counters[CANDIDATES] += candidates
    return len(rows.boxes), n_found
