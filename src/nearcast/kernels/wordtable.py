"""Words to terms: open addressing, exact. A hash finds, the bytes decide.

A word is stored as chunks, integers of seven bytes and a count, so that most words are compared at once, in
the slot itself: with 200,000 words the pool of longer ones is another miss of the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.refine import HOLE

EMPTY = -1

CHUNK = 7
"""Bytes of a chunk. Its lowest four bits count them, or say MORE; so equal chunks are equal words."""
MORE = 8

_TERM_BITS = 31
_TERM = (1 << _TERM_BITS) - 1
_HALF = (1 << 30) - 1
_LOW, _HIGH = 0x9E3779B1, 0x85EBCA6B  # below 2**32: products with 31 bits never wrap, in either mode


class WordTable(NamedTuple):
    """The lexicon for kernels. A word's slot is the one its hash says, or the next free one after it."""

    slots: NDArray[np.int64]  # [capacity, 2]  first chunk, or EMPTY; where its others begin << 31 | term
    chunks: NDArray[np.int64]  # [*]  the other chunks of words of more than one


@primitive
def chunk_of(text, low, high):
    """The chunk at text[low] of a word that ends at `high`. Bytes are the low halves of the items.

    All seven are read and those behind the word masked, so the text needs CHUNK items more: no branch depends on
    the length of a word, which no processor can guess.
    """
    packed = np.int64(0)
    for i in range(CHUNK):
        packed |= np.int64(text[low + i] & 0xFF) << (8 * i)
    size = min(high - low, MORE)
    return (packed & ((np.int64(1) << (8 * min(size, CHUNK))) - 1)) << 4 | size


@primitive
def stirred(hashed, chunk):
    """The hash, 31 bits, with one chunk more."""
    hashed = (hashed ^ (chunk & _HALF)) * _LOW
    hashed = ((hashed ^ (hashed >> 31)) & _TERM ^ (chunk >> 30)) * _HIGH
    return (hashed ^ (hashed >> 31)) & _TERM


@primitive
def same_rest(chunks, start, text, low, high):
    """Are the chunks from `start` on those of text[low:high]? The last one differs from all longer words'."""
    for at in range(low, high, CHUNK):
        if chunks[start] != chunk_of(text, at, high):
            return False
        start += 1
    return True


@primitive
def look_up(table, text, starts, ends, seed):
    """Replace each start by the term of the word text[start:end], or HOLE.

    One loop for all words of a text: a call for each would cost as much as the search, and the processor can wait
    for the slots of many words at the same time.
    """
    slots, last = table.slots, len(table.slots) - 1  # the capacity is a power of two
    for i in range(len(starts)):
        low, high = starts[i], ends[i]
        first = chunk_of(text, low, high)
        hashed = stirred(seed, first)
        for at in range(low + CHUNK, high, CHUNK):
            hashed = stirred(hashed, chunk_of(text, at, high))
        at = hashed & last
        while slots[at, 0] != EMPTY:
            if slots[at, 0] == first:
                rest = slots[at, 1] >> _TERM_BITS
                if high - low <= CHUNK or same_rest(table.chunks, rest, text, low + CHUNK, high):
                    break
            at = (at + 1) & last
        starts[i] = HOLE if slots[at, 0] == EMPTY else slots[at, 1] & _TERM


@primitive
def free_slot(slots, hashed):
    at = hashed & (len(slots) - 1)
    while slots[at, 0] != EMPTY:
        at = (at + 1) & (len(slots) - 1)
    return at


@kernel
def add_words(table, data, word_from, first_term, top, seed):
    """Enter words that are not there yet; word i of `data` has term first_term + i. The new top of the chunks."""
    for i in range(len(word_from) - 1):
        low, high = word_from[i], word_from[i + 1]
        first = chunk_of(data, low, high)
        hashed, start = stirred(seed, first), top
        for at in range(low + CHUNK, high, CHUNK):
            table.chunks[top] = chunk_of(data, at, high)
            hashed = stirred(hashed, table.chunks[top])
            top += 1
        at = free_slot(table.slots, hashed)
        table.slots[at, 0] = first
        table.slots[at, 1] = start << _TERM_BITS | (first_term + i)
    return top


@kernel
def move_words(table, slots, seed):
    """Enter all words of the table into other slots, which are more."""
    for i in range(len(table.slots)):
        first = table.slots[i, 0]
        if first == EMPTY:
            continue
        hashed, chunk, rest = stirred(seed, first), first, table.slots[i, 1] >> _TERM_BITS
        while chunk & 0xF == MORE:
            chunk = table.chunks[rest]
            hashed = stirred(hashed, chunk)
            rest += 1
        at = free_slot(slots, hashed)
        slots[at, 0] = first
        slots[at, 1] = table.slots[i, 1]
