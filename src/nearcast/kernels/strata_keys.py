"""Which list an entry of `strata` belongs to, and what its lane says of the other terms.

A lane must settle most messages without leaving it. So it holds up to two other terms themselves; where there
are more, 14-bit marks of the two rarest of them, and where the entry's terms are kept:

    word >= 0   second term | third term << 32                             (the second twice where there is no third)
    word < 0    mark | where, low 18 bits << 14 | mark << 32 | where, high 13 bits << 46 | how many << 59 | sign
                                                                  (how many 0: more than 15, ask the table)

Marks are the low bits of terms, so that those of second and third stand at the same bits in both kinds of word.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.strata_layout import (
    COUNT_SHIFT,
    LANE_TOP,
    MOST_COUNTED,
    SEVERAL,
    THIRD_SHIFT,
    WHERE_BITS,
    WHERE_HIGH_BITS,
    WHERE_HIGH_SHIFT,
    WHERE_LOW_BITS,
    WHERE_SHIFT,
    mark_of,
    packed_entry,
)


@primitive
def weight_of(weights, term):
    """How often a term is expected in messages; one never seen is the rarest."""
    return weights[term] if term < len(weights) else np.int32(0)


@primitive
def rarest_besides(entries, low, count, weights, a, b):
    """The rarest of an entry's terms that is neither a nor b; -1 if there is none."""
    rarest, rare = np.int64(-1), np.int32(0)
    for i in range(low, low + count):
        term = np.int64(entries.terms[i])
        weight = weight_of(weights, term)
        if term != a and term != b and (rarest < 0 or weight < rare):
            rarest, rare = term, weight
    return rarest


@primitive
def where_word(where):
    """Where an entry's terms are, at its bits of a word of marks."""
    high = (where >> WHERE_LOW_BITS) & WHERE_HIGH_BITS
    return (where & WHERE_BITS) << WHERE_SHIFT | high << WHERE_HIGH_SHIFT


@primitive
def others_word(low, count, others, second, third):
    """What a lane says of the terms besides its key: there are `others` of them, second and third the rarest."""
    if others == 1:
        return second | second << THIRD_SHIFT
    if others == 2:
        return second | third << THIRD_SHIFT
    told = count if count <= MOST_COUNTED else np.int64(0)
    return SEVERAL | mark_of(second) | mark_of(third) << THIRD_SHIFT | where_word(low) | told << COUNT_SHIFT


@primitive
def key_and_others(entries, entry, weights):
    """The rarest term of an entry, the next (-1: there is none), and what its lane says of the others."""
    low = np.int64(entries.term_from[entry])
    count = np.int64(entries.term_count[entry])
    if count == 1:
        return np.int64(entries.terms[low]), np.int64(-1), np.int64(0)
    key = rarest_besides(entries, low, count, weights, -1, -1)
    second = rarest_besides(entries, low, count, weights, key, -1)
    third = rarest_besides(entries, low, count, weights, key, second)
    return key, second, others_word(low, count, count - 1, second, third)


@kernel
def describe(entries, numbers, weights, frame, keys, seconds, boxes, others):
    """For each of the numbers: its key and second term, packed box and what is said of other terms."""
    for i in range(len(numbers)):
        entry = numbers[i]
        key, second, others_said = key_and_others(entries, entry, weights)
        keys[i], seconds[i] = key, second
        boxes[i] = packed_entry(entries.boxes, entry, frame)
        others[i] = others_said


@kernel
def arrange_terms(strata, entries, place, terms):
    """The entries' terms in the order of their lanes, so that those which are asked for together lie together."""
    top = np.int64(0)
    for lane in range(strata.state[LANE_TOP]):
        entry = np.int64(strata.entries[lane])
        if entry >= len(place) or place[entry] != lane or entries.term_count[entry] == 0:
            continue
        low = np.int64(entries.term_from[entry])
        for i in range(entries.term_count[entry]):
            terms[top + i] = entries.terms[low + i]
        entries.term_from[entry] = top
        if strata.others[lane] < 0:
            strata.others[lane] = (strata.others[lane] & ~where_word(np.int64(-1))) | where_word(top)
        top += entries.term_count[entry]
    return top


@kernel
def count_terms(entries, numbers, weights, step):
    """Add `step` to the weight of every term of the numbered entries that is in reach; the highest term."""
    highest = np.int64(-1)
    for i in range(len(numbers)):
        low = np.int64(entries.term_from[numbers[i]])
        for j in range(low, low + entries.term_count[numbers[i]]):
            term = np.int64(entries.terms[j])
            if term < len(weights):
                weights[term] += step
            highest = max(highest, term)
    return highest
