"""Texts to terms: folded, cut into words and looked up, row by row.

The meaning is that of `nearcast.text.Analyzer` named `unicode`; where a text needs more than the table of
characters can say, the kernel stops in front of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.folding import (
    APOSTROPHE,
    DIGIT,
    DONE,
    FULL,
    HASH,
    KATAKANA,
    KINDS,
    LETTER,
    MARK,
    POINT,
    SLOW,
    SOLO,
    UNDERSCORE,
    fold,
)
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.refine import HOLE
from nearcast.kernels.wordtable import look_up

SHORT_RUN = 64
"""Words up to which comparing each with each is faster than a heap."""


class Texts(NamedTuple):
    """Row i is the text data[text_from[i]:text_from[i + 1]]; it gets no words unless it is served."""

    data: NDArray[np.uint8]  # [*]      UTF-8
    text_from: NDArray[np.int64]  # [n + 1]
    served: NDArray[np.bool_]  # [n]


class Tokens(NamedTuple):
    """Room for the words of n rows, in text order and as sets. Row i + 1 begins where row i ends."""

    word_from: NDArray[np.int64]  # [n + 1]
    words: NDArray[np.int32]  # [capacity]  terms; HOLE for a word without a term
    positions: NDArray[np.int32]  # [capacity]  ascending within a row; a tag shares its word's
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [capacity]  ascending and distinct within a row


@primitive
def goes_on(folded, at):
    """Does the sign at `at` join what is before it and after it: it's, 3.14?"""
    sign, before, after = folded[at] & KINDS, folded[at - 1] & KINDS, folded[at + 1] & KINDS
    if sign == APOSTROPHE:
        return before != DIGIT and before != UNDERSCORE and after == LETTER
    return sign == POINT and before == DIGIT and after == DIGIT


@primitive
def word_end(folded, at):
    """Where the word that begins at `at` ends."""
    kind = folded[at] & KINDS
    at += 1
    if kind == SOLO:
        while folded[at] >= MARK:
            at += 1
        return at
    if kind == KATAKANA:
        while folded[at] >= MARK or folded[at] & KINDS == KATAKANA:
            at += 1
        return at
    while True:
        while folded[at] >= LETTER:
            at += 1
        if not goes_on(folded, at):
            return at
        at += 1


@primitive
def begins_word(symbol):
    return SOLO <= symbol < MARK


@primitive
def tag_end(folded, end):
    """Where the words that touch each other end, the first of them at `end`: #東京 is one tag."""
    while begins_word(folded[end]):
        end = word_end(folded, end)
    return end


@primitive
def only_underscores(folded, at, end):
    while at < end and folded[at] & KINDS == UNDERSCORE:
        at += 1
    return at == end


@primitive
def cut(folded, size, tokens, used, low):
    """Find the words of the folded text; the place behind the last, or -FULL.

    Word i has its start at words[used + i], its end at terms[low + i], until it is looked up.
    """
    shift, room = low - used, len(tokens.words) - 1  # for two: a word and its tag
    at, position, end_before = 0, 0, -1
    while at < size:
        if not begins_word(folded[at]):
            at += 1
            continue
        end = at
        while folded[end] >= LETTER:  # most words end here; a call for each would cost more than this loop
            end += 1
        if end == at or goes_on(folded, end):
            end = word_end(folded, at)
        if not only_underscores(folded, at, end):
            if used >= room:
                return -FULL
            tokens.words[used], tokens.terms[used + shift], tokens.positions[used] = at, end, position
            used += 1
            if at > 0 and folded[at - 1] & KINDS == HASH and end_before != at - 1:
                tokens.words[used], tokens.positions[used] = at - 1, position
                tokens.terms[used + shift] = tag_end(folded, end)
                used += 1
            position += 1
        at = end_before = end
    return used


@primitive
def rank_sort(words, terms):
    """Put each word at the place that is the number of smaller ones, and HOLE at the others.

    Quadratic, but no branch depends on the words; in 32 bits, so that eight are compared at once.
    """
    for i in range(len(terms)):
        terms[i] = HOLE
    for i in range(len(words)):
        word, smaller = words[i], np.int32(0)
        for j in range(len(words)):
            smaller += np.int32(words[j] < word)
        terms[smaller] = word


@primitive
def sift(terms, low, parent, size):
    """Let the parent of a heap (largest on top, numbered from 0 at `low`) sink to its place."""
    term = terms[low + parent]
    child = 2 * parent + 1
    while child < size:
        if child + 1 < size and terms[low + child + 1] > terms[low + child]:
            child += 1
        if terms[low + child] <= term:
            break
        terms[low + parent] = terms[low + child]
        parent, child = child, 2 * child + 1
    terms[low + parent] = term


@primitive
def heap_sort(terms, low, high):
    size = high - low
    for parent in range(size // 2 - 1, -1, -1):
        sift(terms, low, parent, size)
    for last in range(size - 1, 0, -1):
        terms[low], terms[low + last] = terms[low + last], terms[low]
        sift(terms, low, 0, last)


@primitive
def write_terms(words, first, last, terms, low):
    """The distinct terms of words[first:last], ascending, from terms[low] on; where they end."""
    high = low + last - first
    if high - low <= SHORT_RUN:
        rank_sort(words[first:last], terms[low:high])
    else:
        for i in range(last - first):
            terms[low + i] = words[first + i]
        heap_sort(terms, low, high)
    end, before = low, HOLE
    for i in range(low, high):
        term = terms[i]
        terms[end] = term
        end += term > before
        before = max(before, term)
    return end


@primitive
def write_row(texts, row, longest, characters, table, seed, folded, tokens):
    """Write the row whole, or say why not."""
    used, low = tokens.word_from[row], tokens.term_from[row]
    end = used
    if texts.served[row]:
        start, stop = texts.text_from[row], texts.text_from[row + 1]
        if stop - start > longest:
            return SLOW
        size = fold(texts.data, start, stop, characters, folded)
        if size < 0:
            return -size
        end = cut(folded, size, tokens, used, low)
        if end < 0:
            return -end
        look_up(table, folded, tokens.words[used:end], tokens.terms[low : low + end - used], seed)
    tokens.word_from[row + 1] = end
    tokens.term_from[row + 1] = write_terms(tokens.words, used, end, tokens.terms, low)
    return DONE


@kernel
def tokenise(texts, first, longest, characters, table, seed, folded, tokens):
    """Write the rows from `first` on; (row, why) of the first that could not be, or (n, DONE).

    Texts of more than `longest` bytes are left to the analyzer.
    """
    for row in range(first, len(texts.served)):
        why = write_row(texts, row, longest, characters, table, seed, folded, tokens)
        if why != DONE:
            return row, why
    return len(texts.served), DONE
