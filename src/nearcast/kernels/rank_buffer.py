"""The buffer of a wish: its best messages and those that may follow them (Skype sections 6.1 and 6.2).

And the calendar, which says whom an expiry concerns: every slot waits for one message, the oldest of its
buffer, so that an expiry touches no other wish.
"""

from __future__ import annotations

from nearcast.kernels.jit import inlined
from nearcast.kernels.rank_layout import BASE, TRIMMED


@inlined
def wait_for(calendar, slot, seq, base):
    """The slot is looked at when `seq` expires."""
    row = seq - base
    first = calendar.head[row]
    calendar.after[slot] = first
    calendar.before[slot] = -1
    if first >= 0:
        calendar.before[first] = slot
    calendar.head[row] = slot
    calendar.due[slot] = seq


@inlined
def stop_waiting(calendar, slot, base):
    due = calendar.due[slot]
    if due < 0:
        return
    after, before = calendar.after[slot], calendar.before[slot]
    if before >= 0:
        calendar.after[before] = after
    else:
        calendar.head[due - base] = after
    if after >= 0:
        calendar.before[after] = before
    calendar.due[slot] = -1


@inlined
def oldest_of(buffers, slot):
    """The least seq of the buffer; -1 if it is empty."""
    start = buffers.start[slot]
    oldest = -1
    for i in range(start, start + buffers.size[slot]):
        if oldest < 0 or buffers.seqs[i] < oldest:
            oldest = buffers.seqs[i]
    return oldest


@inlined
def insert(buffers, slot, k, dominance, seq, score, state):
    """Take the newest message in. Returns its position, and the seq that it drove out of the first k, or -1.

    Those behind it are beaten once more and go when k newer ones are no worse (Definition 10: they cannot come
    back). When there is no room the last one goes, and the threshold rises to what is kept.
    """
    start, size, room = buffers.start[slot], buffers.size[slot], buffers.room[slot]
    at = start
    while at < start + size and buffers.scores[at] > score:
        at += 1
    position = at - start
    driven = buffers.seqs[start + k - 1] if position < k and size >= k else -1
    held_score, held_seq, held_beaten = score, seq, 0  # what the next place gets
    into = at
    for i in range(at, start + size):
        beaten = buffers.beaten[i] + 1
        if dominance and beaten >= k:
            continue
        next_score, next_seq = buffers.scores[i], buffers.seqs[i]
        buffers.scores[into], buffers.seqs[into], buffers.beaten[into] = held_score, held_seq, held_beaten
        held_score, held_seq, held_beaten = next_score, next_seq, min(beaten, 32767)
        into += 1
    if into < start + room:
        buffers.scores[into], buffers.seqs[into], buffers.beaten[into] = held_score, held_seq, held_beaten
        buffers.size[slot] = into + 1 - start
    else:
        buffers.size[slot] = room
        buffers.theta[slot] = buffers.scores[start + room - 1]
        state[TRIMMED] += 1
    return position, driven


@inlined
def drop_expired(buffers, slot, oldest):
    """Remove what is older than `oldest`; how many went."""
    start = buffers.start[slot]
    into = start
    for i in range(start, start + buffers.size[slot]):
        if buffers.seqs[i] >= oldest:
            buffers.scores[into], buffers.seqs[into] = buffers.scores[i], buffers.seqs[i]
            buffers.beaten[into] = buffers.beaten[i]
            into += 1
    gone = buffers.size[slot] - (into - start)
    buffers.size[slot] = into - start
    return gone


@inlined
def wait_for_oldest(buffers, calendar, slot, state):
    oldest = oldest_of(buffers, slot)
    if oldest >= 0:
        wait_for(calendar, slot, oldest, state[BASE])
