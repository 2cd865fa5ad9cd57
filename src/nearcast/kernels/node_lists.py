"""Inverted lists in tree nodes: for each token of a node, a list of numbers (KDD'13 5.1, and IR-tree).

Most lists have one member. It stands in the token's value itself, as ~number; a positive value names a list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.lists import NO_RUN, Lists, drop_at, give_run, take_run
from nearcast.kernels.lists import push as push_run
from nearcast.kernels.node_tokens import EMPTY, NO_PLACE, NOTHING, Tables, clear, find, run_of, seat, unseat

NO_LIST = 0  # number of no list: a value of 0 is NOTHING
FREE_LIST, NEXT_LIST, SHORT = range(3)  # index in `state`
SHORT_OF_PLACES, SHORT_OF_LISTS, SHORT_OF_POOL = range(3)  # what a push that failed had no room in


class NodeLists(NamedTuple):
    tables: Tables  # by node: token to value
    lists: Lists  # from 1 on; a free list has the next free one in `start`
    state: NDArray[np.int64]  # [3]  first free list or NO_LIST; first list never used; SHORT_OF_ …


class Scratch(NamedTuple):
    """Working room of a walk, made by the caller."""

    stack: NDArray[np.int64]  # [height × (B + 1)]  nodes still to be visited
    lists: NDArray[np.int64]  # [terms of the longest row]  values of the tokens that node and row share
    sieve: NDArray[np.bool_]  # [SIEVE]


@primitive
def _pair(inverted, one, other):
    """A list of two numbers, or NO_LIST if there is no room."""
    lists, state = inverted.lists, inverted.state
    at = state[FREE_LIST]
    if at == NO_LIST and state[NEXT_LIST] == len(lists.start):
        state[SHORT] = SHORT_OF_LISTS
        return np.int64(NO_LIST)
    run = take_run(lists, 1)
    if run == NO_RUN:
        state[SHORT] = SHORT_OF_POOL
        return np.int64(NO_LIST)
    if at != NO_LIST:
        state[FREE_LIST] = lists.start[at]
    else:
        at = state[NEXT_LIST]
        state[NEXT_LIST] = at + 1
    lists.start[at], lists.klass[at], lists.length[at] = run, 1, 2
    lists.pool[run], lists.pool[run + 1] = one, other
    return at


@primitive
def _free_list(inverted, at):
    give_run(inverted.lists, inverted.lists.start[at], np.int64(inverted.lists.klass[at]))
    inverted.lists.klass[at] = NO_RUN
    inverted.lists.length[at] = 0
    inverted.lists.start[at] = inverted.state[FREE_LIST]
    inverted.state[FREE_LIST] = at


@primitive
def push(inverted, node, token, number):
    """Append a number to a token's list in a node. False, with nothing changed, if there is no room."""
    place = seat(inverted.tables, node, token)
    if place == NO_PLACE:
        inverted.state[SHORT] = SHORT_OF_PLACES
        return False
    held = np.int64(inverted.tables.values[place])
    if held == NOTHING:
        inverted.tables.values[place] = ~number
    elif held < 0:
        at = _pair(inverted, ~held, number)
        if at == NO_LIST:
            return False
        inverted.tables.values[place] = at
    elif not push_run(inverted.lists, held, number):
        inverted.state[SHORT] = SHORT_OF_POOL
        return False
    return True


@primitive
def drop(inverted, node, token, number):
    """Remove a number from a token's list in a node, if it is there. True when the node lacks the token."""
    place = find(inverted.tables, node, token)
    if place == NO_PLACE:
        return True
    held = np.int64(inverted.tables.values[place])
    if held < 0:
        if ~held != number:
            return False
        unseat(inverted.tables, node, place)
        return True
    start = inverted.lists.start[held]
    for i in range(inverted.lists.length[held]):
        if inverted.lists.pool[start + i] == number:
            drop_at(inverted.lists, held, i)
            break
    if inverted.lists.length[held] == 1:
        inverted.tables.values[place] = ~inverted.lists.pool[start]
        _free_list(inverted, held)
    return False


@primitive
def clear_lists(inverted, node):
    """Forget all tokens and lists of a node."""
    first, end = run_of(inverted.tables, node)
    for place in range(first, end):
        if inverted.tables.sets.pool[place] != EMPTY and inverted.tables.values[place] > 0:
            _free_list(inverted, np.int64(inverted.tables.values[place]))
    clear(inverted.tables, node)


@kernel
def empty(inverted, node):
    clear_lists(inverted, node)


@primitive
def length(inverted, value):
    """How many numbers a token's value stands for."""
    return np.int64(1) if value < 0 else np.int64(inverted.lists.length[value])


@primitive
def member(inverted, value, i):
    """Number i of those that a token's value stands for."""
    return ~value if value < 0 else np.int64(inverted.lists.pool[inverted.lists.start[value] + i])
