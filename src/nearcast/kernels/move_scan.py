"""Every live message against every subscription that moves: the baseline and second reference."""

from __future__ import annotations

from nearcast.kernels.jit import kernel
from nearcast.kernels.layout import CANDIDATES
from nearcast.kernels.move_layout import differs, has_terms


@kernel
def differ(entries, numbers, old, new, first, rows, out, counters):
    """Messages that the entries from `first` on gain and lose: (how far it came, how many)."""
    n = 0
    for i in range(first, len(numbers)):
        before = n
        for row in range(len(rows.term_count)):
            if rows.term_count[row] == 0:
                continue
            sign = differs(old, new, i, rows, row)
            if sign == 0 or not has_terms(entries, numbers[i], rows, row):
                continue
            if n == len(out.rows):
                return i, before
            out.moves[n], out.rows[n], out.entered[n] = i, row, sign > 0
            n += 1
        counters[CANDIDATES] += len(rows.term_count)
    return len(numbers), n
