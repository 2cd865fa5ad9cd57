"""Arrays of the ranking kernels, and the score. See `ranking` for who fills them.

A message in the window has a sequence number (`seq`), which grows by one with every arrival; its row in
`Posts` is seq - state[BASE]. A wish has a slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.distance import box_distance_earth, box_distance_plane
from nearcast.kernels.jit import inlined
from nearcast.kernels.primitives import lower_bound

NOTHING = -1.0
"""The score of a message that shares no term; every other score is 0 or more."""

ALL = -1.0
"""The threshold of a buffer that misses no message which shares a term."""

NEVER = np.inf
"""The threshold of a slot without a wish."""

# Positions in `state`.
BASE = 0  # seq of row 0
OLDEST = 1  # first seq that is in the window
NEXT = 2  # seq of the next message: those below have arrived
SWEPT = 3  # buffers hold nothing below this seq
ROW = 4  # row of the batch that arrives next
LAST_ROW = 5
CANDIDATE = 6  # next candidate of that row
FRESH = 7  # next fresh slot of that row
N_FRESH = 8
N_MOVED = 9  # slots whose threshold changed
N_OUT = 10  # changes that wait to be taken
TO_NET = 11  # 1: a message may have entered and left a ranking within one step
COUNT = 12  # messages of a count window; 0: the window is one of time
BATCH = 13  # number of the batch, to know what is fresh
# Counters.
INSERTED = 14  # into buffers
EXPIRED = 15  # messages
TOUCHED = 16  # buffers looked at because something expired
REFILLS = 17
SCANNED = 18  # postings read by refills
SCORED = 19  # exact scores by refills
TRIMMED = 20  # buffers that had no room for all they should hold
SHELVED = 21  # messages below this seq are on shelves
N_STATE = 22

# Positions in `space`.
IS_EARTH = 0  # 1.0 or 0.0
MAX_DISTANCE = 1
SECONDS = 2  # of a time window
NOW = 3
N_SPACE = 4


class Wants(NamedTuple):
    """Wishes by slot. A wish owns terms[term_from:term_from + term_count], ascending; a free slot has none."""

    points: NDArray[np.float64]  # [n, 2]
    alpha: NDArray[np.float64]  # [n]
    k: NDArray[np.int32]  # [n]
    term_from: NDArray[np.int64]  # [n]
    term_count: NDArray[np.int32]  # [n]
    terms: NDArray[np.int32]  # [*]
    weights: NDArray[np.float64]  # [*]  unit length


class Posts(NamedTuple):
    """Messages by row: those of the window, some that left it, and those of the batch that is arriving."""

    boxes: NDArray[np.float64]  # [n, 4]  west > east: across the 180th meridian
    ts: NDArray[np.float64]  # [n]
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [*]  ascending within a row
    weights: NDArray[np.float64]  # [*]  unit length


class Buffers(NamedTuple):
    """By slot, the messages that are or may become its best: best first, of equal scores the newer first.

    Every message of the window with a score of `theta` or more is in the buffer, or (where dominance counts)
    k newer messages in it score no less.
    """

    start: NDArray[np.int64]  # [n]
    room: NDArray[np.int32]  # [n]
    size: NDArray[np.int32]  # [n]
    theta: NDArray[np.float64]  # [n]
    scores: NDArray[np.float64]  # [*]
    seqs: NDArray[np.int32]  # [*]
    beaten: NDArray[np.int16]  # [*]  newer messages that score no less


class Calendar(NamedTuple):
    """Which slots must be looked at when a message expires: a chain of slots for every row.

    A slot waits for the oldest message of its buffer, or for one that was dropped since.
    """

    head: NDArray[np.int32]  # [rows]  first slot that waits for the row, or -1
    after: NDArray[np.int32]  # [n]
    before: NDArray[np.int32]  # [n]  -1: first of its chain
    due: NDArray[np.int32]  # [n]  seq that the slot waits for, or -1


class Candidates(NamedTuple):
    """What a probe found: row after row, each slot once a row, with its exact score."""

    rows: NDArray[np.int32]
    slots: NDArray[np.int32]
    scores: NDArray[np.float64]


@inlined
def place_distance(x, y, boxes, row, is_earth):
    """From a point to the message's place; a box with west > east is cut at the 180th meridian."""
    west, south, east, north = boxes[row, 0], boxes[row, 1], boxes[row, 2], boxes[row, 3]
    if is_earth == 0.0:
        return box_distance_plane(x, y, west, south, east, north)
    if west <= east:
        return box_distance_earth(x, y, west, south, east, north)
    return min(
        box_distance_earth(x, y, west, south, 180.0, north), box_distance_earth(x, y, -180.0, south, east, north)
    )


@inlined
def score_of(wants, slot, posts, row, space):
    """alpha * proximity + (1 - alpha) * cosine, operation by operation as `reference.score`; or NOTHING."""
    first, last = posts.term_from[row], posts.term_from[row + 1]
    low = wants.term_from[slot]
    cosine = 0.0
    shared = False
    for i in range(low, low + wants.term_count[slot]):
        first = lower_bound(posts.terms, first, last, wants.terms[i])
        if first == last:
            break
        if posts.terms[first] == wants.terms[i]:
            shared = True
            cosine += wants.weights[i] * posts.weights[first]
    if not shared:
        return NOTHING
    distance = place_distance(wants.points[slot, 0], wants.points[slot, 1], posts.boxes, row, space[IS_EARTH])
    proximity = max(0.0, 1.0 - distance / space[MAX_DISTANCE])
    alpha = wants.alpha[slot]
    return alpha * proximity + (1.0 - alpha) * cosine
