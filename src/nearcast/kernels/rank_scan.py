"""Every wish against every row: the baseline and second reference."""

from __future__ import annotations

import math

from nearcast.kernels.jit import kernel
from nearcast.kernels.rank_layout import score_of


@kernel
def probe_all(wants, theta, posts, first_post, row, last_row, room, space):
    """Who takes the rows from `row` on: the next row (less than last_row if there is no room), and how many."""
    n = 0
    while row < last_row:
        before = n
        for slot in range(len(wants.k)):
            if wants.term_count[slot] == 0:
                continue
            score = score_of(wants, slot, posts, first_post + row, space)
            if score >= 0.0 and score >= theta[slot]:
                if n == len(room.rows):
                    return row, before
                room.rows[n], room.slots[n], room.scores[n] = row, slot, score
                n += 1
        row += 1
    return row, n


@kernel
def unit_length(term_from, weights):
    """Divide every run by its length; a run of zeros stays. One sum, in order, as the reference has it."""
    for i in range(len(term_from) - 1):
        total = 0.0
        for p in range(term_from[i], term_from[i + 1]):
            total += weights[p] * weights[p]
        length = math.sqrt(total)
        if length > 0.0:
            for p in range(term_from[i], term_from[i + 1]):
                weights[p] /= length


@kernel
def count_words(word_from, words, term_from, terms, times):
    """Add to `times`, by term of a row, how often it is among the row's words; words of no term are left out."""
    for row in range(len(term_from) - 1):
        for at in range(word_from[row], word_from[row + 1]):
            low, high = term_from[row], term_from[row + 1]
            while low < high:
                middle = (low + high) // 2
                if terms[middle] < words[at]:
                    low = middle + 1
                else:
                    high = middle
            if low < term_from[row + 1] and terms[low] == words[at]:
                times[low] += 1.0
