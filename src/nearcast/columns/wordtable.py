"""The lexicon as a hash table for kernels, kept in step with it."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.wordtable import CHUNK, EMPTY, WordTable, add_words, move_words
from nearcast.lexicon import Lexicon

LEAST_SLOTS = 8


class LexiconTable:
    """Follows a lexicon, whose words are only ever added; `arrays` is what kernels work on.

    At most half of the slots are in use, so that a word is found in one or two steps. The seed changes which
    words meet in a slot, never an answer: a service that takes words from strangers chooses its own.
    """

    def __init__(self, lexicon: Lexicon, seed: int = 0) -> None:
        self.seed = seed & 0x7FFFFFFF
        self.arrays = WordTable(_slots(LEAST_SLOTS), np.empty(0, np.int64))
        self._lexicon = lexicon
        self._words = 0  # how many are in the table
        self._top = 0  # chunks in use

    def follow(self) -> None:
        """Enter the words that the lexicon got since the last call."""
        first, last = self._words, len(self._lexicon)
        if first == last:
            return
        # Half a surrogate pair, which no text can hold, must not stop the words after it.
        words = [self._lexicon.word(term).encode("utf-8", "surrogatepass") for term in range(first, last)]
        data = np.frombuffer(b"".join([*words, bytes(CHUNK)]), np.uint8).copy()
        word_from = np.fromiter(accumulate(map(len, words), initial=0), np.int64, len(words) + 1)
        self._make_room(last, self._top + len(data) // CHUNK)
        self._top = add_words(self.arrays, data, word_from, first, self._top, self.seed)
        self._words = last

    def _make_room(self, words: int, chunks: int) -> None:
        if 2 * words > len(self.arrays.slots):
            slots = _slots(1 << (2 * words - 1).bit_length())
            move_words(self.arrays, slots, self.seed)
            self.arrays = self.arrays._replace(slots=slots)
        if chunks > len(self.arrays.chunks):
            larger = np.zeros(chunks + chunks // 2, np.int64)
            larger[: self._top] = self.arrays.chunks[: self._top]
            self.arrays = self.arrays._replace(chunks=larger)


def _slots(capacity: int) -> NDArray[np.int64]:
    return np.full((capacity, 2), EMPTY, np.int64)
