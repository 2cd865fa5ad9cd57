"""`strata-rank`: wishes in lists by term, laid out in blocks that one comparison can skip.

A wish has a posting in the list of each of its terms. A message meets it at the rarest term they share, where

    score <= alpha * (1 - d) + (1 - alpha) * (w * m + rest * suffix)

with d a lower bound of the distance, w and m the weights of that term, rest the length of the wish's vector in
its commoner terms and suffix that of the message's (Cauchy-Schwarz; the bound of Skype section 5.1.3 with lengths
in place of sums). So with A = (1 - alpha) * w, B = (1 - alpha) * rest, c = theta - alpha a posting can be passed over
unless A * m + B * suffix - c >= alpha * d. A block has the greatest A and B, the least c and alpha, and a box:
the same comparison passes over all its postings (block-max). What is left is verified exactly, once.

Places are points of a sphere or a plane in three coordinates, in units of the greatest distance; on the sphere the
chord is the lower bound. Postings are kept in single precision; SLACK is more than its error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import inlined, kernel, prefetch, primitive
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.rank_layout import IS_EARTH, MAX_DISTANCE, score_of

BLOCK = 32
GROUP = 16  # blocks
SLACK = np.float32(1e-5)
X, Y, Z, A, B, ALPHA, C = 0, 1, 2, 3, 4, 5, 6
N_FIELDS = 7
# Of a block or group: its box, then the greatest A and B, the least alpha and c.
LOW, HIGH, MOST_A, MOST_B, LEAST_ALPHA, LEAST_C = 0, 3, 6, 7, 8, 9
N_BOUNDS = 10
SPREAD_A, SPREAD_B = np.float32(0.25), np.float32(0.5)  # what m and suffix are like, to choose where to split


class Sheet(NamedTuple):
    """Lists by number; the shortest list, of the rarest term, has number 0. The block of postings a to b has field f
    from N_FIELDS * a + f * (b - a) on, its slots from 2 * a on, and behind these the bits of their commoner terms.
    """

    keys: NDArray[np.int32]  # [n_lists]  terms, ascending
    list_of: NDArray[np.int32]  # [n_lists]  number of the list of keys[i]
    list_from: NDArray[np.int64]  # [n_lists + 1]  postings
    block_from: NDArray[np.int64]  # [n_lists + 1]
    group_from: NDArray[np.int64]  # [n_lists + 1]
    fields: NDArray[np.float32]  # [N_FIELDS * n_postings]
    ids: NDArray[np.int32]  # [2 * n_postings]
    bounds: NDArray[np.float32]  # [n_blocks, N_BOUNDS]


class Upper(NamedTuple):
    """The rest of a sheet. Row i is its i-th wish."""

    groups: NDArray[np.float32]  # [n_groups, N_BOUNDS]
    lists: NDArray[np.int32]  # [*]  of the wish's terms, in its order
    at: NDArray[np.int64]  # [*]  the posting of that term
    start: NDArray[np.int64]  # [n + 1]


class Scratch(NamedTuple):
    """Of one row: the lists it meets, rarest first; and postings that passed and wait to be verified."""

    lists: NDArray[np.int64]  # [*, 2]  number, position of the term among all of the window
    weights: NDArray[np.float64]
    margin: NDArray[np.float32]  # [BLOCK]
    waiting: NDArray[np.int64]  # [* , 2]  slot, which of the lists


@inlined
def bit_of(term):
    """One of 31, so that a set of terms is a positive int32."""
    return np.int64(1) << (((np.int64(term) * 0x9E3779B1) >> 16 & 0xFFFF) % 31)


@primitive
def spot(x, y, origin, space, into):
    """A place in three coordinates, in units of the greatest distance."""
    if space[IS_EARTH] == 0.0:
        into[0] = (x - origin[0]) / space[MAX_DISTANCE]
        into[1] = (y - origin[1]) / space[MAX_DISTANCE]
        into[2] = 0.0
        return
    lon, lat = math.radians(x), math.radians(y)
    into[0] = math.cos(lat) * math.cos(lon) / math.pi
    into[1] = math.cos(lat) * math.sin(lon) / math.pi
    into[2] = math.sin(lat) / math.pi


@primitive
def spot_of_box(boxes, row, origin, space, into):
    """The middle of a message's place; how far the place reaches from there, at most."""
    west, south, east, north = boxes[row, 0], boxes[row, 1], boxes[row, 2], boxes[row, 3]
    if west > east:
        east += 360.0
    spot((west + east) / 2.0, (south + north) / 2.0, origin, space, into)
    half = (east - west + north - south) / 2.0
    if space[IS_EARTH] == 0.0:
        return half / space[MAX_DISTANCE]
    return math.radians(half) / math.pi


@kernel
def describe(wants, theta, slots, start, lists, origin, space, fields, bits, into):
    """The fields of all postings, wish after wish; and bits of those terms of the wish that are commoner."""
    for i in range(len(slots)):
        slot = np.int64(slots[i])
        low, alpha = wants.term_from[slot], wants.alpha[slot]
        spot(wants.points[slot, 0], wants.points[slot, 1], origin, space, into)
        for p in range(start[i], start[i + 1]):
            rest = 0.0
            bits[p] = 0
            for q in range(start[i], start[i + 1]):
                if lists[q] > lists[p]:
                    rest += wants.weights[low + q - start[i]] ** 2
                    bits[p] |= bit_of(wants.terms[low + q - start[i]])
            fields[X, p], fields[Y, p], fields[Z, p] = into[0], into[1], into[2]
            fields[A, p] = (1.0 - alpha) * wants.weights[low + p - start[i]]
            fields[B, p] = (1.0 - alpha) * math.sqrt(rest)
            fields[ALPHA, p] = alpha
            fields[C, p] = theta[slot] - alpha


@primitive
def _spread(fields, order, low, high, field):
    least = most = fields[field, order[low]]
    for i in range(low + 1, high):
        value = fields[field, order[i]]
        least, most = min(least, value), max(most, value)
    return most - least


@primitive
def _widest(fields, order, low, high):
    """The field whose spread weakens the comparison of a block most. Messages have no alpha and no c."""
    mean = np.float32(0.5)
    if len(fields) > ALPHA:
        mean = np.float32(0.0)
        for i in range(low, high):
            mean += fields[ALPHA, order[i]]
        mean /= np.float32(high - low)
    best, most = X, np.float32(-1.0)
    for field in range(len(fields)):
        spread = _spread(fields, order, low, high, field)
        if field <= Z:
            spread *= mean
        elif field == A:
            spread *= SPREAD_A
        elif field == B:
            spread *= SPREAD_B
        if spread > most and spread < np.inf:
            best, most = field, spread
    return best


@primitive
def _select(fields, field, order, low, high, middle):
    """Order order[low:high] so that what is below `middle` has no greater field than what is above."""
    high -= 1
    while low < high:
        pivot = fields[field, order[(low + high) >> 1]]
        i, j = low, high
        while i <= j:
            while fields[field, order[i]] < pivot:
                i += 1
            while fields[field, order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@primitive
def _split_list(fields, order, low, high, stack):
    """Order the postings low to high so that blocks are narrow: halve where the spread is widest."""
    stack[0, 0], stack[0, 1] = low, high
    depth = 1
    while depth > 0:
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]
        if high - low <= BLOCK:
            continue
        blocks = (high - low + BLOCK - 1) // BLOCK
        middle = low + ((blocks + 1) >> 1) * BLOCK
        _select(fields, _widest(fields, order, low, high), order, low, high, middle)
        stack[depth, 0], stack[depth, 1] = low, middle
        stack[depth + 1, 0], stack[depth + 1, 1] = middle, high
        depth += 2


@kernel
def split(fields, order, list_from, stack):
    """The same for every list."""
    for number in range(len(list_from) - 1):
        _split_list(fields, order, list_from[number], list_from[number + 1], stack)


@kernel
def lay(fields, owner, bits, order, sheet, at):
    """Postings in their final order."""
    for number in range(len(sheet.list_from) - 1):
        for low in range(sheet.list_from[number], sheet.list_from[number + 1], BLOCK):
            high = min(low + BLOCK, sheet.list_from[number + 1])
            for p in range(low, high):
                q = order[p]
                for field in range(N_FIELDS):
                    sheet.fields[N_FIELDS * low + field * (high - low) + p - low] = fields[field, q]
                sheet.ids[low + p], sheet.ids[high + p] = owner[q], bits[q]
                at[q] = p


@primitive
def _bound_block(sheet, number, block):
    """The bounds of a block from its postings."""
    low = sheet.list_from[number] + (block - sheet.block_from[number]) * BLOCK
    n = min(BLOCK, sheet.list_from[number + 1] - low)
    f, b, base = sheet.fields, sheet.bounds, N_FIELDS * low
    for axis in range(3):
        b[block, LOW + axis], b[block, HIGH + axis] = np.inf, -np.inf
    b[block, MOST_A] = b[block, MOST_B] = -np.inf
    b[block, LEAST_ALPHA] = b[block, LEAST_C] = np.inf
    for p in range(base, base + n):
        for axis in range(3):
            b[block, LOW + axis] = min(b[block, LOW + axis], f[p + axis * n])
            b[block, HIGH + axis] = max(b[block, HIGH + axis], f[p + axis * n])
        b[block, MOST_A] = max(b[block, MOST_A], f[p + A * n])
        b[block, MOST_B] = max(b[block, MOST_B], f[p + B * n])
        b[block, LEAST_ALPHA] = min(b[block, LEAST_ALPHA], f[p + ALPHA * n])
        b[block, LEAST_C] = min(b[block, LEAST_C], f[p + C * n])


@primitive
def _bound_group(sheet, upper, number, group):
    low = sheet.block_from[number] + (group - sheet.group_from[number]) * GROUP
    high = min(low + GROUP, sheet.block_from[number + 1])
    g, b = upper.groups, sheet.bounds
    for i in range(N_BOUNDS):
        g[group, i] = b[low, i]
    for block in range(low + 1, high):
        for axis in range(3):
            g[group, LOW + axis] = min(g[group, LOW + axis], b[block, LOW + axis])
            g[group, HIGH + axis] = max(g[group, HIGH + axis], b[block, HIGH + axis])
        g[group, MOST_A] = max(g[group, MOST_A], b[block, MOST_A])
        g[group, MOST_B] = max(g[group, MOST_B], b[block, MOST_B])
        g[group, LEAST_ALPHA] = min(g[group, LEAST_ALPHA], b[block, LEAST_ALPHA])
        g[group, LEAST_C] = min(g[group, LEAST_C], b[block, LEAST_C])


@kernel
def bound_all(sheet, upper):
    for number in range(len(sheet.list_from) - 1):
        for block in range(sheet.block_from[number], sheet.block_from[number + 1]):
            _bound_block(sheet, number, block)
        for group in range(sheet.group_from[number], sheet.group_from[number + 1]):
            _bound_group(sheet, upper, number, group)


@kernel
def set_thresholds(sheet, upper, rows, thetas):
    """Wishes rows[i] of the sheet have new thresholds; the least of their blocks and groups follow."""
    for i in range(len(rows)):
        wish = np.int64(rows[i])
        for j in range(upper.start[wish], upper.start[wish + 1]):
            number, p = np.int64(upper.lists[j]), upper.at[j]
            nth = (p - sheet.list_from[number]) // BLOCK
            block = sheet.block_from[number] + nth
            low = sheet.list_from[number] + nth * BLOCK
            n = min(BLOCK, sheet.list_from[number + 1] - low)
            base = N_FIELDS * low
            sheet.fields[base + C * n + p - low] = thetas[i] - sheet.fields[base + ALPHA * n + p - low]
            least = np.float32(np.inf)
            for q in range(base + C * n, base + C * n + n):
                least = min(least, sheet.fields[q])
            if least == sheet.bounds[block, LEAST_C]:
                continue
            sheet.bounds[block, LEAST_C] = least
            group = sheet.group_from[number] + nth // GROUP
            first = sheet.block_from[number] + nth // GROUP * GROUP
            least = np.float32(np.inf)
            for q in range(first, min(first + GROUP, sheet.block_from[number + 1])):
                least = min(least, sheet.bounds[q, LEAST_C])
            upper.groups[group, LEAST_C] = least


@kernel
def lay_again(sheet, upper, number, fields, ids, order, row_of, stack):
    """One list in an order for the thresholds of now. `fields`, `ids` and `order` have room for its postings."""
    first, last = sheet.list_from[number], sheet.list_from[number + 1]
    for low in range(first, last, BLOCK):
        n = min(BLOCK, last - low)
        for i in range(n):
            at = low - first + i
            for field in range(N_FIELDS):
                fields[field, at] = sheet.fields[N_FIELDS * low + field * n + i]
            ids[0, at], ids[1, at], order[at] = sheet.ids[2 * low + i], sheet.ids[2 * low + n + i], at
    _split_list(fields, order, 0, last - first, stack)
    for low in range(first, last, BLOCK):
        n = min(BLOCK, last - low)
        for i in range(n):
            q = order[low - first + i]
            for field in range(N_FIELDS):
                sheet.fields[N_FIELDS * low + field * n + i] = fields[field, q]
            sheet.ids[2 * low + i], sheet.ids[2 * low + n + i] = ids[0, q], ids[1, q]
            wish = np.int64(row_of[ids[0, q]])
            for j in range(upper.start[wish], upper.start[wish + 1]):
                if upper.lists[j] == number:
                    upper.at[j] = low + i
        _bound_block(sheet, number, sheet.block_from[number] + (low - first) // BLOCK)
    for group in range(sheet.group_from[number], sheet.group_from[number + 1]):
        _bound_group(sheet, upper, number, group)


@inlined
def _meet(sheet, posts, post, scratch):
    """The lists of the row's terms, rarest first, with the message's weights."""
    n = 0
    for p in range(posts.term_from[post], posts.term_from[post + 1]):
        at = lower_bound(sheet.keys, 0, len(sheet.keys), posts.terms[p])
        if at == len(sheet.keys) or sheet.keys[at] != posts.terms[p]:
            continue
        number, i = np.int64(sheet.list_of[at]), n
        while i > 0 and scratch.lists[i - 1, 0] > number:
            scratch.lists[i, 0], scratch.lists[i, 1] = scratch.lists[i - 1, 0], scratch.lists[i - 1, 1]
            scratch.weights[i] = scratch.weights[i - 1]
            i -= 1
        scratch.lists[i, 0], scratch.lists[i, 1], scratch.weights[i] = number, p, posts.weights[p]
        n += 1
    return n


@inlined
def _may_reach(bounds, i, place, reach, m, suffix):
    """May a posting below these bounds pass?"""
    t = bounds[i, MOST_A] * m + bounds[i, MOST_B] * suffix - bounds[i, LEAST_C] + reach + SLACK
    if t < 0.0:
        return False
    squared = np.float32(0.0)
    for axis in range(3):
        gap = max(bounds[i, LOW + axis] - place[axis], place[axis] - bounds[i, HIGH + axis], np.float32(0.0))
        squared += gap * gap
    return t * t >= bounds[i, LEAST_ALPHA] * bounds[i, LEAST_ALPHA] * min(squared, np.float32(1.0))


@inlined
def _scan_block(sheet, low, high, place, reach, m, suffix, bits, margin):
    """How far each posting is above the comparison: margin[i] >= 0 means that it passes."""
    f, n, base = sheet.fields, high - low, N_FIELDS * low
    for i in range(n):
        alpha = f[base + ALPHA * n + i]
        unseen = f[base + B * n + i] * suffix if sheet.ids[low + high + i] & bits else np.float32(0.0)
        t = f[base + A * n + i] * m + unseen - f[base + C * n + i] + alpha * reach + SLACK
        dx, dy, dz = f[base + i] - place[0], f[base + n + i] - place[1], f[base + 2 * n + i] - place[2]
        needed = alpha * alpha * min(dx * dx + dy * dy + dz * dz, np.float32(1.0))
        margin[i] = t * abs(t) - needed


@inlined
def _shares_rarer(wants, slot, posts, scratch, entry):
    """Do wish and message share a term that is rarer than that of the entry? Then they met there."""
    low = wants.term_from[slot]
    for i in range(entry):
        term = posts.terms[scratch.lists[i, 1]]
        for j in range(low, low + wants.term_count[slot]):
            if wants.terms[j] == term:
                return True
    return False


@inlined
def _ask_for(wants, theta, slot):
    """The wish is verified soon."""
    prefetch(wants.term_from, slot)
    prefetch(wants.term_count, slot)
    prefetch(wants.points, slot)
    prefetch(wants.alpha, slot)
    prefetch(theta, slot)


AHEAD = 6  # wishes whose terms are asked for before they are verified


@primitive
def _verify(wants, theta, posts, post, row, space, scratch, waiting, room, n):
    """Exact scores of all that wait; how many are found, -1 if there is no room for them."""
    for i in range(waiting + AHEAD):
        if i < waiting:
            low = wants.term_from[scratch.waiting[i, 0]]
            prefetch(wants.terms, low)
            prefetch(wants.weights, low)
        if i < AHEAD:
            continue
        slot, entry = scratch.waiting[i - AHEAD, 0], scratch.waiting[i - AHEAD, 1]
        if _shares_rarer(wants, slot, posts, scratch, entry):
            continue
        score = score_of(wants, slot, posts, post, space)
        if score >= 0.0 and score >= theta[slot]:
            if n == len(room.rows):
                return -1
            room.rows[n], room.slots[n], room.scores[n] = row, slot, score
            n += 1
    return n


@primitive
def _bits_behind(posts, scratch, entry, lists):
    """Bits of the row's terms that are commoner than that of the entry."""
    bits = np.int64(0)
    for i in range(entry + 1, lists):
        bits |= bit_of(posts.terms[scratch.lists[i, 1]])
    return np.int32(bits)


@kernel
def probe(
    sheet, upper, wants, theta, posts, first_post, row, last_row, origin, space, room, n, place, scratch, counters
):
    """Wishes of the sheet that rows from `row` on reach, appended to the n found before.

    Returns the next row (less than last_row if there is no room) and the number found.
    """
    while row < last_row:
        before, post = n, first_post + row
        lists = _meet(sheet, posts, post, scratch)
        reach = np.float32(spot_of_box(posts.boxes, post, origin, space, place))
        suffix, waiting = 0.0, 0
        for entry in range(lists - 1, -1, -1):
            number, m = scratch.lists[entry, 0], np.float32(scratch.weights[entry])
            rest = np.float32(math.sqrt(suffix))
            suffix += scratch.weights[entry] * scratch.weights[entry]
            bits = _bits_behind(posts, scratch, entry, lists)
            first, last = sheet.list_from[number], sheet.list_from[number + 1]
            for group in range(sheet.group_from[number], sheet.group_from[number + 1]):
                counters[1] += 1
                if not _may_reach(upper.groups, group, place, reach, m, rest):
                    continue
                nth = (group - sheet.group_from[number]) * GROUP
                block = sheet.block_from[number] + nth
                end = min(block + GROUP, sheet.block_from[number + 1])
                low = first + nth * BLOCK
                while block < end:
                    counters[1] += 1
                    if _may_reach(sheet.bounds, block, place, reach, m, rest):
                        high = min(low + BLOCK, last)
                        counters[2] += high - low
                        _scan_block(sheet, low, high, place, reach, m, rest, bits, scratch.margin)
                        if waiting + BLOCK > len(scratch.waiting):
                            n = _verify(wants, theta, posts, post, row, space, scratch, waiting, room, n)
                            if n < 0:
                                return row, before
                            waiting = 0
                        for i in range(high - low):
                            if scratch.margin[i] >= 0.0:
                                slot = np.int64(sheet.ids[2 * low + i])
                                scratch.waiting[waiting, 0], scratch.waiting[waiting, 1] = slot, entry
                                waiting += 1
                                counters[0] += 1
                                _ask_for(wants, theta, slot)
                    block += 1
                    low += BLOCK
        n = _verify(wants, theta, posts, post, row, space, scratch, waiting, room, n)
        if n < 0:
            return row, before
        row += 1
    return row, n
