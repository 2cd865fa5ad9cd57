"""Live messages by term and place: what a subscription that moves looks through.

Every message is posted under each of its terms. A posting is two words: the packed place (see `strata_layout`,
so that "is it in the box" is one subtraction) and signature << 32 | row. The postings of a term are one list as long as
they are few; then a grid of 2**bits by 2**bits lists, and one more for messages that are no point:

    firsts[t]     first list of the term's block; NONE: no message has it
    grids[t]      bits; a block has one list (0 bits), or 4**bits and the *wide* list behind them
    counts[t]     postings of the term
    heads[l]      start in pool, length, class: capacity is 2**class, NO_RUN: the list has no run yet

A coordinate's cell is monotonous, so messages in a cell of the grid are in the box where the cell is inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.strata_layout import GUARD, field, packed_message

NONE = -1
CELL_BITS = 15  # of a packed coordinate
MOST_BITS = 9  # of a grid: 512 by 512 lists
N_CLASSES = 32
START, LENGTH, CLASS = 0, 1, 2  # columns of heads

# Positions in `state`: first free run by class, first free block by bits, then
FREE_BLOCKS = N_CLASSES
POOL_TOP = FREE_BLOCKS + MOST_BITS + 1
LIST_TOP = POOL_TOP + 1
FILL = LIST_TOP + 1  # postings of a list, at most, before a grid is refined
STATE_SIZE = FILL + 1

ROW_BITS = np.uint64(0xFFFF_FFFF)
SIGNATURE_SHIFT = np.uint64(32)


class Postings(NamedTuple):
    firsts: NDArray[np.int32]  # [terms]
    grids: NDArray[np.int8]  # [terms]
    counts: NDArray[np.int32]  # [terms]
    heads: NDArray[np.int64]  # [lists, 3]
    pool: NDArray[np.uint64]  # [*, 2]
    state: NDArray[np.int64]  # [STATE_SIZE]


@primitive
def bit_of(term):
    """One of 32 bits that stands for a term in signatures."""
    return np.uint64(1) << np.uint64(((np.int64(term) * 0x9E3779B1) >> 16) & 31)


@primitive
def signature(terms, low, high):
    bits = np.uint64(0)
    for i in range(low, high):
        bits |= bit_of(terms[i])
    return bits


@primitive
def block_size(bits):
    """Lists of a grid; one more for what is no point, unless there is a single list anyway."""
    return np.int64(1) if bits == 0 else (np.int64(1) << (2 * bits)) + 1


@primitive
def list_of(bits, place):
    """Which list of a term's block has a message: the cell of its lower corner, or the wide one."""
    if bits == 0:
        return np.int64(0)
    word = place & ~GUARD
    east, north, west, south = field(word, 0), field(word, 1), 32766 - field(word, 2), 32766 - field(word, 3)
    if east != west or north != south:
        return np.int64(1) << (2 * bits)
    shift = CELL_BITS - bits
    return ((south >> shift) << bits) | (west >> shift)


@primitive
def room_needed(postings, term):
    """Pool elements and lists that one more posting of a term may need, at most."""
    bits, count = np.int64(postings.grids[term]), np.int64(postings.counts[term])
    if is_refined(postings, bits, count + 1):
        lists = block_size(bits + 1)
        return 4 * (count + 1) + 4, lists
    return 4 * (count + 1) + 4, np.int64(1)


@primitive
def is_refined(postings, bits, count):
    return bits < MOST_BITS and count > postings.state[FILL] << (2 * bits)


@primitive
def take_run(postings, klass):
    run = postings.state[klass]
    if run != NONE:
        postings.state[klass] = np.int64(postings.pool[run, 0]) - 1
        return run
    run = postings.state[POOL_TOP]
    postings.state[POOL_TOP] = run + (np.int64(1) << klass)
    return run


@primitive
def give_run(postings, run, klass):
    postings.pool[run, 0] = np.uint64(postings.state[klass] + 1)  # NONE is 0 there
    postings.state[klass] = run


@primitive
def push(postings, at, place, tail):
    """Append to a list; the pool has room."""
    klass, count = postings.heads[at, CLASS], postings.heads[at, LENGTH]
    if klass == NONE or count == np.int64(1) << klass:
        larger = take_run(postings, klass + 1)
        start = postings.heads[at, START]
        for i in range(count):
            postings.pool[larger + i, 0] = postings.pool[start + i, 0]
            postings.pool[larger + i, 1] = postings.pool[start + i, 1]
        if klass != NONE:
            give_run(postings, start, klass)
        postings.heads[at, START] = larger
        postings.heads[at, CLASS] = klass + 1
    position = postings.heads[at, START] + count
    postings.pool[position, 0] = place
    postings.pool[position, 1] = tail
    postings.heads[at, LENGTH] = count + 1


@primitive
def take_block(postings, bits):
    """The first of the lists of a grid, all of them empty."""
    first = postings.state[FREE_BLOCKS + bits]
    if first != NONE:
        postings.state[FREE_BLOCKS + bits] = postings.heads[first, START]
    else:
        first = postings.state[LIST_TOP]
        postings.state[LIST_TOP] = first + block_size(bits)
    for at in range(first, first + block_size(bits)):
        postings.heads[at, START], postings.heads[at, LENGTH], postings.heads[at, CLASS] = 0, 0, NONE
    return first


@primitive
def regrid(postings, term, bits):
    """The postings of a term in a finer or coarser grid."""
    first, before = np.int64(postings.firsts[term]), np.int64(postings.grids[term])
    block = take_block(postings, bits)
    for at in range(first, first + block_size(before)):
        start, klass = postings.heads[at, START], postings.heads[at, CLASS]
        for i in range(start, start + postings.heads[at, LENGTH]):
            place = postings.pool[i, 0]
            push(postings, block + list_of(bits, place), place, postings.pool[i, 1])
        if klass != NONE:
            give_run(postings, start, klass)
    postings.heads[first, START] = postings.state[FREE_BLOCKS + before]
    postings.state[FREE_BLOCKS + before] = first
    postings.firsts[term] = block
    postings.grids[term] = bits


@kernel
def room_needed_for(postings, term):
    """`room_needed`, for Python."""
    return room_needed(postings, term)


@kernel
def put(postings, rows, numbers, frame, row_first, term_first):
    """Post rows numbers[row_first:], the first of them from its term `term_first` on.

    Returns (row, term) where it stopped: the caller makes room for the next posting and comes again.
    """
    for i in range(row_first, len(numbers)):
        row = numbers[i]
        low = np.int64(rows.term_from[row])
        high = low + rows.term_count[row]
        place = packed_message(rows.boxes, row, frame)
        tail = (signature(rows.terms, low, high) << SIGNATURE_SHIFT) | np.uint64(row)
        for at in range(low + term_first, high):
            term = rows.terms[at]
            room, lists = room_needed(postings, term)
            lacks_room = postings.state[POOL_TOP] + room > len(postings.pool)
            if lacks_room or postings.state[LIST_TOP] + lists > len(postings.heads):
                return i, at - low
            if postings.firsts[term] == NONE:
                postings.firsts[term] = take_block(postings, np.int64(0))
                postings.grids[term] = 0
            bits = np.int64(postings.grids[term])
            postings.counts[term] += 1
            push(postings, postings.firsts[term] + list_of(bits, place), place, tail)
            if is_refined(postings, bits, np.int64(postings.counts[term])):
                regrid(postings, term, bits + 1)
        term_first = np.int64(0)
    return len(numbers), np.int64(0)


@primitive
def drop(postings, at, row):
    """Remove the posting of a row from a list; the last one takes its place."""
    start, last = postings.heads[at, START], postings.heads[at, LENGTH] - 1
    position = start
    while postings.pool[position, 1] & ROW_BITS != np.uint64(row):
        position += 1
    postings.pool[position, 0] = postings.pool[start + last, 0]
    postings.pool[position, 1] = postings.pool[start + last, 1]
    postings.heads[at, LENGTH] = last
    if last == 0:
        give_run(postings, start, postings.heads[at, CLASS])
        postings.heads[at, CLASS] = NONE


@kernel
def take(postings, rows, numbers, frame):
    """Remove all postings of these rows. A grid that became too fine is made coarser if there is room for that."""
    for i in range(len(numbers)):
        row = numbers[i]
        low = np.int64(rows.term_from[row])
        place = packed_message(rows.boxes, row, frame)
        for at in range(low, low + rows.term_count[row]):
            term = rows.terms[at]
            bits = np.int64(postings.grids[term])
            drop(postings, postings.firsts[term] + list_of(bits, place), row)
            postings.counts[term] -= 1
            count = np.int64(postings.counts[term])
            if bits > 0 and 8 * count < postings.state[FILL] << (2 * bits):
                has_room = postings.state[POOL_TOP] + 4 * count + 4 <= len(postings.pool)
                if has_room and postings.state[LIST_TOP] + block_size(bits - 1) <= len(postings.heads):
                    regrid(postings, term, bits - 1)
            if count == 0 and postings.grids[term] == 0:
                first = np.int64(postings.firsts[term])
                postings.heads[first, START] = postings.state[FREE_BLOCKS]
                postings.state[FREE_BLOCKS] = first
                postings.firsts[term] = NONE
