"""An AP-Tree whose subscriptions move and whose nodes hold live messages (VLDBJ'17 4.2).

The *m-list* of a node (a list of `lists`, numbered by its row of the tree) holds tickets of messages that came by: in
leaves, and in inner nodes where a message would have more copies than `limit` (4.2.4). tickets[t] is the row of a
message, or GONE: such tickets are dropped where they are met, and swept when they are many (lazy deletion).
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ap_due import note_change
from nearcast.kernels.ap_layout import (
    BOX,
    DUMMY,
    ENTRY,
    ENTRY_MASK,
    FIRST,
    KEYWORD,
    NOTHING,
    OFFSET,
    PARTS,
    START,
    has_room,
    is_leaf,
    kind_of,
    n_parts_of,
    pack_entry,
    size_of,
    steps_of,
)
from nearcast.kernels.ap_task import NODE, NORTH, WEST
from nearcast.kernels.ap_tree import border_place, first_ending
from nearcast.kernels.ap_update import append, elements_for, route, take_out
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.lists import NO_RUN, TOP, drop_at, give_run, push
from nearcast.kernels.move_layout import differs, has_terms

GONE = -1
TOO_MANY = -1  # children: the message stays where it is

# -- messages into nodes -----------------------------------------------------------------------------------


@primitive
def read_words(rows, row, ranks, words):
    """The keys of a message, ascending; how many."""
    n = 0
    low = np.int64(rows.term_from[row])
    for i in range(low, low + rows.term_count[row]):
        term = rows.terms[i]
        if term < len(ranks) and ranks[term] != NOTHING:
            key, j = np.int64(ranks[term]), n
            while j > 0 and words[j - 1] > key:
                words[j] = words[j - 1]
                j -= 1
            words[j] = key
            n += 1
    return n


@kernel
def sink(tree, ranks, lists, rows, tickets, chosen, first, top, limit, words, stack, targets):
    """Put messages, given by ticket, into the m-lists below node `top`, from chosen[first] on.

    Returns how far it came: less than all where the pool of lists has no room.
    """
    for i in range(first, len(chosen)):
        row = tickets[chosen[i]]
        n_words = read_words(rows, row, ranks, words)
        box = steps_of(rows.boxes, row, tree.frame)
        stack[0] = top
        n, copies = np.int64(1), np.int64(0)
        while n > 0:
            n -= 1
            node = stack[n]
            n_more = np.int64(TOO_MANY)
            if not is_leaf(tree, node):
                n_more = children_of(tree, node, words, n_words, box, stack, n, limit - copies)
            if n_more == TOO_MANY:
                targets[copies] = node
                copies += 1
            else:
                n += n_more
        if not has_room_for(lists, targets, copies):
            return i
        for copy in range(copies):
            push(lists, targets[copy], chosen[i])
    return len(chosen)


@primitive
def has_room_for(lists, targets, n):
    """Whether lists can take one more even if no free run serves."""
    needed = np.int64(0)
    for i in range(n):
        klass, at = np.int64(lists.klass[targets[i]]), targets[i]
        if klass == NO_RUN or lists.length[at] == np.int64(1) << klass:
            needed += np.int64(1) << (klass + 1)
    return lists.state[TOP] + needed <= len(lists.pool)


@primitive
def children_of(tree, node, words, n_words, box, stack, n, most):
    """The parts of an inner node that a message meets, onto the stack: how many, or TOO_MANY.

    The dummy cut of the first offset can only get entries with a keyword that no cut holds: messages without such a
    keyword need not be there.
    """
    start = np.int64(tree.parts[node, START])
    n_more = np.int64(0)
    if kind_of(tree, node) == KEYWORD:
        at, end = start + PARTS, start + PARTS + size_of(tree, node)
        last = np.int64(NOTHING)  # the cut of the word before
        needs_dummy = tree.parts[start, OFFSET] > 0
        for word in range(n_words):
            key = words[word]
            if last != NOTHING and key <= tree.last[last]:
                continue
            at = first_ending(tree.last, at, end, key)
            if at < end and tree.parts[at, FIRST] <= key:
                if n + n_more >= most:
                    return np.int64(TOO_MANY)
                stack[n + n_more] = at
                n_more += 1
                last = at
            else:
                needs_dummy = True
        if needs_dummy:
            if n + n_more >= most:
                return np.int64(TOO_MANY)
            stack[n + n_more] = start + DUMMY
            n_more += 1
        return n_more
    first, size = start + PARTS, size_of(tree, node)
    columns, n_rows = size & 0x3FFF, size >> 14
    ys = first + columns - 1
    x0, x1 = border_place(tree.last, first, columns, box[0]), border_place(tree.last, first, columns, box[2])
    y0, y1 = border_place(tree.last, ys, n_rows, box[1]), border_place(tree.last, ys, n_rows, box[3])
    if n + (x1 - x0 + 1) * (y1 - y0 + 1) >= most:
        return np.int64(TOO_MANY)
    stack[n] = start + DUMMY
    n_more = np.int64(1)
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            stack[n + n_more] = first + y * columns + x
            n_more += 1
    return n_more


@kernel
def collect(tree, lists, node, tickets, stamps, stamp, out, path):
    """Empty all m-lists from a node downwards: the tickets of live messages, each once; how many.

    stamps[ticket] is below `stamp` before. path: int64 [MAX_DEPTH + 2, 2].
    """
    n, depth = np.int64(0), np.int64(0)
    path[0, 0], path[0, 1] = node, 0
    while depth >= 0:
        node, part = path[depth, 0], path[depth, 1]
        if part == 0:
            n = empty_list(lists, node, tickets, stamps, stamp, out, n)
        if not is_leaf(tree, node) and part <= n_parts_of(tree, node):
            path[depth, 1] += 1
            depth += 1
            path[depth, 0], path[depth, 1] = np.int64(tree.parts[node, START]) + DUMMY + part, 0
            continue
        depth -= 1
    return n


@primitive
def empty_list(lists, node, tickets, stamps, stamp, out, n):
    start = lists.start[node]
    for i in range(start, start + lists.length[node]):
        ticket = lists.pool[i]
        if tickets[ticket] != GONE and stamps[ticket] != stamp:
            stamps[ticket] = stamp
            out[n] = ticket
            n += 1
    if lists.klass[node] != NO_RUN:
        give_run(lists, start, np.int64(lists.klass[node]))
    lists.length[node] = 0
    lists.klass[node] = NO_RUN
    return n


@kernel
def sweep(lists, tickets, renumbered):
    """Drop the tickets that are gone from all m-lists, and renumber the others."""
    for at in range(len(lists.length)):
        position = np.int64(lists.length[at]) - 1
        while position >= 0:
            ticket = lists.pool[lists.start[at] + position]
            if tickets[ticket] == GONE:
                drop_at(lists, at, position)
            else:
                lists.pool[lists.start[at] + position] = renumbered[ticket]
            position -= 1


# -- subscriptions that move -------------------------------------------------------------------------------


@primitive
def is_strictly_inside(trail, at, box):
    """Is the region of a node off the border of a box of steps?"""
    return (
        box[0] < trail[at, WEST]
        and box[1] < trail[at, WEST + 1]
        and trail[at, WEST + 2] < box[2]
        and trail[at, NORTH] < box[3]
    )


@primitive
def look_through(lists, node, tickets, entries, entry, sign, old, new, i, rows, out, n):
    """Append messages of an m-list that only the new box has (sign 1) or only the old one; -1 without room."""
    position = np.int64(0)
    while position < lists.length[node]:
        row = np.int64(tickets[lists.pool[lists.start[node] + position]])
        if row == GONE:
            drop_at(lists, node, position)
            continue
        position += 1
        if differs(old, new, i, rows, row) != sign or not has_terms(entries, entry, rows, row):
            continue
        if n == len(out.rows):
            return np.int64(-1)
        out.moves[n], out.rows[n], out.entered[n] = i, row, sign > 0
        n += 1
    return n


@kernel
def differ(tree, plan, entries, keys, lists, tickets, numbers, old, new, first, trail, rows, out, counters):
    """Messages that entries gain and lose, from `first` on: (how far it came, how many); see Algorithm 6.

    Nodes whose region is inside both boxes are left out (case 1). Nodes of the new way give positive updates (cases 3
    and 4), nodes of the old way negative ones (cases 2 and 3); m-lists of inner nodes count as well.
    A `trail` without room gives (-1, i).
    """
    n = np.int64(0)
    for i in range(first, len(numbers)):
        before, entry = n, numbers[i]
        candidates, nodes = counters[CANDIDATES], counters[NODES]
        was, comes = steps_of(old, i, tree.frame), steps_of(new, i, tree.frame)
        for sign in (1, -1):
            box = comes if sign > 0 else was
            if box[0] > box[2]:
                continue
            n_way = route(tree, plan, entries, keys, entry, box, trail, False)
            if n_way == NOTHING:
                return np.int64(NOTHING), before
            for at in range(n_way):
                node = trail[at, NODE]
                if n < 0 or lists.length[node] == 0:
                    continue
                if is_strictly_inside(trail, at, was) and is_strictly_inside(trail, at, comes):
                    continue
                counters[NODES] += 1
                counters[CANDIDATES] += lists.length[node]
                n = look_through(lists, node, tickets, entries, entry, sign, old, new, i, rows, out, n)
        if n < 0:
            counters[CANDIDATES], counters[NODES] = candidates, nodes
            return np.int64(i), before
    return np.int64(len(numbers)), n


@primitive
def place_in(trail, n, node):
    """Row of a node in a trail, or NOTHING."""
    for at in range(n):
        if trail[at, NODE] == node:
            return np.int64(at)
    return np.int64(NOTHING)


@primitive
def rewrite(tree, node, entry, packed):
    """Another box for an entry that stays in its leaf."""
    at = np.int64(tree.parts[node, START])
    while tree.pool[at, ENTRY] & ENTRY_MASK != entry:
        at += 1
    tree.pool[at, BOX] = packed


@kernel
def relocate(tree, plan, entries, keys, chosen, boxes, first, before, after):
    """Entries into other boxes, from `first` on; nodes that are on both ways are not left. How far it came.

    before, after: trails.
    """
    for i in range(first, len(chosen)):
        entry = chosen[i]
        box = steps_of(boxes, i, tree.frame)
        n_before = route(tree, plan, entries, keys, entry, steps_of(entries.boxes, entry, tree.frame), before, False)
        n_after = route(tree, plan, entries, keys, entry, box, after, False)
        if n_before == NOTHING or n_after == NOTHING:
            return i
        needed = elements_for(tree, before, n_before, -1) + elements_for(tree, after, n_after, 1)
        if not has_room(tree, 0, needed):
            return i
        for side in range(4):
            entries.boxes[entry, side] = boxes[i, side]
        for at in range(n_before):
            node = before[at, NODE]
            stays = place_in(after, n_after, node) != NOTHING
            if stays and is_leaf(tree, node):
                rewrite(tree, node, entry, pack_entry(box))
            elif not stays and is_leaf(tree, node):
                take_out(tree, node, entry)
            elif not stays:
                note_change(tree, plan, before, at, -1)
        for at in range(n_after):
            node = after[at, NODE]
            if place_in(before, n_before, node) != NOTHING:
                continue
            if is_leaf(tree, node):
                append(tree, plan, entries, keys, entry, after, at)
            else:
                note_change(tree, plan, after, at, 1)
    return len(chosen)
