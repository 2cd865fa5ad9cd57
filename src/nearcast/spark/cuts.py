"""Where to cut space and vocabulary so that shards cost the same (Skype 7.3.2 and 7.3.3).

The cost of a part is N x p: entries in it, times the share of messages that come to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.spark.routes import Entries, Posts

MOST_CUTS = 1024
"""Places tried for one cut."""

_ALL = (-np.inf, -np.inf, np.inf, np.inf)


def cells(entries: NDArray[np.float64], posts: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """[k, 4] cells of a KD-tree over boxes of entries and of messages (Algorithm 3), in both axes the better cut.

    k need not be a power of two: a side that gets more of the cells may cost more.
    """
    leaves: list[tuple[float, ...]] = []
    waiting: list[tuple[tuple[float, ...], NDArray[np.float64], NDArray[np.float64], int]] = [(_ALL, entries, posts, k)]
    while waiting:
        cell, inside, coming, wanted = waiting.pop()
        if wanted == 1:
            leaves.append(cell)
            continue
        low = wanted // 2
        axis, cut = _best_cut(inside, coming, low, wanted - low)
        below, above = list(cell), list(cell)
        below[axis + 2] = above[axis] = cut
        for side, part, count in ((below, _below, low), (above, _above, wanted - low)):
            waiting.append((tuple(side), inside[part(inside, axis, cut)], coming[part(coming, axis, cut)], count))
    return np.array(leaves)


def _below(boxes: NDArray[np.float64], axis: int, cut: float) -> NDArray[np.bool_]:
    return np.asarray(boxes[:, axis] < cut)


def _above(boxes: NDArray[np.float64], axis: int, cut: float) -> NDArray[np.bool_]:
    return np.asarray(boxes[:, axis + 2] >= cut)


def _best_cut(entries: NDArray[np.float64], posts: NDArray[np.float64], low: int, high: int) -> tuple[int, float]:
    """The axis and place with the least cost of the dearer side; a cut beyond everything if nothing can be cut."""
    best = (np.inf, 0, np.inf)
    for axis in (0, 1):
        places = _candidates(np.concatenate([entries[:, axis], posts[:, axis]]))
        if not len(places):
            continue
        cost = np.maximum(
            _count_below(entries, axis, places) * _count_below(posts, axis, places) / low**2,
            _count_above(entries, axis, places) * _count_above(posts, axis, places) / high**2,
        )
        at = int(np.argmin(cost))
        best = min(best, (float(cost[at]), axis, float(places[at])))
    return best[1], best[2]


def _candidates(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values that leave something on both sides, evenly chosen among the ranks."""
    distinct = np.unique(values)[1:]
    step = max(1, len(distinct) // MOST_CUTS)
    return distinct[step // 2 :: step]


def _count_below(boxes: NDArray[np.float64], axis: int, cuts: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.searchsorted(np.sort(boxes[:, axis]), cuts, side="left")


def _count_above(boxes: NDArray[np.float64], axis: int, cuts: NDArray[np.float64]) -> NDArray[np.intp]:
    return len(boxes) - np.searchsorted(np.sort(boxes[:, axis + 2]), cuts, side="left")


def groups(entries: Entries, posts: Posts, n_terms: int, k: int, *, keys_only: bool) -> NDArray[np.int16]:
    """[n_terms] the group of each term: runs of the terms in order of frequency (Algorithm 4); -1 for terms that
    no entry is found by."""
    starts, found_by = (
        (np.arange(len(entries.key) + 1), entries.key) if keys_only else (entries.term_from, entries.terms)
    )
    used = np.bincount(found_by, minlength=n_terms)
    frequency = np.bincount(posts.terms, minlength=n_terms)[:n_terms]
    order = np.lexsort((used, frequency))
    order = order[used[order] > 0]
    rank = np.full(n_terms, -1, np.int64)
    rank[order] = np.arange(len(order))
    group_of = np.full(n_terms, -1, np.int16)
    wanted = _ends(starts, rank[found_by]), _ends(posts.term_from, rank[posts.terms])
    for group, (first, last) in enumerate(_runs(*wanted, len(order), k)):
        group_of[order[first:last]] = group
    return group_of


Ranks = tuple[NDArray[np.int64], NDArray[np.int64]]  # row, rank: sorted by both


def _ends(starts: NDArray[np.int64], rank: NDArray[np.int64]) -> Ranks:
    row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    known = rank >= 0
    row, rank = row[known], rank[known]
    order = np.lexsort((rank, row))
    return row[order], rank[order]


def _runs(entries: Ranks, posts: Ranks, n: int, k: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    waiting = [(0, n, k)]
    while waiting:
        first, last, wanted = waiting.pop()
        if wanted == 1:
            found.append((first, last))
            continue
        low = wanted // 2
        cut = _best_rank(_between(entries, first, last), _between(posts, first, last), first, last, low, wanted - low)
        waiting += [(cut, last, wanted - low), (first, cut, low)]
    return found


def _between(ranks: Ranks, first: int, last: int) -> Ranks:
    row, rank = ranks
    inside = (rank >= first) & (rank < last)
    return row[inside], rank[inside]


def _best_rank(entries: Ranks, posts: Ranks, first: int, last: int, low: int, high: int) -> int:
    """first + how many of the run's terms go to the first part."""
    if last - first < 2:
        return last
    cost = np.maximum(
        _rows_below(entries, first, last) * _rows_below(posts, first, last) / low**2,
        _rows_above(entries, first, last) * _rows_above(posts, first, last) / high**2,
    )
    return first + 1 + int(np.argmin(cost))


def _rows_below(ranks: Ranks, first: int, last: int) -> NDArray[np.int64]:
    """[last - first - 1] rows that have a term among the first 1, 2, … of the run."""
    row, rank = ranks
    least = rank[np.diff(row, prepend=-1) != 0]
    return np.cumsum(np.bincount(least - first, minlength=last - first))[:-1]


def _rows_above(ranks: Ranks, first: int, last: int) -> NDArray[np.int64]:
    """[last - first - 1] rows that have a term behind the first 1, 2, … of the run."""
    row, rank = ranks
    greatest = rank[np.diff(row, append=-1) != 0]
    return len(greatest) - np.cumsum(np.bincount(greatest - first, minlength=last - first))[:-1]
