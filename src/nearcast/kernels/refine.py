"""The last, exact part of a match: what a box and required terms cannot say.

Forbidden terms, phrases and circles of candidate pairs; polygons are refined by the caller (GEOS).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.distance import EARTH_RADIUS_M, RADIAN, box_distance_earth, box_distance_plane
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.primitives import lower_bound

METRES_A_DEGREE = EARTH_RADIUS_M * RADIAN

HOLE = -1
"""In a phrase: any one word. In a message: a word that no subscription uses."""


class Extras(NamedTuple):
    """Further conditions by entry, as runs in three pools. A run starts at `*_from` and has `*_count`."""

    forbid_from: NDArray[np.int64]  # [n]
    forbid_count: NDArray[np.int32]  # [n]
    forbid: NDArray[np.int32]  # [*]    forbidden terms
    phrase_from: NDArray[np.int64]  # [n]
    phrase_count: NDArray[np.int32]  # [n]
    phrases: NDArray[np.int32]  # [*]    for each phrase: 1 (wanted) or 0 (forbidden), length, terms or HOLE
    circles: NDArray[np.float64]  # [n, 3] x, y, radius; radius is NaN where the region is no circle


class WordOrder(NamedTuple):
    """Words of messages in text order. Message m owns the run word_from[m]:word_from[m + 1]."""

    word_from: NDArray[np.int64]  # [n + 1]
    words: NDArray[np.int32]  # [*]  terms; HOLE for a word without a term
    positions: NDArray[np.int32]  # [*]  ascending within a message; two words may share one


@primitive
def has_forbidden(extras, entry, rows, row):
    low = extras.forbid_from[entry]
    first, last = rows.term_from[row], rows.term_from[row + 1]
    for i in range(low, low + extras.forbid_count[entry]):
        at = lower_bound(rows.terms, first, last, extras.forbid[i])
        if at < last and rows.terms[at] == extras.forbid[i]:
            return True
    return False


@primitive
def word_stands_at(order, start, last, term, position):
    """Is `term` at `position`? Positions ascend, so the search starts where the phrase starts."""
    at = start
    while at < last and order.positions[at] < position:
        at += 1
    while at < last and order.positions[at] == position:
        if order.words[at] == term:
            return True
        at += 1
    return False


@primitive
def phrase_stands(phrases, low, length, order, message):
    first, last = order.word_from[message], order.word_from[message + 1]
    for start in range(first, last):
        if order.words[start] != phrases[low]:
            continue
        matched = 1
        while matched < length:
            term = phrases[low + matched]
            position = order.positions[start] + matched
            if term != HOLE and not word_stands_at(order, start, last, term, position):
                break
            matched += 1
        if matched == length:
            return True
    return False


@primitive
def phrases_hold(extras, entry, order, message):
    at = extras.phrase_from[entry]
    end = at + extras.phrase_count[entry]
    while at < end:
        length = extras.phrases[at + 1]
        wanted = extras.phrases[at] == 1
        if phrase_stands(extras.phrases, at + 2, length, order, message) != wanted:
            return False
        at += 2 + length
    return True


@primitive
def surely_within(x, y, radius, west, south, east, north):
    """Is a way along a parallel and a meridian, as if at the equator, shorter than the radius?

    It leads from the centre to a point of the box and is never shorter than the great circle. So a place well
    inside a circle is a true hit without trigonometry; the margin is far above what rounding could do.
    """
    degrees = max(west - x, 0.0, x - east) + max(south - y, 0.0, y - north)
    return degrees * METRES_A_DEGREE < radius * (1.0 - 1e-6)


@primitive
def circle_touches(circles, entry, boxes, row, on_earth):
    """Is the box within the entry's circle? True where the region is no circle."""
    radius = circles[entry, 2]
    if math.isnan(radius):
        return True
    x, y = circles[entry, 0], circles[entry, 1]
    west, south, east, north = boxes[row, 0], boxes[row, 1], boxes[row, 2], boxes[row, 3]
    if on_earth:
        if surely_within(x, y, radius, west, south, east, north):
            return True
        return box_distance_earth(x, y, west, south, east, north) <= radius
    return box_distance_plane(x, y, west, south, east, north) <= radius


@kernel
def refine(extras, rows, order, message, pair_rows, pair_entries, on_earth, keep):
    """Clear `keep` of the pairs whose further conditions do not hold. message[i] belongs to pair i."""
    for i in range(len(pair_rows)):
        row, entry = pair_rows[i], pair_entries[i]
        keep[i] = (
            not has_forbidden(extras, entry, rows, row)
            and circle_touches(extras.circles, entry, rows.boxes, row, on_earth)
            and phrases_hold(extras, entry, order, message[i])
        )
