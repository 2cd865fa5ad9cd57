"""Pivotal tokens: choosing them greedily, and asking sorted sets for a common token (CIKM'15 4.1, 4.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.filled import put_at
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.mbr_trie import steps
from nearcast.kernels.primitives import lower_bound

NONE = -1


class Greedy(NamedTuple):
    """What the choice for one list writes on. Between lists df is 0 and bucket NONE everywhere."""

    df: NDArray[np.int32]  # [terms]  remaining subscriptions with the term
    begin: NDArray[np.int64]  # [terms]  where its postings begin; once they are written, where they end
    link: NDArray[np.int32]  # [terms]  next term of the same bucket
    bucket: NDArray[np.int32]  # [longest list + 1]  first term with this df, or NONE
    posting: NDArray[np.int32]  # [most terms of a list]  positions in the list, by term
    distinct: NDArray[np.int32]  # [most terms of a list]  the terms that occur
    removed: NDArray[np.bool_]  # [longest list]  has a pivotal token already


def greedy_scratch(n_terms: int, longest: int, most: int) -> Greedy:
    return Greedy(
        np.zeros(n_terms, dtype=np.int32),
        np.zeros(n_terms, dtype=np.int64),
        np.zeros(n_terms, dtype=np.int32),
        np.full(longest + 1, NONE, dtype=np.int32),
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.int32),
        np.empty(longest, dtype=np.bool_),
    )


@primitive
def has_common(lists, at, terms, low, high):
    """Does the set share a token with terms[low:high]? The cheaper side probes, as in CIKM'15 3.3 and 4.2."""
    start, end = lists.start[at], lists.start[at] + lists.length[at]
    n, size = high - low, end - start
    if n * steps(size) < size * steps(n):
        for i in range(low, high):
            start = lower_bound(lists.pool, start, end, terms[i])
            if start == end:
                return False
            if lists.pool[start] == terms[i]:
                return True
    else:
        for i in range(start, end):
            low = lower_bound(terms, low, high, lists.pool[i])
            if low == high:
                return False
            if terms[low] == lists.pool[i]:
                return True
    return False


@primitive
def include(lists, at, token):
    """Put a token into the sorted set `at`; False if the pool has no room."""
    start, end = lists.start[at], lists.start[at] + lists.length[at]
    return put_at(lists, at, lower_bound(lists.pool, start, end, token) - start, token)


@primitive
def count_terms(entries, run, low, high, greedy):
    """Document frequencies and postings of the entries run[low:high]; the largest frequency."""
    n = 0
    for i in range(low, high):
        greedy.removed[i - low] = False
        first = entries.term_from[run[i]]
        for at in range(first, first + entries.term_count[run[i]]):
            term = entries.terms[at]
            if greedy.df[term] == 0:
                greedy.distinct[n] = term
                n += 1
            greedy.df[term] += 1
    end, top = np.int64(0), 0
    for i in range(n):
        term = greedy.distinct[i]
        greedy.begin[term] = end
        end += greedy.df[term]
        top = max(top, greedy.df[term])
        greedy.link[term] = greedy.bucket[greedy.df[term]]
        greedy.bucket[greedy.df[term]] = term
    for i in range(low, high):
        first = entries.term_from[run[i]]
        for at in range(first, first + entries.term_count[run[i]]):
            term = entries.terms[at]
            greedy.posting[greedy.begin[term]] = i - low
            greedy.begin[term] += 1
    return top


@primitive
def represent(entries, run, low, greedy, term):
    """Let the term stand for all remaining entries that have it; its postings end at begin[term]."""
    at = greedy.begin[term] - 1
    while greedy.df[term] > 0:
        i = greedy.posting[at]
        at -= 1
        if greedy.removed[i]:
            continue
        greedy.removed[i] = True
        first = entries.term_from[run[low + i]]
        for j in range(first, first + entries.term_count[run[low + i]]):
            greedy.df[entries.terms[j]] -= 1


@kernel
def choose(entries, run_from, run, greedy, chosen_from, chosen):
    """A small set of tokens that hits every entry of each run: always the token of largest remaining df.

    Terms wait in buckets by the df they had when put there; df only falls, so one that is taken out with a
    smaller df goes to its new bucket, and the sweep from the top never turns back. Ties: any. chosen has
    room for one token an entry.
    """
    n_chosen = np.int64(0)
    for i in range(len(run_from) - 1):
        low, high = run_from[i], run_from[i + 1]
        df = count_terms(entries, run, low, high, greedy)
        while df > 0:
            term = greedy.bucket[df]
            if term == NONE:
                df -= 1
                continue
            greedy.bucket[df] = greedy.link[term]
            if greedy.df[term] == df:
                chosen[n_chosen] = term
                n_chosen += 1
                represent(entries, run, low, greedy, term)
            elif greedy.df[term] > 0:
                greedy.link[term] = greedy.bucket[greedy.df[term]]
                greedy.bucket[greedy.df[term]] = term
        chosen_from[i + 1] = n_chosen
