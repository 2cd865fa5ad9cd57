"""The arrays of `strata`, and the arithmetic on packed boxes that all of its kernels share.

Packed boxes. A coordinate becomes one of 32767 *cells* by a function that never falls as the coordinate
grows, so cells answer most questions: a smaller cell proves a smaller coordinate, and only equal cells must
look at the exact numbers. An entry's box is four 15-bit fields in one 64-bit word, a message's place four
others,

    entry     x0      y0      LAST - x1      LAST - y1
    message   x1      y1      LAST - x0      LAST - y0      (and the guard bit above each field)

so that "they intersect" is "every entry field <= the message's field": one subtraction, whose guard bits
say where it did not borrow. Points and boxes are alike. An entry is a point in four dimensions, and a message
asks for all points below it in all four: so a group of entries needs only its smallest fields (`low`; where
the message is not above them the group is skipped: the *outer* box) and its largest (`high`; a message
strictly above them takes the whole group without a look: the *core* box).

Lists. A key (a term) has two lists: *lone*, of entries that need nothing but the key, and *more*, of the
others. Where a more list is heavy, the term is *split*: its entries go to one of several lists by the *class* (the
low bits) of their second term, and a message opens the classes of its own terms only. Each lane is (packed box,
entry, word on its other terms). A list of up to 32 is a *run* of just as many lanes; a longer one is a tree of
fan-out 16 over leaves of 16 lanes (an index may be told to use less of them: LEAF_MOST and FAN_MOST of its `state`):

    rows[t]   the row of term t in keys; 0: it has none; negative: ~ the number of its split
    split     row of the term | first list of its classes | classes - 1                   in `state`
    keys[k]   low of lone | low of more | root of lone | root of more     list 2 * k, 2 * k + 1; or two classes
    root      (lane or branch) << 24 | level << 16 | lanes of the run << 8 | lanes in use     0: empty
    branch    low[16], high[16] of the children; children (leaf or branch) << 5 | lanes in use
    leaf      lanes [16 * leaf, 16 * leaf + 16), those in use first, the others NEVER
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive

LANES = 16  # of a leaf, and children of a branch
FULL_CLASS = 4  # LANES == 1 << FULL_CLASS

LAST = 32766  # the highest cell; 32767 is kept for NEVER
EDGE = 1023  # cells on either side for what lies outside the frame
INSIDE = LAST - 2 * EDGE

FIELD = np.uint64(0x7FFF)
GUARD = np.uint64(0x8000_8000_8000_8000)
ONES = np.uint64(0x0001_0001_0001_0001)
NEVER = np.uint64(0x7FFF_7FFF_7FFF_7FFF)  # above every message: an empty lane, the low of an empty group
ALWAYS = np.uint64(0)  # the high of an empty group
GUARD_SHIFT = np.uint64(15)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(16), np.uint64(32), np.uint64(48)

LONE, MORE = 0, 1
MARK_BITS, THIRD_SHIFT = 0x3FFF, 32  # see `strata_keys` on the word on other terms
WHERE_BITS, WHERE_SHIFT, WHERE_LOW_BITS = 0x3FFFF, 14, 18
WHERE_HIGH_BITS, WHERE_HIGH_SHIFT = 0x1FFF, 46
MOST_COUNTED, COUNT_SHIFT = 15, 59
SEVERAL = np.int64(-(1 << 63))  # the sign bit: a word of marks
NO_PARENT = -1  # of a slab whose lanes are runs
PARENT, USED, LEVEL = 16, 17, 18  # columns of `children` after the 16 children
CHILD_COLUMNS = 32  # two lines of a cache: a match reads the first only

RUN = 32  # lanes of the longest run
NONE = -1

# Positions in `state`: first free run of 1 to RUN lanes, then the rest.
LEAF_FREE, BRANCH_FREE = RUN + 1, RUN + 2
LANE_TOP, BRANCH_TOP = RUN + 3, RUN + 4  # never used from here on
RUN_FROM, RUN_UPTO = RUN + 5, RUN + 6  # lanes that the next runs are cut from
N_LEAVES, N_RUNS = RUN + 7, RUN + 8
LEAF_MOST, FAN_MOST = RUN + 9, RUN + 10  # lanes of a leaf and children of a branch that are used at most
ROW_TOP, N_SPLITS, HOT = RUN + 11, RUN + 12, RUN + 13  # rows of keys in use; splits; a term whose more list grew
SPLITS = RUN + 14  # from here on three numbers a split: see SPLIT_ROW and so on
SPLIT_ROW, SPLIT_LISTS, SPLIT_MASK, SPLIT_COLUMNS = 0, 1, 2, 3
MOST_SPLITS = 1024
MOST_CLASSES = 1024
STATE_SIZE = SPLITS + SPLIT_COLUMNS * MOST_SPLITS


class Strata(NamedTuple):
    """All lists of all keys."""

    rows: NDArray[np.int32]  # [n_terms]      row of a term in keys; 0: none; negative: ~ its split
    keys: NDArray[np.uint64]  # [n_rows, 4]    low of lone, low of more, root of lone, root of more; row 0 is empty
    bounds: NDArray[np.uint64]  # [branches, 2, 16]  low and high of each child
    children: NDArray[np.int32]  # [branches, 32]  children, then PARENT, USED, LEVEL
    boxes: NDArray[np.uint64]  # [lanes]        packed box; NEVER where the lane is empty
    entries: NDArray[np.int32]  # [lanes]        entry number; in a free run or leaf: the next free one
    others: NDArray[np.int64]  # [lanes]        what must be there besides the key, see `strata_keys`
    parents: NDArray[np.int32]  # [lanes / 16]   branch * 16 + position of a leaf; NO_PARENT
    state: NDArray[np.int64]  # [STATE_SIZE]   see above


@primitive
def cell(x, low, scale):
    """The cell of a coordinate: even inside the frame, ever wider outside; never falls as x grows."""
    t = (x - low) * scale
    if t < 0.0:
        return np.int64(EDGE / (1.0 - t))
    if t <= 1.0:
        return np.int64(EDGE + np.int64(t * INSIDE))
    return np.int64(LAST - np.int64(EDGE / t))


@primitive
def packed(a, b, c, d):
    """Four fields as one word."""
    return np.uint64(a | (b << 16) | (c << 32) | (d << 48))


@primitive
def packed_entry(boxes, i, frame):
    return packed(
        cell(boxes[i, 0], frame[0], frame[2]),
        cell(boxes[i, 1], frame[1], frame[3]),
        LAST - cell(boxes[i, 2], frame[0], frame[2]),
        LAST - cell(boxes[i, 3], frame[1], frame[3]),
    )


@primitive
def packed_message(boxes, i, frame):
    """With the guard bits set."""
    return GUARD | packed(
        cell(boxes[i, 2], frame[0], frame[2]),
        cell(boxes[i, 3], frame[1], frame[3]),
        LAST - cell(boxes[i, 0], frame[0], frame[2]),
        LAST - cell(boxes[i, 1], frame[1], frame[3]),
    )


@primitive
def below(low, message):
    """Is every field <= the message's?"""
    return (message - low) & GUARD == GUARD


@primitive
def strictly_below(high, message):
    """Is every field < the message's?"""
    return (message - high - ONES) & GUARD == GUARD


@primitive
def not_above(a, b):
    """All ones in the fields where a <= b."""
    guards = ((b | GUARD) - a) & GUARD
    return guards - (guards >> GUARD_SHIFT)


@primitive
def lower(a, b):
    """The smaller of each field."""
    chosen = not_above(a, b)
    return (a & chosen) | (b & ~chosen)


@primitive
def upper(a, b):
    """The larger of each field."""
    chosen = not_above(a, b)
    return (b & chosen) | (a & ~chosen)


@primitive
def excess(a, b):
    """By how much a is above b, summed over the fields where it is."""
    chosen = not_above(b, a)
    apart = (a & chosen) - (b & chosen)
    return np.int64(
        (apart & FIELD) + ((apart >> SHIFT_1) & FIELD) + ((apart >> SHIFT_2) & FIELD) + ((apart >> SHIFT_3) & FIELD)
    )


@primitive
def field(word, number):
    return np.int64((word >> np.uint64(number << 4)) & FIELD)


@primitive
def widest(low, high):
    """The field in which low and high are farthest apart, and how far."""
    best, most = 0, np.int64(-1)
    for number in range(4):
        apart = field(high, number) - field(low, number)
        if apart > most:
            best, most = number, apart
    return best, most


@primitive
def mark_of(term):
    """14 bits of a term. Terms are handed out one after the other, so those that are met first never collide."""
    return np.int64(term) & MARK_BITS


@primitive
def run_most(strata):
    """Lanes of the longest run: what two leaves take, for that is what it becomes."""
    return strata.state[LEAF_MOST] * 2


@primitive
def filled(most):
    """Of so many lanes or children, those that a bulk build uses (14 of 16); the rest is for insertions."""
    return most - (most >> 3)


@primitive
def run_root(lane, size, used):
    return (lane << 24) | (size << 8) | used


@primitive
def tree_root(branch, level):
    return (branch << 24) | (level << 16)
