"""What a move changes, from postings by term and place (`move_postings`).

A subscription's terms do not move. So the list of its rarest term is looked through, and of its grid only cells that
the old or the new box touches; cells inside both cannot have changes. Packed places decide nearly everything; the
exact boxes are read where a coordinate shares its cell with a border.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.move_layout import has_terms
from nearcast.kernels.move_postings import CELL_BITS, LENGTH, NONE, ROW_BITS, SIGNATURE_SHIFT, START, signature
from nearcast.kernels.primitives import overlaps
from nearcast.kernels.strata_layout import LAST, below, field, packed_entry, strictly_below


@primitive
def rarest(postings, entries, entry):
    """The term of the entry that the fewest live messages have; NONE if one of its terms has no message at all."""
    low = np.int64(entries.term_from[entry])
    best, least = np.int64(NONE), np.int64(1) << 40
    for at in range(low, low + entries.term_count[entry]):
        term = np.int64(entries.terms[at])
        if term >= len(postings.counts) or postings.counts[term] == 0:
            return np.int64(NONE)
        if postings.counts[term] < least:
            best, least = term, np.int64(postings.counts[term])
    return best


@primitive
def is_in(query, place, boxes, i, rows, row):
    """Is the message in box i, whose packed form is `query`?"""
    if not below(query, place):
        return False
    return strictly_below(query, place) or overlaps(boxes, i, rows.boxes, row)


@primitive
def look_through(postings, at, entries, entry, wanted, old, new, i, queries, rows, out, n):
    """Append the changes in one list: how many there are now, or -1 without room."""
    before, after = queries
    start = postings.heads[at, START]
    for p in range(start, start + postings.heads[at, LENGTH]):
        place = postings.pool[p, 0]
        if not below(before, place) and not below(after, place):
            continue
        tail = postings.pool[p, 1]
        if (tail >> SIGNATURE_SHIFT) & wanted != wanted:
            continue
        row = np.int64(tail & ROW_BITS)
        comes = is_in(after, place, new, i, rows, row)
        if comes == is_in(before, place, old, i, rows, row):
            continue
        if entries.term_count[entry] > 1 and not has_terms(entries, entry, rows, row):
            continue
        if n == len(out.rows):
            return -1
        out.moves[n], out.rows[n], out.entered[n] = i, row, comes
        n += 1
    return n


@primitive
def cells(query, shift):
    """West, south, east and north cell of a packed box in a grid."""
    return (
        field(query, 0) >> shift,
        field(query, 1) >> shift,
        (LAST - field(query, 2)) >> shift,
        (LAST - field(query, 3)) >> shift,
    )


@primitive
def is_inside(x, y, box):
    """Is a cell off the border of a box of cells?"""
    return box[0] < x < box[2] and box[1] < y < box[3]


@primitive
def is_of(x, y, box):
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


@primitive
def look_through_grid(postings, term, entries, entry, wanted, old, new, i, queries, rows, out, n, counters):
    """The new box cell by cell, then what of the old one is left."""
    bits, first = np.int64(postings.grids[term]), np.int64(postings.firsts[term])
    was, comes = cells(queries[0], CELL_BITS - bits), cells(queries[1], CELL_BITS - bits)
    wide = first + (np.int64(1) << (2 * bits))
    n = look_through(postings, wide, entries, entry, wanted, old, new, i, queries, rows, out, n)
    for turn in range(2):
        box = comes if turn == 0 else was
        for y in range(box[1], box[3] + 1):
            x = box[0]
            while x <= box[2] and n >= 0:
                if turn == 0 and is_inside(x, y, comes) and is_inside(x, y, was):
                    x = min(comes[2], was[2])  # the next cell with a border
                    continue
                if turn == 1 and is_of(x, y, comes):
                    x = comes[2] + 1
                    continue
                at = first + ((y << bits) | x)
                if postings.heads[at, LENGTH]:
                    n = look_through(postings, at, entries, entry, wanted, old, new, i, queries, rows, out, n)
                    counters[NODES] += 1
                    counters[CANDIDATES] += postings.heads[at, LENGTH]
                x += 1
    return n


@primitive
def find_differences(postings, entries, numbers, old, new, first, frame, rows, out, counters):
    """Messages that entries gain and lose, from numbers[first] on: (how far it came, how many)."""
    n = np.int64(0)
    for i in range(first, len(numbers)):
        before, entry = n, numbers[i]
        candidates, nodes = counters[CANDIDATES], counters[NODES]
        term = rarest(postings, entries, entry)
        if term == NONE:
            continue
        low = np.int64(entries.term_from[entry])
        wanted = signature(entries.terms, low, low + entries.term_count[entry])
        queries = packed_entry(old, i, frame), packed_entry(new, i, frame)
        if postings.grids[term] == 0:
            at = np.int64(postings.firsts[term])
            n = look_through(postings, at, entries, entry, wanted, old, new, i, queries, rows, out, n)
            counters[NODES] += 1
            counters[CANDIDATES] += postings.counts[term]
        else:
            n = look_through_grid(postings, term, entries, entry, wanted, old, new, i, queries, rows, out, n, counters)
        if n < 0:
            counters[CANDIDATES], counters[NODES] = candidates, nodes
            return i, before
    return len(numbers), n


@kernel
def differ(postings, entries, numbers, old, new, first, frame, rows, out, counters):
    return find_differences(postings, entries, numbers, old, new, first, frame, rows, out, counters)
