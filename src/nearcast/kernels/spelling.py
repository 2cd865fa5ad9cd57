"""Texts to the words that have no term yet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.folding import DONE, FULL, SLOW, fold
from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.refine import HOLE
from nearcast.kernels.tokens import cut
from nearcast.kernels.wordtable import look_up


class Spelled(NamedTuple):
    """Room for words: word i is data[word_from[i]:word_from[i + 1]]."""

    data: NDArray[np.uint8]  # [capacity]  folded, UTF-8
    word_from: NDArray[np.int64]  # [capacity]


@primitive
def spell(folded, low, high, spelled, n):
    """Write the word folded[low:high] as word n; was there room?"""
    start = spelled.word_from[n]
    end = start + high - low
    if n + 1 == len(spelled.word_from) or end > len(spelled.data):
        return False
    for i in range(high - low):
        spelled.data[start + i] = folded[low + i] & 0xFF
    spelled.word_from[n + 1] = end
    return True


@primitive
def spell_row(texts, row, characters, table, seed, folded, tokens, spelled, n):
    """Write the row's words that have no term behind the n that are there: how many there are, or minus the reason
    why not. Of `tokens` only the runs are used, as scratch."""
    size = fold(texts.data, texts.text_from[row], texts.text_from[row + 1], characters, folded)
    if size < 0:
        return size
    end = cut(folded, size, tokens, 0, 0)
    if end < 0:
        return end
    for i in range(end):
        tokens.positions[i] = tokens.words[i]
    look_up(table, folded, tokens.words[:end], tokens.terms[:end], seed)
    for i in range(end):
        if tokens.words[i] == HOLE:
            if not spell(folded, tokens.positions[i], tokens.terms[i], spelled, n):
                return -FULL
            n += 1
    return n


@kernel
def spell_unknown(texts, row, n, longest, characters, table, seed, folded, tokens, spelled):
    """Write the words without a term of the rows from `row` on behind the n that are there: (row, words, why) of the
    first row that could not be, or (rows, words, DONE). Rows that only the analyzer can read are left out."""
    while row < len(texts.served):
        if texts.served[row] and texts.text_from[row + 1] - texts.text_from[row] <= longest:
            found = spell_row(texts, row, characters, table, seed, folded, tokens, spelled, n)
            if found < 0 and found != -SLOW:
                return row, n, -found
            n = max(n, found)
        row += 1
    return row, n, DONE
