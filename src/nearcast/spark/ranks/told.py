"""Changes of a batch as they are told, and the order in which they get their numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.ranking import Changes

FIRST_RESULT = -1
"""The step of what a new wish finds in the window."""


class Told(NamedTuple):
    """Changes of a batch: of which wish, the how manieth of it, which message, and which message brought it."""

    wish: NDArray[np.int64]
    seq: NDArray[np.int64]
    entered: NDArray[np.bool_]
    message: NDArray[np.int64]  # number in the stream
    score: NDArray[np.float64]
    because: NDArray[np.int64]  # number in the stream, or FIRST_RESULT


def told_order(changes: Changes, because: NDArray[np.int64]) -> NDArray[np.intp]:
    """By wish, then by what brought them. In a step first those that leave, then those that enter, the best first: an
    order that does not depend on what is in buffers, so that every try gives the same numbers.

    Most changes are the only ones of their kind in a step: one number says where they stand.
    """
    first = int(because[because >= 0].min(initial=np.iinfo(np.int64).max))
    step = np.where(because >= 0, because - first + 1, 0)
    place = (changes.slot * (step.max(initial=0) + 1) + step) * 2 + changes.entered
    order = np.argsort(place)
    place = place[order]
    same = np.append(False, place[1:] == place[:-1])
    tied = np.flatnonzero(same | np.append(same[1:], False))
    rows = order[tied]
    order[tied] = rows[np.lexsort((-changes.seq[rows], -changes.score[rows], place[tied]))]
    return order
