"""Re-evaluation: the best messages of the window for one wish, and how many of them to keep (Skype section 6).

Messages are found through their terms: `Chain` links the postings of a term, newest first. The best `reach` are
gathered in a heap; the policy decides how many of them the buffer covers, that is, its threshold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.rank_layout import (
    ALL,
    BASE,
    NEXT,
    NOTHING,
    OLDEST,
    REFILLS,
    SCANNED,
    SCORED,
    TRIMMED,
    score_of,
)

KMAX, SKYBAND, CSKYBAND = 0, 1, 2
"""Policies: the best kmax (Yi et al.); all within a ratio of the k-th score, without those that cannot come
back (Mouratidis et al.); the same with a threshold chosen by cost (Skype section 6.2)."""

# Positions in `policy`.
KIND, FACTOR, COST = 0, 1, 2  # kmax / k or the ratio; cost of reading a posting in units of touching an entry
N_POLICY = 3


class Chain(NamedTuple):
    """Postings of the window by term, each leading to the next older one. Posting p is posts.terms[p]."""

    newest: NDArray[np.int64]  # [n_terms]  posting or -1
    older: NDArray[np.int64]  # [postings]
    row: NDArray[np.int32]  # [postings]  whose it is


class Heap(NamedTuple):
    """Room for the best messages; the worst of them is first."""

    scores: NDArray[np.float64]
    seqs: NDArray[np.int32]


@kernel
def link(chain, posts, first, last):
    """Rows first..last join the chains."""
    for row in range(first, last):
        for p in range(posts.term_from[row], posts.term_from[row + 1]):
            term = posts.terms[p]
            chain.older[p] = chain.newest[term]
            chain.row[p] = row
            chain.newest[term] = p


@primitive
def _is_before(heap, i, j):
    """Is entry i worse than entry j?"""
    if heap.scores[i] != heap.scores[j]:
        return heap.scores[i] < heap.scores[j]
    return heap.seqs[i] < heap.seqs[j]


@primitive
def _swap(heap, i, j):
    score, seq = heap.scores[i], heap.seqs[i]
    heap.scores[i], heap.seqs[i] = heap.scores[j], heap.seqs[j]
    heap.scores[j], heap.seqs[j] = score, seq


@primitive
def sink(heap, n):
    """Put the first entry where it belongs."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            return
        if child + 1 < n and _is_before(heap, child + 1, child):
            child += 1
        if not _is_before(heap, child, i):
            return
        _swap(heap, i, child)
        i = child


@primitive
def offer(heap, n, reach, score, seq):
    """Keep the entry if it is among the best `reach`; how many are kept."""
    if n < reach:
        heap.scores[n], heap.seqs[n] = score, seq
        i = n
        while i > 0 and _is_before(heap, i, (i - 1) >> 1):
            _swap(heap, i, (i - 1) >> 1)
            i = (i - 1) >> 1
        return n + 1
    if score > heap.scores[0] or (score == heap.scores[0] and seq > heap.seqs[0]):
        heap.scores[0], heap.seqs[0] = score, seq
        sink(heap, n)
    return n


@primitive
def best_first(heap, n):
    """Sort the heap."""
    for last in range(n - 1, 0, -1):
        _swap(heap, 0, last)
        sink(heap, last)


@primitive
def has_earlier(wants, slot, position, posts, row):
    """Does the message hold a term of the wish before this one? Then it was met there."""
    first, last = posts.term_from[row], posts.term_from[row + 1]
    for i in range(wants.term_from[slot], position):
        first = lower_bound(posts.terms, first, last, wants.terms[i])
        if first == last:
            return False
        if posts.terms[first] == wants.terms[i]:
            return True
    return False


@primitive
def gather(wants, slot, posts, chain, reach, heap, state, space):
    """The best `reach` of the window; how many there are, and how many messages share a term."""
    n, shared, scanned = 0, 0, 0
    low = wants.term_from[slot]
    oldest, following = state[OLDEST] - state[BASE], state[NEXT] - state[BASE]
    for position in range(low, low + wants.term_count[slot]):
        term = wants.terms[position]
        p = chain.newest[term] if term < len(chain.newest) else -1
        while p >= 0:
            row = np.int64(chain.row[p])
            if row < oldest:
                break
            scanned += 1
            if row < following and not has_earlier(wants, slot, position, posts, row):
                score = score_of(wants, slot, posts, row, space)
                shared += 1
                n = offer(heap, n, reach, score, row + state[BASE])
            p = chain.older[p]
    best_first(heap, n)
    state[REFILLS] += 1
    state[SCANNED] += scanned
    state[SCORED] += shared
    return n, shared


@primitive
def covered(k, heap, n, policy, state):
    """How many of the n best the buffer shall cover, by the policy."""
    if policy[KIND] == KMAX:
        return min(n, np.int64(math.ceil(policy[FACTOR] * k)))
    if policy[KIND] == SKYBAND:
        threshold = policy[FACTOR] * heap.scores[k - 1]
        cover = k
        while cover < n and heap.scores[cover] >= threshold:
            cover += 1
        return cover
    return cheapest_cover(k, n, policy[COST] * state[SCANNED] / max(1, state[REFILLS]))


@primitive
def cheapest_cover(k, n, evaluation):
    """The number of messages above the threshold that costs least, Skype equations 9 to 13.

    With r of the window's W messages above it, prob = r / W. Both costs have the factor 1 / W, which is left
    out. The k-skyband of r messages has k * (1 + ln(r / k)) members; equation 9 forgets the 1. `evaluation` is
    the mean cost of a re-evaluation so far. The cost falls and then rises: walk until it rises.
    """
    best, least = k, np.inf
    for r in range(k, n + 1):
        steps = np.float64(r - k + 1)
        walk = 2.0 * steps * r + steps * (steps + 1.0)
        cost = r * (k * (1.0 + math.log(r / k))) + evaluation * r / walk
        if cost > least:
            break
        best, least = r, cost
    return best


@primitive
def fill(buffers, slot, k, heap, n, shared, policy, state):
    """The buffer anew from the n best, of `shared` that share a term."""
    cover = n
    if n > k:
        cover = covered(k, heap, n, policy, state)
    start, room = buffers.start[slot], np.int64(buffers.room[slot])
    dominance = policy[KIND] != KMAX
    size = 0
    for i in range(cover):
        beaten = 0
        if dominance:
            for j in range(start, start + size):
                if buffers.seqs[j] > heap.seqs[i]:
                    beaten += 1
            if beaten >= k:
                continue
        if size == room:
            state[TRIMMED] += 1
            cover = -1
            break
        buffers.scores[start + size] = heap.scores[i]
        buffers.seqs[start + size] = heap.seqs[i]
        buffers.beaten[start + size] = beaten
        size += 1
    buffers.size[slot] = size
    if cover == shared:
        buffers.theta[slot] = ALL
    elif cover < 0:
        buffers.theta[slot] = buffers.scores[start + size - 1]
    else:
        buffers.theta[slot] = heap.scores[cover - 1]


@primitive
def reach_of(k, room, policy):
    """How many messages a refill looks for: those that the policy chooses from."""
    return max(np.int64(room), np.int64(math.ceil(REACH * k))) if policy[KIND] != KMAX else np.int64(room)


REACH = 10.0
"""Times k. A threshold below the 10k-th score would pay only where a re-evaluation costs more than a window."""


@primitive
def refill(wants, buffers, slot, posts, chain, policy, heap, state, space):
    """Skype Algorithm 2, lines 4 to 7."""
    k = np.int64(wants.k[slot])
    reach = reach_of(k, buffers.room[slot], policy)
    n, shared = gather(wants, slot, posts, chain, reach, heap, state, space)
    fill(buffers, slot, k, heap, n, shared, policy, state)


assert NOTHING < 0.0  # a message without a shared term is never above a threshold
