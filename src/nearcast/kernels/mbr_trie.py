"""Probing the MBRTrie: Algorithm 1, MBRTRIE-FILTER and SelectPair (CIKM'15 3.2, 3.3, Figure 3)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.layout import CANDIDATES, NODES
from nearcast.kernels.primitives import lower_bound, overlaps
from nearcast.kernels.token_trie import COUNT, FIRST, LEAF, NONE, ROOT

PROBE_TOKENS, PROBE_TRIE, PROBE_COST = 0, 1, 2  # ProbeTokenSet, ProbeTrie, and the cheaper one by node
NODE, GIVEN, CURSOR, PLACE, BY_TRIE = range(5)  # columns of a frame; GIVEN is |T_n|
N_FRAME = 5
FULL = -1  # instead of a number found: there is no room
BY_TOKEN, BY_CHILD = 2, 3  # work: nodes whose children were found by ProbeTrie, by ProbeTokenSet
N_WORK = 4


class Scratch(NamedTuple):
    """What a walk over the trie writes on."""

    tokens: NDArray[np.int32]  # [longest message]  its tokens, ascending
    frames: NDArray[np.int64]  # [height + 1, N_FRAME]  the path from the root
    work: NDArray[np.int64]  # [N_WORK]  of one row: CANDIDATES, NODES, BY_TOKEN, BY_CHILD


def scratch(longest: int, height: int) -> Scratch:
    return Scratch(
        np.empty(longest, dtype=np.int32),
        np.empty((height + 1, N_FRAME), dtype=np.int64),
        np.zeros(N_WORK, dtype=np.int64),
    )


@primitive
def steps(n):
    """The papers' log n: steps of a binary search, finite for n = 0 and above 0 for n = 1."""
    return math.log2(n + 1.0)


@primitive
def sorted_tokens(key_of, rows, row, tokens):
    """The message's tokens that some subscription has, ascending; how many (Shell's sort)."""
    n = 0
    for i in range(rows.term_from[row], rows.term_from[row + 1]):
        if rows.terms[i] < len(key_of) and key_of[rows.terms[i]] != NONE:
            tokens[n] = key_of[rows.terms[i]]
            n += 1
    gap = n
    while gap > 1:
        gap = 1 if gap < 5 else gap * 5 // 11
        for i in range(gap, n):
            token, at = tokens[i], i
            while at >= gap and tokens[at - gap] > token:
                tokens[at] = tokens[at - gap]
                at -= gap
            tokens[at] = token
    return n


@primitive
def open_frame(trie, frames, depth, node, given, probe):
    """Begin with the children of a node; tokens[:given] may follow it. Says which way they are found."""
    count = trie.links[node, COUNT]
    by_trie = probe == PROBE_TRIE
    if probe == PROBE_COST:
        by_trie = given * steps(count) < count * steps(given)
    frames[depth, NODE] = node
    frames[depth, GIVEN] = given
    frames[depth, CURSOR] = 0
    frames[depth, PLACE] = trie.links[node, FIRST]
    frames[depth, BY_TRIE] = by_trie
    return by_trie


@primitive
def next_pair(trie, frames, depth, tokens, rows, row):
    """The next candidate pair <child, |T_child|> of a frame, or (NONE, 0): SelectPair as a cursor."""
    node, given = frames[depth, NODE], frames[depth, GIVEN]
    first = np.int64(trie.links[node, FIRST])
    end = first + trie.links[node, COUNT]
    while frames[depth, BY_TRIE] and frames[depth, CURSOR] < given:
        at = frames[depth, CURSOR]
        child = np.int64(lower_bound(trie.token, frames[depth, PLACE], end, tokens[at]))
        frames[depth, PLACE] = child
        frames[depth, CURSOR] = given if child == end else at + 1
        if child < end and trie.token[child] == tokens[at] and overlaps(trie.box, child, rows.boxes, row):
            return child, at
    while not frames[depth, BY_TRIE] and frames[depth, CURSOR] < end - first and given > 0:
        child = first + frames[depth, CURSOR]
        frames[depth, CURSOR] += 1
        if overlaps(trie.box, child, rows.boxes, row):
            at = np.int64(lower_bound(tokens, 0, given, trie.token[child]))
            if at < given and tokens[at] == trie.token[child]:
                return child, at
    return np.int64(NONE), np.int64(0)


@primitive
def report_leaf(lists, leaf, entries, rows, row, found, n_found):
    """MBRTRIE-VERIFY of one leaf: the path has proven the terms, boxes remain (CIKM'15 3.2, Step 2)."""
    start, count = lists.start[leaf], lists.length[leaf]
    for position in range(start, start + count):
        entry = lists.pool[position]
        if overlaps(entries.boxes, entry, rows.boxes, row):
            if n_found == len(found.rows):
                return FULL
            found.rows[n_found] = row
            found.entries[n_found] = entry
            n_found += 1
    return n_found


@primitive
def match_row(trie, lists, entries, rows, row, given, how, scratch, found, n_found):
    """Algorithm 1 for one message with `given` sorted tokens; the new number found, or FULL."""
    tokens, frames, work = scratch
    if trie.links[ROOT, COUNT] == 0 or not overlaps(trie.box, ROOT, rows.boxes, row):
        return n_found
    depth = 0
    work[BY_TOKEN if open_frame(trie, frames, 0, ROOT, given, how) else BY_CHILD] += 1
    while depth >= 0:
        child, rest = next_pair(trie, frames, depth, tokens, rows, row)
        if child == NONE:
            depth -= 1
            continue
        work[NODES] += 1
        leaf = trie.links[child, LEAF]
        if leaf != NONE:
            work[CANDIDATES] += lists.length[leaf]
            n_found = report_leaf(lists, leaf, entries, rows, row, found, n_found)
            if n_found == FULL:
                return n_found
        if trie.links[child, COUNT] > 0 and rest > 0:
            depth += 1
            work[BY_TOKEN if open_frame(trie, frames, depth, child, rest, how) else BY_CHILD] += 1
    return n_found


@kernel
def probe(trie, lists, key_of, entries, rows, how, scratch, first_row, found, counters, tally):
    """All pairs from first_row on; (next row, number found). A row is written whole or not at all."""
    n_found = 0
    for row in range(first_row, len(rows.boxes)):
        scratch.work[:] = 0
        given = sorted_tokens(key_of, rows, row, scratch.tokens)
        after = match_row(trie, lists, entries, rows, row, given, how, scratch, found, n_found)
        if after == FULL:
            return row, n_found
        n_found = after
        counters[CANDIDATES] += scratch.work[CANDIDATES]
        counters[NODES] += scratch.work[NODES]
        tally += scratch.work
    return len(rows.boxes), n_found
