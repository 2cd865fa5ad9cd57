"""The best messages of the window for one wish, without reading all that share a word.

A *shelf* holds messages that arrived one after the other, in lists by term, laid out as the postings of `rank_strata`
with the roles exchanged: a wish meets a message at the rarest term they share, where

    score <= alpha * (1 - d) + (1 - alpha) * (w * m + rest * suffix)

with d a lower bound of the distance, w and m the weights of that term, rest and suffix the lengths of both vectors in
their commoner terms. Groups of blocks are visited best first, until none can hold a message that is good enough.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import inlined, kernel, primitive
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.rank_heap import offer
from nearcast.kernels.rank_layout import BASE, OLDEST, SCANNED, SCORED, score_of
from nearcast.kernels.rank_strata import BLOCK, GROUP, SLACK, bit_of, spot, spot_of_box

X, Y, Z, W, R = 0, 1, 2, 3, 4  # place, weight of the term, length in the commoner terms
N_FIELDS = 5
# Of a block or group: its box, then the greatest W and R.
LOW, HIGH, MOST_W, MOST_R = 0, 3, 6, 7
N_BOUNDS = 8
# Columns of `parts`: a shelf's keys, its first list, and the first seq behind it.
KEY_FROM, KEY_TO, LIST_FROM, END_SEQ = 0, 1, 2, 3
N_PART = 4
# Columns of `Shelves.lists`.
POSTING, BLOCK_AT, GROUP_AT = 0, 1, 2
# Columns of `Desk.lists`: row of `Shelves.lists`, first entry of the same shelf, position of the term among those of
# all wishes, bits of the wish's commoner terms.
NUMBER, FIRST, POSITION, BITS = 0, 1, 2, 3
N_ENTRY = 4


class Shelves(NamedTuple):
    """All shelves in one set of arrays. List i of a shelf is row LIST_FROM + i of `lists`; the next row ends it."""

    parts: NDArray[np.int64]  # [n_shelves, N_PART]
    keys: NDArray[np.int32]  # [*]  terms of a shelf, ascending
    list_of: NDArray[np.int32]  # [*]  number of the list of keys[i]; the shortest list has number 0
    lists: NDArray[np.int64]  # [*, 3]  first posting, block and group
    fields: NDArray[
        np.float32
    ]  # [N_FIELDS * postings]  the block of postings a to b has field f from N_FIELDS * a + f * (b - a) on
    ids: NDArray[np.int32]  # [2 * postings]  likewise: the message's seq, and a bit for each of its terms
    bounds: NDArray[np.float32]  # [blocks, N_BOUNDS]
    groups: NDArray[np.float32]  # [groups, N_BOUNDS]


class Desk(NamedTuple):
    """Room for one search."""

    lists: NDArray[np.int64]  # [terms * shelves, N_ENTRY]
    weights: NDArray[np.float32]  # [terms * shelves, 2]  of the term, and the rest
    reach: NDArray[np.float32]  # [1]  how far a place reaches from its middle, at most
    waiting: NDArray[np.int64]  # [*, 2]  block, or -1 - group; row of desk.lists
    hopes: NDArray[np.float32]  # [*]  the best score that it may hold: a heap, greatest first
    margin: NDArray[np.float32]  # [BLOCK]
    spot: NDArray[np.float32]  # [3]
    origin: NDArray[np.float64]  # [2]


@kernel
def describe(posts, first, last, lists, origin, space, fields, owner, bits, into):
    """Fields of the postings of rows first to last; how far a place reaches from its middle, at most."""
    most = 0.0
    start = posts.term_from[first]
    for row in range(first, last):
        most = max(most, spot_of_box(posts.boxes, row, origin, space, into))
        low, high = posts.term_from[row], posts.term_from[row + 1]
        bits[row - first] = 0
        for p in range(low, high):
            bits[row - first] |= bit_of(posts.terms[p])
            rest = 0.0
            for q in range(low, high):
                if lists[q - start] > lists[p - start]:
                    rest += posts.weights[q] * posts.weights[q]
            i = p - start
            fields[X, i], fields[Y, i], fields[Z, i] = into[0], into[1], into[2]
            fields[W, i], fields[R, i] = posts.weights[p], math.sqrt(rest)
            owner[i] = row - first
    return most


@primitive
def _bound(fields, low, high, into, at):
    """Bounds of the postings low to high, which lie as one block."""
    n, base = high - low, N_FIELDS * low
    for axis in range(3):
        least = most = fields[base + axis * n]
        for i in range(1, n):
            value = fields[base + axis * n + i]
            least, most = min(least, value), max(most, value)
        into[at, LOW + axis], into[at, HIGH + axis] = least, most
    for field in range(W, N_FIELDS):
        most = fields[base + field * n]
        for i in range(1, n):
            most = max(most, fields[base + field * n + i])
        into[at, MOST_W + field - W] = most


@primitive
def _join(groups, group, bounds, low, high):
    for i in range(N_BOUNDS):
        groups[group, i] = bounds[low, i]
    for block in range(low + 1, high):
        for i in range(LOW, HIGH):
            groups[group, i] = min(groups[group, i], bounds[block, i])
        for i in range(HIGH, N_BOUNDS):
            groups[group, i] = max(groups[group, i], bounds[block, i])


@kernel
def lay(fields, owner, bits, order, first_seq, shelves, first_list, n_lists):
    """Postings in their final order behind all others, with bounds. `order` is that of `rank_strata.split`."""
    lists = shelves.lists
    start = lists[first_list, POSTING]
    for number in range(first_list, first_list + n_lists):
        group = lists[number, GROUP_AT]
        block = lists[number, BLOCK_AT]
        for low in range(lists[number, POSTING], lists[number + 1, POSTING], BLOCK):
            high = min(low + BLOCK, lists[number + 1, POSTING])
            for p in range(low, high):
                q = order[p - start]
                for field in range(N_FIELDS):
                    shelves.fields[N_FIELDS * low + field * (high - low) + p - low] = fields[field, q]
                shelves.ids[low + p] = first_seq + owner[q]
                shelves.ids[high + p] = bits[owner[q]]
            _bound(shelves.fields, low, high, shelves.bounds, block)
            block += 1
        for low in range(lists[number, BLOCK_AT], lists[number + 1, BLOCK_AT], GROUP):
            _join(shelves.groups, group, shelves.bounds, low, min(low + GROUP, lists[number + 1, BLOCK_AT]))
            group += 1


@kernel
def renumber(shelves, base):
    """Seqs are less by `base`."""
    for part in range(len(shelves.parts)):
        first, n_lists = shelves.parts[part, LIST_FROM], shelves.parts[part, KEY_TO] - shelves.parts[part, KEY_FROM]
        for number in range(first, first + n_lists):
            for low in range(shelves.lists[number, POSTING], shelves.lists[number + 1, POSTING], BLOCK):
                for p in range(low, min(low + BLOCK, shelves.lists[number + 1, POSTING])):
                    shelves.ids[low + p] -= base


@inlined
def _hope(bounds, i, desk, alpha, entry):
    """No posting below these bounds scores more."""
    squared, spot = np.float32(0.0), desk.spot
    for axis in range(3):
        gap = max(bounds[i, LOW + axis] - spot[axis], spot[axis] - bounds[i, HIGH + axis], np.float32(0.0))
        squared += gap * gap
    near = max(np.float32(1.0) - np.float32(math.sqrt(squared)), np.float32(0.0)) + desk.reach[0]
    text = desk.weights[entry, 0] * bounds[i, MOST_W] + desk.weights[entry, 1] * bounds[i, MOST_R]
    return alpha * near + (np.float32(1.0) - alpha) * text + SLACK


@primitive
def _push(desk, n, hope, group, entry):
    i = n
    while i > 0 and desk.hopes[(i - 1) >> 1] < hope:
        parent = (i - 1) >> 1
        desk.hopes[i] = desk.hopes[parent]
        desk.waiting[i, 0], desk.waiting[i, 1] = desk.waiting[parent, 0], desk.waiting[parent, 1]
        i = parent
    desk.hopes[i], desk.waiting[i, 0], desk.waiting[i, 1] = hope, group, entry
    return n + 1


@primitive
def _pop(desk, n):
    """Take the first one out; how many are left."""
    n -= 1
    hope, group, entry = desk.hopes[n], desk.waiting[n, 0], desk.waiting[n, 1]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and desk.hopes[child + 1] > desk.hopes[child]:
            child += 1
        if desk.hopes[child] <= hope:
            break
        desk.hopes[i] = desk.hopes[child]
        desk.waiting[i, 0], desk.waiting[i, 1] = desk.waiting[child, 0], desk.waiting[child, 1]
        i = child
    desk.hopes[i], desk.waiting[i, 0], desk.waiting[i, 1] = hope, group, entry
    return n


@primitive
def _meet(wants, slot, shelves, part, desk, entries):
    """The shelf's lists of the wish's terms, rarest first, behind the entries there are; how many there are now."""
    low, n = wants.term_from[slot], entries
    key_from, key_to = shelves.parts[part, KEY_FROM], shelves.parts[part, KEY_TO]
    for position in range(low, low + wants.term_count[slot]):
        at = lower_bound(shelves.keys, key_from, key_to, wants.terms[position])
        if at == key_to or shelves.keys[at] != wants.terms[position]:
            continue
        number, i = shelves.parts[part, LIST_FROM] + shelves.list_of[at], n
        while i > entries and desk.lists[i - 1, NUMBER] > number:
            desk.lists[i, NUMBER], desk.lists[i, POSITION] = desk.lists[i - 1, NUMBER], desk.lists[i - 1, POSITION]
            i -= 1
        desk.lists[i, NUMBER], desk.lists[i, POSITION] = number, position
        n += 1
    squared, bits = 0.0, np.int64(0)
    for i in range(n - 1, entries - 1, -1):
        position = desk.lists[i, POSITION]
        desk.lists[i, FIRST], desk.lists[i, BITS] = entries, bits
        desk.weights[i, 0], desk.weights[i, 1] = wants.weights[position], math.sqrt(squared)
        squared += wants.weights[position] * wants.weights[position]
        bits |= bit_of(wants.terms[position])
    return n


@inlined
def _met_before(wants, desk, entry, posts, row):
    """Does the message hold a rarer term of the wish?"""
    first, last = posts.term_from[row], posts.term_from[row + 1]
    for i in range(desk.lists[entry, FIRST], entry):
        term = wants.terms[desk.lists[i, POSITION]]
        at = lower_bound(posts.terms, first, last, term)
        if at < last and posts.terms[at] == term:
            return True
    return False


@primitive
def _read_block(wants, slot, posts, shelves, low, high, desk, entry, found, n, most, state, space):
    """Offer the block's messages; how many are found."""
    alpha, size, base = np.float32(wants.alpha[slot]), high - low, N_FIELDS * low
    least = np.float32(found.scores[0]) if n == most else np.float32(-2.0)
    share, w, rest = np.float32(1.0) - alpha, desk.weights[entry, 0], desk.weights[entry, 1]
    f, s, oldest, bits = shelves.fields, desk.spot, state[OLDEST], np.int32(desk.lists[entry, BITS])
    for i in range(size):
        unseen = rest * f[base + R * size + i] if shelves.ids[low + high + i] & bits else np.float32(0.0)
        text = w * f[base + W * size + i] + unseen
        t = share * text + alpha * (np.float32(1.0) + desk.reach[0]) - least + SLACK
        dx, dy, dz = f[base + i] - s[0], f[base + size + i] - s[1], f[base + 2 * size + i] - s[2]
        desk.margin[i] = t * abs(t) - alpha * alpha * min(dx * dx + dy * dy + dz * dz, np.float32(1.0))
    state[SCANNED] += size
    for i in range(size):
        if desk.margin[i] < 0.0:
            continue
        seq = np.int64(shelves.ids[2 * low + i])
        if seq < oldest:
            continue
        row = seq - state[BASE]
        if not _met_before(wants, desk, entry, posts, row):
            state[SCORED] += 1
            n = offer(found, n, most, score_of(wants, slot, posts, row, space), seq)
    return n


@primitive
def _read_best(wants, slot, posts, shelves, desk, waiting, found, n, most, state, space):
    """Read what waits, best first, while it may hold anything; how many messages are found.

    A group is opened: its blocks wait in its place, or are read at once where there is no room to wait.
    """
    lists, alpha = shelves.lists, np.float32(wants.alpha[slot])
    while waiting > 0:
        if n == most and desk.hopes[0] < found.scores[0]:
            break
        at, entry = desk.waiting[0, 0], desk.waiting[0, 1]
        waiting = _pop(desk, waiting)
        number = desk.lists[entry, NUMBER]
        first, last = at, at + 1
        if at < 0:
            first = lists[number, BLOCK_AT] + (-1 - at - lists[number, GROUP_AT]) * GROUP
            last = min(first + GROUP, lists[number + 1, BLOCK_AT])
            state[SCANNED] += last - first
        for block in range(first, last):
            if at < 0 and waiting < len(desk.hopes):
                hope = _hope(shelves.bounds, block, desk, alpha, entry)
                if n < most or hope >= found.scores[0]:
                    waiting = _push(desk, waiting, hope, block, entry)
                continue
            low = lists[number, POSTING] + (block - lists[number, BLOCK_AT]) * BLOCK
            high = min(low + BLOCK, lists[number + 1, POSTING])
            n = _read_block(wants, slot, posts, shelves, low, high, desk, entry, found, n, most, state, space)
    return n


@primitive
def search(wants, slot, posts, shelves, desk, found, n, most, state, space):
    """The best `most` of the shelves' messages and of the n found before; how many."""
    spot(wants.points[slot, 0], wants.points[slot, 1], desk.origin, space, desk.spot)
    alpha, entries, waiting = np.float32(wants.alpha[slot]), 0, 0
    for part in range(len(shelves.parts)):
        if shelves.parts[part, END_SEQ] <= state[OLDEST]:
            continue
        first, entries = entries, _meet(wants, slot, shelves, part, desk, entries)
        for entry in range(first, entries):
            number = desk.lists[entry, NUMBER]
            for group in range(shelves.lists[number, GROUP_AT], shelves.lists[number + 1, GROUP_AT]):
                hope = _hope(shelves.groups, group, desk, alpha, entry)
                state[SCANNED] += 1
                if n == most and hope < found.scores[0]:
                    continue
                if waiting == len(desk.hopes):
                    n = _read_best(wants, slot, posts, shelves, desk, waiting, found, n, most, state, space)
                    waiting = 0
                waiting = _push(desk, waiting, hope, -1 - group, entry)
    return _read_best(wants, slot, posts, shelves, desk, waiting, found, n, most, state, space)
