"""A table of tokens for each tree node: KDD'13 3.2, "the hash table of n's TokenSet".

Each node owns a run of the pool as an open-addressing table with linear probing, at most two thirds full. Beside a
token stands a value: how many index entries below the node have it (`rt`), or who (`node_lists`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive
from nearcast.kernels.lists import NO_RUN, Lists, give_run, take_run
from nearcast.kernels.sieve import sifted

EMPTY = -1  # a place of a table without a token
NO_PLACE = -1
_PLACES_A_TERM = 4  # of a table that are read in the time in which one term is looked up in it
NOTHING = 0  # value of a token that was just seated
_FACTOR = 2654435769  # 2**32 / golden ratio; times a token below 2**31 it fits int64
_LOW_32 = 0xFFFFFFFF


class Tables(NamedTuple):
    sets: Lists  # by node: count tokens in a run of 2**klass places of the pool, each a token or EMPTY
    values: NDArray[np.int32]  # [len(sets.pool) or more]  beside each token


@primitive
def home(token, klass):
    """Where in a table of 2**klass places a token would like to stand."""
    return ((np.int64(token) * _FACTOR) & _LOW_32) >> (32 - klass)


@primitive
def find_in(pool, start, klass, token):
    """The place of a token in the table that starts there, or NO_PLACE."""
    at, mask = home(token, klass), (np.int64(1) << klass) - 1
    while True:
        held = pool[start + at]
        if held == token:
            return start + at
        if held == EMPTY:
            return np.int64(NO_PLACE)
        at = (at + 1) & mask


@primitive
def find(tables, node, token):
    """The place of a token of a node in the pool, or NO_PLACE."""
    klass = np.int64(tables.sets.klass[node])
    if klass == NO_RUN:
        return np.int64(NO_PLACE)
    return find_in(tables.sets.pool, tables.sets.start[node], klass, token)


@primitive
def _settle(tables, start, klass, token, value):
    """Put a token that is not there into a run that has a free place; its place."""
    at, mask = home(token, klass), (np.int64(1) << klass) - 1
    while tables.sets.pool[start + at] != EMPTY:
        at = (at + 1) & mask
    tables.sets.pool[start + at] = token
    tables.values[start + at] = value
    return start + at


@primitive
def reserve(tables, node, more):
    """Make the table large enough for `more` new tokens. False, with nothing changed, if the pool is full."""
    old, tokens = np.int64(tables.sets.klass[node]), np.int64(tables.sets.length[node]) + more
    klass = max(old, np.int64(1))
    while np.int64(2) << klass < 3 * tokens:
        klass += 1
    if klass == old:
        return True
    run = take_run(tables.sets, klass)
    if run == NO_RUN:
        return False
    for at in range(run, run + (np.int64(1) << klass)):
        tables.sets.pool[at] = EMPTY
    if old != NO_RUN:
        start = tables.sets.start[node]
        for at in range(start, start + (np.int64(1) << old)):
            if tables.sets.pool[at] != EMPTY:
                _settle(tables, run, klass, tables.sets.pool[at], tables.values[at])
        give_run(tables.sets, start, old)
    tables.sets.start[node] = run
    tables.sets.klass[node] = klass
    return True


@primitive
def seat(tables, node, token):
    """The place of a token, new with value NOTHING if it was not there; NO_PLACE if the pool is full."""
    place = find(tables, node, token)
    if place != NO_PLACE:
        return place
    if not reserve(tables, node, 1):
        return np.int64(NO_PLACE)
    tables.sets.length[node] += 1
    return _settle(tables, tables.sets.start[node], np.int64(tables.sets.klass[node]), token, NOTHING)


@primitive
def clear(tables, node):
    """Forget all tokens of a node and give its run back."""
    if tables.sets.klass[node] != NO_RUN:
        give_run(tables.sets, tables.sets.start[node], np.int64(tables.sets.klass[node]))
    tables.sets.klass[node] = NO_RUN
    tables.sets.length[node] = 0


@primitive
def unseat(tables, node, place):
    """Remove the token at a place; tokens behind it that stood away from home move up."""
    tables.sets.length[node] -= 1
    if tables.sets.length[node] == 0:
        clear(tables, node)
        return
    klass, start = np.int64(tables.sets.klass[node]), tables.sets.start[node]
    mask = (np.int64(1) << klass) - 1
    hole = place - start
    at = (hole + 1) & mask
    while tables.sets.pool[start + at] != EMPTY:
        token = tables.sets.pool[start + at]
        if (at - home(token, klass)) & mask >= (at - hole) & mask:
            tables.sets.pool[start + hole] = token
            tables.values[start + hole] = tables.values[start + at]
            hole = at
        at = (at + 1) & mask
    tables.sets.pool[start + hole] = EMPTY


@primitive
def run_of(tables, node):
    """(first, end) of a node's places in the pool; equal when it has no token."""
    if tables.sets.klass[node] == NO_RUN:
        return np.int64(0), np.int64(0)
    start = tables.sets.start[node]
    return start, start + (np.int64(1) << np.int64(tables.sets.klass[node]))


@primitive
def is_smaller(klass, n):
    """Is it cheaper to ask for each token of a table of 2**klass places than for each of n terms?"""
    return (np.int64(1) << klass) < n * _PLACES_A_TERM


@primitive
def shares_token(tables, node, sieve, terms, low, high):
    """The token filter: does the ascending run terms[low:high], for which the sieve is set, have one of the node?"""
    klass = np.int64(tables.sets.klass[node])
    if klass == NO_RUN:
        return False
    pool, start = tables.sets.pool, tables.sets.start[node]
    if is_smaller(klass, high - low):
        for at in range(start, start + (np.int64(1) << klass)):
            if pool[at] != EMPTY and sifted(sieve, terms, low, high, pool[at]):
                return True
        return False
    for i in range(low, high):
        if find_in(pool, start, klass, terms[i]) != NO_PLACE:
            return True
    return False


@primitive
def values_of(tables, node, sieve, terms, low, high, values):
    """Fill `values` with those beside the tokens of a node that are in terms[low:high]; how many.

    A long message is asked for the tokens of the node, a short one asks the node for its terms.
    """
    klass = np.int64(tables.sets.klass[node])
    if klass == NO_RUN:
        return 0
    pool, start, n = tables.sets.pool, tables.sets.start[node], 0
    if is_smaller(klass, high - low):
        for at in range(start, start + (np.int64(1) << klass)):
            if pool[at] != EMPTY and sifted(sieve, terms, low, high, pool[at]):
                values[n] = tables.values[at]
                n += 1
        return n
    for i in range(low, high):
        place = find_in(pool, start, klass, terms[i])
        if place != NO_PLACE:
            values[n] = tables.values[place]
            n += 1
    return n
