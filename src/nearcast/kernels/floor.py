"""What no index can avoid: memory for each term of a message, and writing down who gets it.

The floor of docs/architecture.md: one random cache line a term and a streaming copy of an id a match, in the
form of runs by message. It knows the answers beforehand and looks nothing up.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel

LINE = 8  # words of 8 bytes in a cache line
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@kernel
def touch_and_copy(rows, lines, shift, answer_from, answers, found_from, found):
    """Touch a line for every term of every row, copy the row's answers. Returns (number found, sum of the lines).

    The line is drawn from the term and its position, 64 - shift bits of it: the same term meets another line each
    time. The sum is handed back so that no compiler leaves the reading out.
    """
    total, n_found = np.uint64(0), 0
    for row in range(len(rows.boxes)):
        for i in range(rows.term_from[row], rows.term_from[row + 1]):
            drawn = ((np.uint64(i) << _HALF) | np.uint64(rows.terms[i])) * _GOLDEN
            total += lines[np.int64(drawn >> shift), 0]
        for i in range(answer_from[row], answer_from[row + 1]):
            found[n_found] = answers[i]
            n_found += 1
        found_from[row + 1] = n_found
    return n_found, total
