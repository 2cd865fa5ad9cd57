"""Re-evaluation: the best messages of the window for one wish, and how many of them to keep (Skype section 6).

Messages are found on shelves (`rank_shelf`), the latest ones through `Chain`, which links the postings of a term,
newest first. The policy decides how many the buffer covers, that is, its threshold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.rank_heap import Heap, best_first, offer
from nearcast.kernels.rank_layout import (
    ALL,
    BASE,
    NEXT,
    NOTHING,
    OLDEST,
    REFILLS,
    SCANNED,
    SCORED,
    SHELVED,
    TRIMMED,
    score_of,
)
from nearcast.kernels.rank_shelf import Desk, Shelves, search

KMAX, SKYBAND, CSKYBAND = 0, 1, 2
"""Policies: the best kmax (Yi et al.); all within a ratio of the k-th score, without those that cannot come
back (Mouratidis et al.); the same with a threshold chosen by cost (Skype section 6.2)."""

# Positions in `policy`. The unit of costs is touching an entry of a buffer.
KIND = 0
FACTOR = 1  # kmax / k, or the ratio to the k-th score
SCAN_COST = 2  # of a comparison of a search
SCORE_COST = 3  # of an exact score
TOUCH_COST = 4  # of finding a buffer, however long it is
EVALUATION = 5  # mean cost of the latest re-evaluations
EVALUATED = 6  # how many of them there were
EXPIRY_SHARE = 7  # of expiries in all arrivals and expiries of late; in a count window a half
N_POLICY = 8

REACH = 10.0
"""Times k. A threshold below the 10k-th score would pay only where a re-evaluation costs more than a window."""

SKYBAND_REACH = 6.0
"""Times k: the k-skyband of 6k messages has 56 members for k = 20, as in table 4 of the paper."""

REMEMBERED = 1000.0  # re-evaluations that the mean cost is of


class Chain(NamedTuple):
    """Postings of the window by term, each leading to the next older one. Posting p is posts.terms[p]."""

    newest: NDArray[np.int64]  # [n_terms]  posting or -1
    older: NDArray[np.int64]  # [postings]
    row: NDArray[np.int32]  # [postings]  whose it is


class Finder(NamedTuple):
    """What a re-evaluation works with."""

    chain: Chain
    shelves: Shelves
    desk: Desk
    heap: Heap


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
def _follow(wants, slot, posts, chain, heap, n, most, state, space):
    """Offer the messages of the window that are on no shelf."""
    low = wants.term_from[slot]
    oldest, following = max(state[OLDEST], state[SHELVED]) - state[BASE], state[NEXT] - state[BASE]
    for position in range(low, low + wants.term_count[slot]):
        term = wants.terms[position]
        p = chain.newest[term] if term < len(chain.newest) else -1
        while p >= 0:
            row = np.int64(chain.row[p])
            if row < oldest:
                break
            state[SCANNED] += 1
            if row < following and not has_earlier(wants, slot, position, posts, row):
                state[SCORED] += 1
                n = offer(heap, n, most, score_of(wants, slot, posts, row, space), row + state[BASE])
            p = chain.older[p]
    return n


@primitive
def gather(wants, slot, posts, finder, most, policy, state, space):
    """The best `most` of the window, best first; how many there are."""
    scanned, scored = state[SCANNED], state[SCORED]
    n = search(wants, slot, posts, finder.shelves, finder.desk, finder.heap, 0, most, state, space)
    n = _follow(wants, slot, posts, finder.chain, finder.heap, n, most, state, space)
    best_first(finder.heap, n)
    state[REFILLS] += 1
    if n >= wants.k[slot]:
        cost = policy[SCAN_COST] * (state[SCANNED] - scanned) + policy[SCORE_COST] * (state[SCORED] - scored)
        policy[EVALUATED] += 1.0
        policy[EVALUATION] += (cost - policy[EVALUATION]) / min(policy[EVALUATED], REMEMBERED)
    return n


@primitive
def steps_to_the_cliff(away, width, rise):
    """Mean number of falls and rises, times the chance of a fall, until a walk has come down `away` steps.

    `width` steps above the cliff it is thrown back, as in equation 12; `rise` is the chance of a rise in units of
    that of a fall, 1 where nothing is known (equation 11), else as section 6.3 has it.
    """
    if abs(rise - 1.0) < 1e-3:
        return away * width - away * (away - 1.0) / 2.0
    power = rise ** (width - away + 1.0)
    return (away - power * (1.0 - rise**away) / (1.0 - rise)) / (1.0 - rise)


@primitive
def cheapest_cover(k, most, policy):
    """The number of messages above the threshold that costs least, Skype equations 9 to 13.

    With r of the window's W messages above it, prob = r / W. All costs have the factor 1 / W, which is left
    out. The k-skyband of r messages has k * (1 + ln(r / k)) members; equation 9 forgets the 1. The cost falls and
    then rises: walk until it rises.
    """
    falls = policy[EXPIRY_SHARE]
    rise = (1.0 - falls) / falls
    best, least = k, np.inf
    for r in range(k, most + 1):
        steps = steps_to_the_cliff(r - k + 1.0, 2.0 * r - k + 1.0, rise)
        kept = k * (1.0 + math.log(r / k))
        cost = r * (policy[TOUCH_COST] + kept) + policy[EVALUATION] * falls * r / steps
        if cost > least:
            break
        best, least = r, cost
    return best


@primitive
def sought(k, room, policy):
    """How many messages a refill looks for: those that the policy covers or chooses from."""
    if policy[KIND] == CSKYBAND:
        return np.int64(cheapest_cover(k, np.int64(math.ceil(REACH * k)), policy))
    if policy[KIND] == KMAX:
        return max(k, min(np.int64(room), np.int64(math.ceil(policy[FACTOR] * k))))
    return max(np.int64(room), np.int64(math.ceil(SKYBAND_REACH * k)))


@primitive
def covered(k, heap, n, policy):
    """How many of the n best the buffer shall cover."""
    if policy[KIND] != SKYBAND or n <= k:
        return n
    threshold = policy[FACTOR] * heap.scores[k - 1]
    cover = k
    while cover < n and heap.scores[cover] >= threshold:
        cover += 1
    return cover


@primitive
def fill(buffers, slot, k, heap, n, most, policy, state):
    """The buffer anew from the n best; fewer than `most` are all that share a term."""
    cover = covered(k, heap, n, policy)
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
    if cover == n and n < most:
        buffers.theta[slot] = ALL
    elif cover < 0:
        buffers.theta[slot] = buffers.scores[start + size - 1]
    else:
        buffers.theta[slot] = heap.scores[cover - 1]


@primitive
def refill(wants, buffers, slot, posts, finder, policy, state, space):
    """Skype Algorithm 2, lines 4 to 7."""
    k = np.int64(wants.k[slot])
    most = sought(k, buffers.room[slot], policy)
    n = gather(wants, slot, posts, finder, most, policy, state, space)
    fill(buffers, slot, k, finder.heap, n, most, policy, state)


assert NOTHING < 0.0  # a message without a shared term is never above a threshold


@kernel
def gather_all(wants, posts, finder, most, policy, state, space, into):
    """Row i of `into`: the best messages of slot i, best first, then -1."""
    for slot in range(len(wants.k)):
        n = gather(wants, slot, posts, finder, most, policy, state, space)
        for i in range(most):
            into[slot, i] = finder.heap.seqs[i] if i < n else -1
