"""Predicates that every kernel shares: closed boxes, sorted term sets."""

from __future__ import annotations

from nearcast.kernels.jit import primitive


@primitive
def overlaps(a, i, b, j):
    """Do closed boxes a[i] and b[j] share a point?"""
    return a[i, 0] <= b[j, 2] and b[j, 0] <= a[i, 2] and a[i, 1] <= b[j, 3] and b[j, 1] <= a[i, 3]


@primitive
def lower_bound(values, low, high, value):
    """First position in the ascending values[low:high] that is not below value."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@primitive
def contains_all(wanted, low, high, given, first, last):
    """Is the ascending run wanted[low:high] a subset of the ascending run given[first:last]?"""
    if high - low > last - first:
        return False
    for i in range(low, high):
        first = lower_bound(given, first, last, wanted[i])
        if first == last or given[first] != wanted[i]:
            return False
        first += 1
    return True


@primitive
def verify(entries, entry, rows, row):
    """The exact predicate on box and required terms; what is more is checked by `refine`."""
    if not overlaps(entries.boxes, entry, rows.boxes, row):
        return False
    low = entries.term_from[entry]
    return contains_all(
        entries.terms,
        low,
        low + entries.term_count[entry],
        rows.terms,
        rows.term_from[row],
        rows.term_from[row + 1],
    )
