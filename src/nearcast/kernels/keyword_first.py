"""KDD'13 2.2, keyword-first: inverted lists give what the words satisfy, then the place is verified.

The paper cites Yan and Garcia-Molina (TODS 1994) for the lists. Two ways: an entry is listed under its least
frequent term, its key, or under all its terms, which are then counted.
"""

from __future__ import annotations

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.primitives import overlaps
from nearcast.kernels.sieve import SIEVE, set_sieve
from nearcast.kernels.spatial_first import NO_ROOM, append, has_terms


@primitive
def _fits(guards, entries, entry, sieve, rows, row):
    """Is a member of the row's lists an answer? The look at the guard settles most, the place most others."""
    if not sieve[guards[entry] & (SIEVE - 1)] or not overlaps(entries.boxes, entry, rows.boxes, row):
        return False
    return has_terms(entries, entry, rows, row)


@kernel
def probe_keys(lists, guards, entries, sieve, rows, first_row, found, counters):
    """Each entry is in one list, that of its key. Candidates are the members of the row's lists.

    A second term of each entry, its guard, is beside the lists (see `kernels.sieve`); the other terms are
    looked up last, because they are farthest away.
    """
    n_found = 0
    for row in range(first_row, len(rows.boxes)):
        row_from, candidates, nodes = n_found, 0, 0
        set_sieve(sieve, rows, row, True)
        for k in range(rows.term_from[row], rows.term_from[row + 1]):
            term = rows.terms[k]
            if term >= len(lists.start) or lists.length[term] == 0:
                continue
            nodes += 1
            start = lists.start[term]
            candidates += lists.length[term]
            for i in range(start, start + lists.length[term]):
                if _fits(guards, entries, lists.pool[i], sieve, rows, row):
                    if not append(found, n_found, row, lists.pool[i]):
                        set_sieve(sieve, rows, row, False)
                        return row, row_from
                    n_found += 1
        set_sieve(sieve, rows, row, False)
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found


@primitive
def _count_back(left, lists, rows, row, end):
    """Count the members of the row's lists up again, those of its terms before `end`."""
    for k in range(rows.term_from[row], end):
        term = rows.terms[k]
        if term < len(lists.start):
            start = lists.start[term]
            for i in range(start, start + lists.length[term]):
                left[lists.pool[i]] += 1


@primitive
def _count_list(left, lists, term, entries, rows, row, found, n_found):
    """Count a term down in its list's members, append those complete; number found or NO_ROOM at the end."""
    has_room, start = True, lists.start[term]
    for i in range(start, start + lists.length[term]):
        entry = lists.pool[i]
        left[entry] -= 1
        if left[entry] == 0 and has_room and overlaps(entries.boxes, entry, rows.boxes, row):
            has_room = append(found, n_found, row, entry)
            n_found += 1
    return n_found if has_room else NO_ROOM


@kernel
def probe_counting(lists, left, entries, rows, first_row, found, counters):
    """Each entry is in the lists of all its terms and complete when met that often. Candidates are members.

    `left` has the number of terms of each entry. It is counted down in a row's lists, and up again after.
    """
    n_found = 0
    for row in range(first_row, len(rows.boxes)):
        row_from, candidates, nodes = n_found, 0, 0
        for k in range(rows.term_from[row], rows.term_from[row + 1]):
            term = rows.terms[k]
            if term >= len(lists.start) or lists.length[term] == 0:
                continue
            n_found = _count_list(left, lists, term, entries, rows, row, found, n_found)
            if n_found == NO_ROOM:
                _count_back(left, lists, rows, row, k + 1)
                return row, row_from
            nodes += 1
            candidates += lists.length[term]
        _count_back(left, lists, rows, row, rows.term_from[row + 1])
        counters[CANDIDATES] += candidates
        counters[NODES] += nodes
    return len(rows.boxes), n_found
