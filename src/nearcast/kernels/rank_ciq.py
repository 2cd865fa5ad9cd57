"""CIQ adapted to windows, as Skype section 8.1.1 does (Chen et al., ICDE'15; its time decay is left out).

Every wish is assigned to the cells of one partition of the space, with the textual similarity that a message of
the cell needs (MinT). A message reads the posting lists of its terms document at a time, that is, wish by wish.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.distance import box_distance_earth, box_distance_plane
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.rank_layout import IS_EARTH, MAX_DISTANCE, score_of

SLACK = 1e-5  # more than the error of what is kept in single precision


class Inverted(NamedTuple):
    """Posting lists by term, each by rising wish; and what a wish needs in a cell."""

    keys: NDArray[np.int32]  # [n_lists]  terms, ascending
    list_from: NDArray[np.int64]  # [n_lists + 1]
    who: NDArray[np.int32]  # [*]
    weights: NDArray[np.float64]  # [*]
    slots: NDArray[np.int32]  # [n]
    needed: NDArray[np.float32]  # [n, cells + 1]  of (1 - alpha) * cosine; the last one is for any place
    frame: NDArray[np.float64]  # [4]  west, south, width and height of a cell
    cursors: NDArray[np.int64]  # [2, terms of a row]  next posting and end of each list


@primitive
def _cell_distance(x, y, inverted, cell, side, space):
    f = inverted.frame
    west, south = f[0] + (cell % side) * f[2], f[1] + (cell // side) * f[3]
    if space[IS_EARTH] == 0.0:
        return box_distance_plane(x, y, west, south, west + f[2], south + f[3])
    return box_distance_earth(x, y, west, south, west + f[2], south + f[3])


@kernel
def set_thresholds(inverted, wants, rows, thetas, side, space):
    """What wishes rows[i] need in every cell, for new thresholds."""
    for i in range(len(rows)):
        wish = np.int64(rows[i])
        slot = np.int64(inverted.slots[wish])
        alpha, x, y = wants.alpha[slot], wants.points[slot, 0], wants.points[slot, 1]
        for cell in range(side * side):
            near = 1.0 - _cell_distance(x, y, inverted, cell, side, space) / space[MAX_DISTANCE]
            inverted.needed[wish, cell] = thetas[i] - alpha * max(0.0, near) - SLACK
        inverted.needed[wish, side * side] = thetas[i] - alpha - SLACK


@primitive
def _cell_of(boxes, post, inverted, side):
    """The cell of a message; the last one for a message with an extent or outside of all."""
    x, y, f = boxes[post, 0], boxes[post, 1], inverted.frame
    column, line = np.int64((x - f[0]) // f[2]), np.int64((y - f[1]) // f[3])
    if x != boxes[post, 2] or y != boxes[post, 3] or min(column, line) < 0 or max(column, line) >= side:
        return side * side
    return line * side + column


@kernel
def probe(inverted, wants, thetas, posts, first_post, row, last_row, side, space, room, n, counters):
    """Wishes that rows from `row` on reach, appended to the n found before."""
    at, ends = inverted.cursors[0], inverted.cursors[1]
    while row < last_row:
        before, post, lists = n, first_post + row, 0
        for p in range(posts.term_from[post], posts.term_from[post + 1]):
            key = lower_bound(inverted.keys, 0, len(inverted.keys), posts.terms[p])
            if key < len(inverted.keys) and inverted.keys[key] == posts.terms[p]:
                at[p - posts.term_from[post]] = inverted.list_from[key]
                ends[p - posts.term_from[post]] = inverted.list_from[key + 1]
                lists += 1
            else:
                at[p - posts.term_from[post]] = ends[p - posts.term_from[post]] = 0
        counters[1] += lists
        cell = _cell_of(posts.boxes, post, inverted, side)
        n_terms, low = posts.term_from[post + 1] - posts.term_from[post], posts.term_from[post]
        while True:
            wish = np.int64(len(inverted.slots))
            for i in range(n_terms):
                if at[i] < ends[i]:
                    wish = min(wish, np.int64(inverted.who[at[i]]))
            if wish == len(inverted.slots):
                break
            cosine = 0.0
            for i in range(n_terms):
                if at[i] < ends[i] and inverted.who[at[i]] == wish:
                    cosine += inverted.weights[at[i]] * posts.weights[low + i]
                    at[i] += 1
                    counters[2] += 1
            slot = np.int64(inverted.slots[wish])
            if (1.0 - wants.alpha[slot]) * cosine < inverted.needed[wish, cell]:
                continue
            counters[0] += 1
            score = score_of(wants, slot, posts, post, space)
            if score >= 0.0 and score >= thetas[wish]:
                if n == len(room.rows):
                    return row, before
                room.rows[n], room.slots[n], room.scores[n] = row, slot, score
                n += 1
        row += 1
    return row, n
