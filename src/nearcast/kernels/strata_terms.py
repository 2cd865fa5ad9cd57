"""The terms of the message at hand, and whether it has those that a lane asks for."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import inlined
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.strata_layout import (
    COUNT_SHIFT,
    MARK_BITS,
    MOST_COUNTED,
    THIRD_SHIFT,
    WHERE_BITS,
    WHERE_HIGH_BITS,
    WHERE_HIGH_SHIFT,
    WHERE_LOW_BITS,
    WHERE_SHIFT,
    mark_of,
)

N0, N1, N6 = np.uint64(0), np.uint64(1), np.uint64(6)
BIT_BITS = np.uint64(63)
TERM_BITS = 0x7FFF_FFFF


@inlined
def set_seen(seen, terms, rows, row):
    for i in range(rows.term_from[row], rows.term_from[row + 1]):
        mark = np.uint64(mark_of(rows.terms[i]))
        seen[mark >> N6] |= N1 << (mark & BIT_BITS)
        terms[mark] = rows.terms[i]


@inlined
def clear_seen(seen, rows, row):
    for i in range(rows.term_from[row], rows.term_from[row + 1]):
        seen[np.uint64(mark_of(rows.terms[i])) >> N6] = N0


@inlined
def is_seen(seen, mark):
    return (seen[mark >> N6] >> (mark & BIT_BITS)) & N1


@inlined
def others_seen(seen, word):
    """1 unless a further term of the lane is surely missing; the same bits in both kinds of word."""
    first, second = word & MARK_BITS, (word >> THIRD_SHIFT) & MARK_BITS
    return is_seen(seen, np.uint64(first)) & is_seen(seen, np.uint64(second))


@inlined
def has_term(work, rows, row, term):
    """Exactly: by the mark; where another term of the message has the same, by search."""
    mark = np.uint64(mark_of(term))
    if is_seen(work.seen, mark) == N0:
        return False
    if work.terms[mark] == term:
        return True
    last = rows.term_from[row + 1]
    at = lower_bound(rows.terms, rows.term_from[row], last, term)
    return at < last and rows.terms[at] == term


@inlined
def where_terms_are(word):
    return (word >> WHERE_SHIFT) & WHERE_BITS | ((word >> WHERE_HIGH_SHIFT) & WHERE_HIGH_BITS) << WHERE_LOW_BITS


@inlined
def has_all_terms(work, entries, entry, word, rows, row):
    """The terms of an entry with many of them, from the table."""
    low = np.uint64(where_terms_are(word))
    count = np.uint64((word >> COUNT_SHIFT) & MOST_COUNTED)
    if count == N0:
        count = np.uint64(entries.term_count[entry])
    for i in range(low, low + count):
        if not has_term(work, rows, row, entries.terms[i]):
            return False
    return True


@inlined
def has_others(work, entries, entry, word, rows, row):
    """Exactly: does the message have all terms of the entry besides its key?"""
    if word < 0:
        return has_all_terms(work, entries, entry, word, rows, row)
    return has_term(work, rows, row, word & TERM_BITS) and has_term(work, rows, row, (word >> 32) & TERM_BITS)
