"""The words of texts that a lexicon does not have, found by kernels; and the room in which kernels find words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.characters import CharacterTable
from nearcast.columns.texts import TextColumn
from nearcast.columns.wordtable import LexiconTable
from nearcast.kernels.folding import BEHIND, DONE, LONG, UNREAD
from nearcast.kernels.spelling import Spelled, spell_unknown
from nearcast.kernels.tokens import Texts, Tokens

FIRST_WORDS = 1024


def unknown_words(column: TextColumn, characters: CharacterTable, table: LexiconTable, longest: int) -> list[str]:
    """In their order, each as often as it stands there. Texts of more bytes than `longest`, and those that only the
    analyzer can read, are left out."""
    texts = Texts(column.data, column.text_from, ~column.odd)
    most = int(np.diff(texts.text_from).max(initial=0))
    tokens, folded = room_for(0, most), scratch(most)
    spelled = Spelled(np.empty(len(texts.data) + 1, np.uint8), np.zeros(FIRST_WORDS, np.int64))
    row, n = 0, 0
    while True:
        row, n, why = spell_unknown(
            texts, row, n, longest, characters.arrays, table.arrays, table.seed, folded, tokens, spelled
        )
        if why == DONE:
            return _words(spelled, n)
        if why == UNREAD:
            characters.read(column.readable(row))
        elif why == LONG:
            folded = scratch(2 * len(folded))
        else:
            tokens, spelled = doubled(tokens), _doubled(spelled)


def _doubled(spelled: Spelled) -> Spelled:
    data, word_from = spelled
    return Spelled(np.resize(data, 2 * len(data)), np.resize(word_from, 2 * len(word_from)))


def _words(spelled: Spelled, n: int) -> list[str]:
    data, starts = spelled.data.tobytes(), spelled.word_from[: n + 1].tolist()
    return [data[low:high].decode() for low, high in pairwise(starts)]


def room_for(rows: int, words: int) -> Tokens:
    starts = np.zeros((2, rows + 1), np.int64)
    runs = np.empty((3, words), np.int32)
    return Tokens(starts[0], runs[0], runs[1], starts[1], runs[2])


def doubled(tokens: Tokens) -> Tokens:
    words, positions, terms = (
        np.resize(run, 2 * len(run) + 2) for run in (tokens.words, tokens.positions, tokens.terms)
    )
    return tokens._replace(words=words, positions=positions, terms=terms)


def scratch(size: int) -> NDArray[np.uint16]:
    """For a folded text of this many bytes and what may be read behind it."""
    return np.zeros(size + BEHIND, np.uint16)
