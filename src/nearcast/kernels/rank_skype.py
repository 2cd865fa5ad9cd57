"""Skype's dissemination (section 5): quadtree cells, an inverted file in each, groups by alpha, ordered by threshold.

Terms have one order, rarest first. A message that reaches a wish's threshold passes every test at the rarest
term they share, so a wish is verified exactly when a test is first passed (Algorithm 1 as printed sums up partial
similarities and loses some, because its own pruning skips postings of candidates). Tests of one wish are not
divided by alpha or 1 - alpha, so that 0 and 1 need no limits; a group holds its alpha = 1 wishes in front, where
nothing prunes them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.distance import EARTH_RADIUS_M, RADIAN, box_distance_earth, box_distance_plane, meridian_distance
from nearcast.kernels.jit import inlined, kernel, primitive
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.rank_layout import IS_EARTH, MAX_DISTANCE, score_of

SLACK = 1e-9
ONE = 1.0 - 1e-9  # from here on alpha counts as 1

K_SCORE, MOST_WEIGHT, MOST_ALPHA = 0, 1, 2  # columns of Postings.keys
# What a probe uses.
CELL_PRUNING, GROUP_PRUNING, EARLY_END = 1, 2, 4


class Cells(NamedTuple):
    """Leaf cells, and the inverted files of all of them together: term t has lists list_from[t]:list_from[t + 1], one
    for each cell that has it. So a message looks its terms up once, and not in every cell.
    """

    boxes: NDArray[np.float64]  # [n, 4]
    least: NDArray[np.float64]  # [n]  least spatial threshold of its wishes, equation 8
    wish_from: NDArray[np.int64]  # [n + 1]  wishes are in the order of cells
    list_from: NDArray[np.int64]  # [n_terms + 1]  by number of the term in the order
    list_cell: NDArray[np.int32]  # [n_lists]  whose it is
    group_from: NDArray[np.int64]  # [n_lists + 1]
    post_from: NDArray[np.int64]  # [n_groups + 1]
    heads: NDArray[np.float64]  # [n_groups, 3]  Postings.keys of the first posting


class Postings(NamedTuple):
    """In a group by rising kScore*."""

    who: NDArray[np.int32]  # [n]  wish
    ref: NDArray[np.int64]  # [n]  position of the term among the wish's own
    keys: NDArray[np.float64]  # [n, 3]  K_SCORE: theta / (1 - alpha); MOST_WEIGHT: greatest maxwt from here to the
    #   group's end, equation 6; MOST_ALPHA: greatest alpha / (1 - alpha) from here, equation 7


class Members(NamedTuple):
    """Wishes of a sheet, with their terms in the common order."""

    slots: NDArray[np.int32]  # [n]
    inner: NDArray[np.float64]  # [n]  distance to the border of the cell, in units of the greatest
    cell: NDArray[np.int32]  # [n]
    seen: NDArray[np.int64]  # [n]  number of the row that verified it
    start: NDArray[np.int64]  # [n + 1]
    weights: NDArray[np.float64]  # [*]
    sums: NDArray[np.float64]  # [*]  wtsum, equation 3
    at: NDArray[np.int64]  # [*]  posting


class Terms(NamedTuple):
    """The order of terms, and room for those of one row."""

    terms: NDArray[np.int32]  # [n]  ascending
    place: NDArray[np.int32]  # [n]  in the order
    keys: NDArray[np.int64]  # [*]
    weights: NDArray[np.float64]  # [*]
    sums: NDArray[np.float64]  # [* + 1]
    maxima: NDArray[np.float64]  # [* + 1]
    outer: NDArray[np.float64]  # [n_cells]  distance of the row to each cell; -1: the cell is pruned


@primitive
def border_distance(x, y, box, is_earth):
    """From a point of a box to its border: a lower bound, exact in the plane (Definition 6)."""
    if is_earth == 0.0:
        return max(0.0, min(x - box[0], box[2] - x, y - box[1], box[3] - y))
    up = min(y - box[1], box[3] - y) * RADIAN * EARTH_RADIUS_M
    aside = min(
        meridian_distance(x, y, box[0], box[1], box[3]),
        meridian_distance(x, y, box[2], box[1], box[3]),
    )
    return max(0.0, min(up, aside))


@kernel
def place_members(wants, members, cells, space):
    """Inner bounds; suffix sums of weights."""
    for i in range(len(members.slots)):
        slot = np.int64(members.slots[i])
        x, y = wants.points[slot, 0], wants.points[slot, 1]
        distance = border_distance(x, y, cells.boxes[members.cell[i]], space[IS_EARTH])
        members.inner[i] = distance / space[MAX_DISTANCE]
        total = 0.0
        for p in range(members.start[i + 1] - 1, members.start[i] - 1, -1):
            total += members.weights[p]
            members.sums[p] = total


@inlined
def _k_score(alpha, theta):
    return -np.inf if alpha >= ONE else theta / (1.0 - alpha)


@inlined
def _alpha_star(alpha):
    return 0.0 if alpha >= ONE else alpha / (1.0 - alpha)


@primitive
def _maxwt(members, ref, end):
    most = 0.0
    for p in range(ref, end):
        most = max(most, members.weights[p])
    return most


@primitive
def _suffixes(cells, posts, members, wants, group):
    """Equations 6 and 7 for a group."""
    low, high = cells.post_from[group], cells.post_from[group + 1]
    weight, alpha = 0.0, 0.0
    for p in range(high - 1, low - 1, -1):
        wish = posts.who[p]
        weight = max(weight, _maxwt(members, posts.ref[p], members.start[wish + 1]))
        alpha = max(alpha, _alpha_star(wants.alpha[members.slots[wish]]))
        posts.keys[p, MOST_WEIGHT], posts.keys[p, MOST_ALPHA] = weight, alpha
    for column in range(3):
        cells.heads[group, column] = posts.keys[low, column]


@primitive
def _spatial_threshold(alpha, theta):
    """Equation 8; alpha = 0 gives no bound."""
    return -np.inf if alpha <= 0.0 else (theta - (1.0 - alpha)) / alpha


@primitive
def _least_of(cells, cell, members, wants, thetas):
    least = np.inf
    for i in range(cells.wish_from[cell], cells.wish_from[cell + 1]):
        least = min(least, _spatial_threshold(wants.alpha[members.slots[i]], thetas[i]))
    cells.least[cell] = least


@kernel
def finish(cells, posts, members, wants, thetas):
    """Statistics of cells and groups, and where every posting is."""
    for cell in range(len(cells.least)):
        _least_of(cells, cell, members, wants, thetas)
    for group in range(len(cells.post_from) - 1):
        _suffixes(cells, posts, members, wants, group)
    for p in range(len(posts.who)):
        members.at[posts.ref[p]] = p


@kernel
def set_thresholds(cells, posts, members, wants, thetas, rows):
    """thetas[rows] have changed: move the postings to their places in the groups."""
    for i in range(len(rows)):
        wish = np.int64(rows[i])
        k_score = _k_score(wants.alpha[members.slots[wish]], thetas[wish])
        _least_of(cells, members.cell[wish], members, wants, thetas)
        for ref in range(members.start[wish], members.start[wish + 1]):
            p = members.at[ref]
            group = lower_bound(cells.post_from, 0, len(cells.post_from), p + 1) - 1
            low, high = cells.post_from[group], cells.post_from[group + 1]
            while p > low and posts.keys[p - 1, K_SCORE] > k_score:
                _shift(posts, members, p - 1, p)
                p -= 1
            while p + 1 < high and posts.keys[p + 1, K_SCORE] < k_score:
                _shift(posts, members, p + 1, p)
                p += 1
            posts.who[p], posts.ref[p], posts.keys[p, K_SCORE] = wish, ref, k_score
            members.at[ref] = p
            _suffixes(cells, posts, members, wants, group)


@primitive
def _shift(posts, members, source, target):
    posts.who[target], posts.ref[target] = posts.who[source], posts.ref[source]
    posts.keys[target, K_SCORE] = posts.keys[source, K_SCORE]
    members.at[posts.ref[target]] = target


@primitive
def order_row(posts, post, terms):
    """The row's terms that any wish has, rarest first, with wtsum and maxwt of the message; how many."""
    n = 0
    for p in range(posts.term_from[post], posts.term_from[post + 1]):
        at = lower_bound(terms.terms, 0, len(terms.terms), posts.terms[p])
        if at == len(terms.terms) or terms.terms[at] != posts.terms[p]:
            continue
        key, i = np.int64(terms.place[at]), n
        while i > 0 and terms.keys[i - 1] > key:
            terms.keys[i], terms.weights[i] = terms.keys[i - 1], terms.weights[i - 1]
            i -= 1
        terms.keys[i], terms.weights[i] = key, posts.weights[p]
        n += 1
    terms.sums[n] = terms.maxima[n] = 0.0
    for i in range(n - 1, -1, -1):
        terms.sums[i] = terms.sums[i + 1] + terms.weights[i]
        terms.maxima[i] = max(terms.maxima[i + 1], terms.weights[i])
    return n


@primitive
def outer_distance(boxes, post, box, space):
    """From a message to a cell in units of the greatest distance (Definition 7); 0 for a message with an extent."""
    x, y = boxes[post, 0], boxes[post, 1]
    if x != boxes[post, 2] or y != boxes[post, 3]:
        return 0.0
    if space[IS_EARTH] == 0.0:
        return box_distance_plane(x, y, box[0], box[1], box[2], box[3]) / space[MAX_DISTANCE]
    return box_distance_earth(x, y, box[0], box[1], box[2], box[3]) / space[MAX_DISTANCE]


@inlined
def _may_enter(members, wants, wish, ref, theta, i, terms, outer):
    """Theorems 1 and 2 with the spatial bound of Definition 8."""
    alpha = wants.alpha[members.slots[wish]]
    near = 1.0 if outer == 0.0 else 1.0 - outer - members.inner[wish]
    sums, end = members.sums, members.start[wish + 1]
    text = terms.maxima[i] * sums[ref]
    if alpha * near + (1.0 - alpha) * text + SLACK < theta:
        return False
    unseen = 0.0
    if ref + 1 < end:
        unseen = min(sums[ref + 1] * terms.maxima[i + 1], terms.sums[i + 1] * _maxwt(members, ref + 1, end))
    text = members.weights[ref] * terms.weights[i] + unseen
    return alpha * near + (1.0 - alpha) * text + SLACK >= theta


@primitive
def _end_of_group(posts, low, high, most, near):
    """Theorem 4: the first posting from which on none can pass."""
    while low < high:
        middle = (low + high) >> 1
        if (
            posts.keys[middle, MOST_WEIGHT] * most + SLACK
            < posts.keys[middle, K_SCORE] - posts.keys[middle, MOST_ALPHA] * near
        ):
            high = middle
        else:
            low = middle + 1
    return low


@primitive
def _measure_cells(cells, posts, post, space, pruning, outer):
    """Distances to all cells; -1 for those that Lemma 6 prunes."""
    for cell in range(len(cells.least)):
        outer[cell] = outer_distance(posts.boxes, post, cells.boxes[cell], space)
        if pruning & CELL_PRUNING and cells.least[cell] > 1.0 - outer[cell] + SLACK:
            outer[cell] = -1.0


@kernel
def probe(
    cells,
    postings,
    members,
    terms,
    wants,
    thetas,
    posts,
    first_post,
    row,
    last_row,
    space,
    room,
    n,
    pruning,
    stamp,
    counters,
):
    """Algorithm 1. Wishes that rows from `row` on reach, appended to the n found before."""
    while row < last_row:
        before, post = n, first_post + row
        stamp[0] += 1
        n_terms = order_row(posts, post, terms)
        _measure_cells(cells, posts, post, space, pruning, terms.outer)
        counters[1] += len(cells.least)
        for i in range(n_terms):
            for number in range(cells.list_from[terms.keys[i]], cells.list_from[terms.keys[i] + 1]):
                outer = terms.outer[cells.list_cell[number]]
                if outer < 0.0:
                    continue
                for group in range(cells.group_from[number], cells.group_from[number + 1]):
                    counters[1] += 1
                    if pruning & GROUP_PRUNING:
                        bound = cells.heads[group, K_SCORE] - cells.heads[group, MOST_ALPHA] * (1.0 - outer)
                        if cells.heads[group, MOST_WEIGHT] * terms.sums[i] + SLACK < bound:
                            continue
                    low, high = cells.post_from[group], cells.post_from[group + 1]
                    if pruning & EARLY_END:
                        high = _end_of_group(postings, low, high, terms.sums[i], 1.0 - outer)
                    counters[2] += high - low
                    for p in range(low, high):
                        wish = np.int64(postings.who[p])
                        if members.seen[wish] == stamp[0]:
                            continue
                        if not _may_enter(members, wants, wish, postings.ref[p], thetas[wish], i, terms, outer):
                            continue
                        members.seen[wish] = stamp[0]
                        counters[0] += 1
                        slot = np.int64(members.slots[wish])
                        score = score_of(wants, slot, posts, post, space)
                        if score >= 0.0 and score >= thetas[wish]:
                            if n == len(room.rows):
                                return row, before
                            room.rows[n], room.slots[n], room.scores[n] = row, slot, score
                            n += 1
        row += 1
    return row, n
