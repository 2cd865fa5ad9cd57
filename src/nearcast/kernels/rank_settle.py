"""One step after the other: what arrives goes into buffers, what expires leaves them, changes come out.

A probe has found who may want which row (`Candidates`), with the thresholds that were valid at the start of
the batch. Thresholds only rise by arrivals, so nobody is missed; a wish that was refilled since has a lower
one, so it is *fresh*: it meets every later row of the batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import inlined, kernel, prefetch
from nearcast.kernels.rank_buffer import drop_expired, insert, stop_waiting, wait_for, wait_for_oldest
from nearcast.kernels.rank_layout import (
    ALL,
    BASE,
    BATCH,
    CANDIDATE,
    COUNT,
    EXPIRED,
    FRESH,
    INSERTED,
    LAST_ROW,
    N_FRESH,
    N_MOVED,
    N_OUT,
    NEVER,
    NEXT,
    NOW,
    OLDEST,
    ROW,
    SECONDS,
    SWEPT,
    TO_NET,
    TOUCHED,
    score_of,
)
from nearcast.kernels.rank_refill import KIND, KMAX, refill


class Out(NamedTuple):
    """Room for changes. `steps` is the row of the batch that caused the change."""

    steps: NDArray[np.int32]
    slots: NDArray[np.int32]
    seqs: NDArray[np.int32]
    entered: NDArray[np.bool_]
    scores: NDArray[np.float64]


class Notes(NamedTuple):
    """What a batch remembers of slots."""

    fresh: NDArray[np.int32]  # [most fresh]
    fresh_in: NDArray[np.int64]  # [n]  number of the batch in which the slot was refilled
    changed_in: NDArray[np.int64]  # [n]  seq of the arrival that changed the slot's ranking last
    moved: NDArray[np.int32]  # [n]  slots whose threshold changed
    known: NDArray[np.float64]  # [n]  the threshold that the index knows


@inlined
def _tell(out, state, slot, seq, entered, score):
    i = state[N_OUT]
    out.steps[i] = max(state[ROW], 0)
    out.slots[i] = slot
    out.seqs[i] = seq
    out.entered[i] = entered
    out.scores[i] = score
    state[N_OUT] = i + 1


@inlined
def _note_threshold(buffers, notes, slot, state):
    if buffers.theta[slot] != notes.known[slot]:
        notes.known[slot] = buffers.theta[slot]
        notes.moved[state[N_MOVED]] = slot
        state[N_MOVED] += 1


@inlined
def _take(wants, buffers, calendar, slot, score, dominance, notes, out, state):
    """The arriving message goes into the slot's buffer."""
    k, seq = np.int64(wants.k[slot]), state[NEXT]
    was_empty = buffers.size[slot] == 0
    leaving = np.int64(buffers.start[slot]) + k - 1
    leaving_score = buffers.scores[leaving] if buffers.size[slot] >= k else 0.0
    position, driven = insert(buffers, slot, k, dominance, seq, score, state)
    state[INSERTED] += 1
    if was_empty:
        wait_for(calendar, slot, seq, state[BASE])
    if position < k:
        notes.changed_in[slot] = seq
        _tell(out, state, slot, seq, True, score)
        if driven >= 0:
            _tell(out, state, slot, driven, False, leaving_score)
    _note_threshold(buffers, notes, slot, state)


@inlined
def _sweep(wants, buffers, calendar, posts, finder, policy, notes, out, state, space, slot):
    """What expired leaves the slot's buffer; what moves up enters, from the window if need be."""
    k, start, oldest = np.int64(wants.k[slot]), buffers.start[slot], state[OLDEST]
    top = min(k, np.int64(buffers.size[slot]))
    state[TOUCHED] += 1
    before = state[N_OUT]
    for i in range(start, start + top):
        if buffers.seqs[i] < oldest:
            _tell(out, state, slot, buffers.seqs[i], False, buffers.scores[i])
    staying = top - (state[N_OUT] - before)
    drop_expired(buffers, slot, oldest)
    if buffers.size[slot] < k and buffers.theta[slot] != ALL:
        refill(wants, buffers, slot, posts, finder, policy, state, space)
        if notes.fresh_in[slot] != state[BATCH]:
            notes.fresh_in[slot] = state[BATCH]
            notes.fresh[state[N_FRESH]] = slot
            state[N_FRESH] += 1
        _note_threshold(buffers, notes, slot, state)
    for i in range(start + staying, start + min(k, np.int64(buffers.size[slot]))):
        _tell(out, state, slot, buffers.seqs[i], True, buffers.scores[i])
    if state[N_OUT] > before and notes.changed_in[slot] == state[NEXT] - 1:
        state[TO_NET] = 1
    wait_for_oldest(buffers, calendar, slot, state)


@inlined
def _move_window(posts, state, space):
    """Which messages are outside now."""
    if state[COUNT] > 0:
        state[OLDEST] = max(state[OLDEST], state[NEXT] - state[COUNT])
        return
    while state[OLDEST] < state[NEXT] and posts.ts[state[OLDEST] - state[BASE]] <= space[NOW] - space[SECONDS]:
        state[OLDEST] += 1


@inlined
def _ask_for_slot(wants, buffers, notes, slot):
    """What is kept by slot will be needed soon."""
    prefetch(buffers.start, slot)
    prefetch(buffers.size, slot)
    prefetch(buffers.room, slot)
    prefetch(buffers.theta, slot)
    prefetch(wants.k, slot)
    prefetch(notes.fresh_in, slot)
    prefetch(notes.changed_in, slot)
    prefetch(notes.known, slot)


@inlined
def _ask_for_buffer(buffers, slot):
    """The slot's buffer will be needed soon: scores have two cache lines for 16 entries, seqs one."""
    start, size = buffers.start[slot], buffers.size[slot]
    prefetch(buffers.beaten, start)
    for i in range(start, start + size, 8):
        prefetch(buffers.scores, i)
    for i in range(start, start + size, 16):
        prefetch(buffers.seqs, i)


AHEAD = 8  # candidates that memory is asked for before they are looked at


@inlined
def _look_ahead(wants, buffers, notes, found, n_found, at):
    if at + 2 * AHEAD < n_found:
        _ask_for_slot(wants, buffers, notes, np.int64(found.slots[at + 2 * AHEAD]))
    if at + AHEAD < n_found:
        _ask_for_buffer(buffers, np.int64(found.slots[at + AHEAD]))


@inlined
def _ask_for_leaving(wants, buffers, calendar, notes, at):
    """Row `at` expires soon, then the next one."""
    slot = np.int64(calendar.head[at])
    while slot >= 0:
        _ask_for_buffer(buffers, slot)
        slot = np.int64(calendar.after[slot])
    if at + 1 < len(calendar.head):
        slot = np.int64(calendar.head[at + 1])
        while slot >= 0:
            _ask_for_slot(wants, buffers, notes, slot)
            prefetch(calendar.before, slot)
            prefetch(calendar.due, slot)
            slot = np.int64(calendar.after[slot])


@inlined
def _arrive(wants, buffers, calendar, posts, found, n_found, policy, notes, out, state, space):
    """The next row of the batch. False: no room for its changes; call again, it goes on where it stopped."""
    row, dominance = state[ROW], policy[KIND] != KMAX
    post = state[NEXT] - state[BASE]
    while state[CANDIDATE] < n_found and found.rows[state[CANDIDATE]] == row:
        if state[N_OUT] + 2 > len(out.steps) or state[N_MOVED] == len(notes.moved):
            return False
        _look_ahead(wants, buffers, notes, found, n_found, state[CANDIDATE])
        slot, score = np.int64(found.slots[state[CANDIDATE]]), found.scores[state[CANDIDATE]]
        if score >= buffers.theta[slot] and notes.fresh_in[slot] != state[BATCH]:
            _take(wants, buffers, calendar, slot, score, dominance, notes, out, state)
        state[CANDIDATE] += 1
    while state[FRESH] < state[N_FRESH]:
        if state[N_OUT] + 2 > len(out.steps) or state[N_MOVED] == len(notes.moved):
            return False
        slot = np.int64(notes.fresh[state[FRESH]])
        score = score_of(wants, slot, posts, post, space)
        if score >= 0.0 and score >= buffers.theta[slot]:
            _take(wants, buffers, calendar, slot, score, dominance, notes, out, state)
        state[FRESH] += 1
    state[FRESH] = 0
    state[NEXT] += 1
    if state[COUNT] == 0:
        space[NOW] = max(space[NOW], posts.ts[post])
    return True


@kernel
def settle(wants, buffers, calendar, posts, finder, found, n_found, policy, notes, out, state, space):
    """Rows state[ROW] to state[LAST_ROW] arrive; all that is outside the window afterwards expires.

    Returns True when all is done; False when changes or moved slots must be taken, or when there are so many
    fresh slots that a new probe is better. state[ROW] then says which row comes next.
    """
    while True:
        _move_window(posts, state, space)
        while state[SWEPT] < state[OLDEST]:
            at = state[SWEPT] - state[BASE]
            _ask_for_leaving(wants, buffers, calendar, notes, at)
            while calendar.head[at] >= 0:
                slot = np.int64(calendar.head[at])
                full = state[N_OUT] + 2 * np.int64(wants.k[slot]) > len(out.steps)
                if full or state[N_MOVED] == len(notes.moved) or state[N_FRESH] == len(notes.fresh):
                    return False
                stop_waiting(calendar, slot, state[BASE])
                _sweep(wants, buffers, calendar, posts, finder, policy, notes, out, state, space, slot)
            state[SWEPT] += 1
            state[EXPIRED] += 1
        if state[ROW] >= 0 and state[CANDIDATE] < 0:
            state[ROW] += 1  # the row has arrived and everything after it is swept
            state[CANDIDATE] = -state[CANDIDATE] - 1
        if state[ROW] == state[LAST_ROW]:
            return True
        if 2 * state[N_FRESH] > len(notes.fresh):
            return False
        if not _arrive(wants, buffers, calendar, posts, found, n_found, policy, notes, out, state, space):
            return False
        state[CANDIDATE] = -state[CANDIDATE] - 1  # marks the step that goes on until the next row


@kernel
def begin(wants, buffers, calendar, posts, finder, slots, policy, notes, state, space):
    """First results of new wishes, from the window."""
    for i in range(len(slots)):
        slot = np.int64(slots[i])
        refill(wants, buffers, slot, posts, finder, policy, state, space)
        notes.known[slot] = buffers.theta[slot]
        notes.changed_in[slot] = -1
        wait_for_oldest(buffers, calendar, slot, state)


@kernel
def forget(buffers, calendar, slots, notes, state):
    for i in range(len(slots)):
        slot = np.int64(slots[i])
        stop_waiting(calendar, slot, state[BASE])
        buffers.size[slot] = 0
        buffers.theta[slot] = NEVER
        notes.known[slot] = NEVER


@kernel
def pass_over(posts, n, state, space):
    """The next n rows arrive and nobody is told; all buffers are empty."""
    for _ in range(n):
        if state[COUNT] == 0:
            space[NOW] = max(space[NOW], posts.ts[state[NEXT] - state[BASE]])
        state[NEXT] += 1
    before = state[OLDEST]
    _move_window(posts, state, space)
    state[EXPIRED] += state[OLDEST] - before
    state[SWEPT] = state[OLDEST]
