"""Counting per row without clearing anything: a mark is (tick << TERM_BITS) + terms seen; each row has a tick.

KDD'13 5.2 counts in a hash map that starts empty for each message; an array of marks does without hashing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive

TERM_BITS = 24  # 16 million terms in one entry, 550 billion rows before ticks run out


class Marks(NamedTuple):
    """What the row at hand has met; marks of earlier rows are smaller than its base and count as nothing."""

    marks: NDArray[np.int64]  # [n]  of entries: base + terms seen; of nodes: base + 1 when seen
    tick: NDArray[np.int64]  # [1]  rows begun so far


@primitive
def next_base(marks):
    """The mark of "nothing seen yet" for a new row; a row that is probed again gets a new one, too."""
    marks.tick[0] += 1
    return marks.tick[0] << TERM_BITS


@primitive
def note(marks, base, entry):
    """One term more of an entry was seen; how many now."""
    mark = max(marks.marks[entry], base) + 1
    marks.marks[entry] = mark
    return mark - base
