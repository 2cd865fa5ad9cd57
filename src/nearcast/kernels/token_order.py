"""The df-based choice of representative tokens (KDD'13 4.2)."""

from __future__ import annotations

from nearcast.kernels.jit import kernel

NO_TERM = -1


@kernel
def cover(row_from, terms, by_from, by_row, left, first, following, chosen):
    """Choose one term for each row: the most frequent one, for all rows that have it; then, among the rows that
    remain, the most frequent one; and so on.

    Row r has terms[row_from[r]:row_from[r + 1]], term t is in by_row[by_from[t]:by_from[t + 1]]. `left` starts as
    the number of rows of each term and is used up; `chosen` and `first` (by number of rows) start as NO_TERM.
    Terms wait in chains by the number of rows they had when last looked at, which only shrinks: one that has
    less by now moves to a lower chain.
    """
    for term in range(len(left)):
        following[term] = first[left[term]]
        first[left[term]] = term
    for rows in range(len(first) - 1, 0, -1):
        while first[rows] != NO_TERM:
            term = first[rows]
            first[rows] = following[term]
            if left[term] < rows:
                following[term] = first[left[term]]
                first[left[term]] = term
                continue
            for i in range(by_from[term], by_from[term + 1]):
                row = by_row[i]
                if chosen[row] == NO_TERM:
                    chosen[row] = term
                    for k in range(row_from[row], row_from[row + 1]):
                        left[terms[k]] -= 1
