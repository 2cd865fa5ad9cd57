"""From raw texts to a sealed batch: the fast way to what `read_message` and `from_values` say.

Kernels do the ordinary rows, some forty times faster than one by one. Whatever they are not made for (a
place that needs several boxes, characters that act on their neighbours, a row that may be wrong) is read by
`read_message` itself, so that the answer and the reason for a rejection are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from nearcast.columns.characters import CharacterTable
from nearcast.columns.messages import MessageBatch
from nearcast.columns.places import are_ordinary, seal_places, with_boxes
from nearcast.columns.seal import Rejected
from nearcast.columns.texts import TextColumn
from nearcast.columns.unknown import doubled, room_for, scratch, unknown_words
from nearcast.columns.wordtable import LexiconTable
from nearcast.errors import NearcastError
from nearcast.geo import Box, Space, earth
from nearcast.kernels.folding import DONE, FULL, LONG, UNREAD
from nearcast.kernels.refine import WordOrder
from nearcast.kernels.tokens import Texts, Tokens, tokenise
from nearcast.lexicon import Lexicon
from nearcast.model import Message
from nearcast.records import MAX_TEXT, read_message
from nearcast.text import Analyzer, TextTokens, Token, analyzer

BYTES_PER_WORD = 3
"""Of text. Room for words at first: enough for Han, plenty where words have spaces between them."""

COMPILED = "unicode"
"""The analyzer that kernels know. With those that stem, every row is read by `read_message`."""

FEW = 5
"""Messages. Fewer are read by the analyzer in less time than it takes to call the kernels."""

TextsLike: TypeAlias = Sequence[str] | Sequence[bytes] | pa.Array | pa.ChunkedArray
"""Bytes are UTF-8."""

Encoded = tuple[MessageBatch, NDArray[np.intp], list[Rejected]]
"""The batch, which row each of its messages was, and the rows left out."""


class TextEncoder:
    """Turns texts and places into batches, with the terms of one lexicon.

    The lexicon may grow between calls. Like a hub, an encoder serves one thread at a time. A call costs some
    50 microseconds before its first row, as much as the analyzer takes for one short text: give it many.
    """

    def __init__(self, lexicon: Lexicon, space: Space = earth, *, seed: int = 0) -> None:
        self.lexicon = lexicon
        self.space = space
        self._analyzer = analyzer(lexicon.analyzer)
        self._characters = CharacterTable()
        self._table = LexiconTable(lexicon, seed)

    def encode(self, texts: TextsLike, places: ArrayLike) -> Encoded:
        """Row i is texts[i] at places[i]: lon, lat ([n, 2]) or west, south, east, north ([n, 4]).

        Raises ColumnsError only if texts and places are no columns of the same length.
        """
        column = TextColumn.of(texts)
        rows = _Rows(column, seal_places(places, len(column)), self.space, self._analyzer)
        boxes = rows.read_odd_ones()
        tokens = self._tokens(rows)
        rows.reject_blank_ones(np.flatnonzero(np.diff(tokens.word_from) == 0))
        kept = np.flatnonzero(rows.served())
        rejected = [Rejected(row, rows.rejected[row]) for row in sorted(rows.rejected)]
        return _batch(tokens, rows.places, kept, boxes), kept, rejected

    def learn(self, texts: TextColumn) -> None:
        """Words that the lexicon does not have join it, but for those of texts that only the analyzer can read."""
        if self.lexicon.analyzer == COMPILED:
            self._table.follow()
            self.lexicon.intern_all(unknown_words(texts, self._characters, self._table, MAX_TEXT))

    def from_values(self, messages: Sequence[Message]) -> MessageBatch:
        """What `MessageBatch.from_values` gives, by kernels where all words are those of texts not read yet."""
        if len(messages) >= FEW and all(map(self._can_read, messages)):
            places = [(m.place.west, m.place.south, m.place.east, m.place.north) for m in messages]
            batch, _, rejected = self.encode([m.text or "" for m in messages], places)
            if not rejected:
                return batch
        return MessageBatch.from_values(messages, self.lexicon, space=self.space)

    def _can_read(self, message: Message) -> bool:
        words = message.tokens
        return isinstance(words, TextTokens) and words.text is message.text and words.analyzer.name == COMPILED

    def _tokens(self, rows: _Rows) -> Tokens:
        """The words of all rows, none for those rejected before or now."""
        self._table.follow()
        texts = Texts(rows.column.data, rows.column.text_from, rows.served())
        tokens = room_for(len(rows.column), len(texts.data) // BYTES_PER_WORD)
        folded = scratch(int(np.diff(texts.text_from).max(initial=0)))
        longest = MAX_TEXT if self.lexicon.analyzer == COMPILED else -1
        row, table, seed = 0, self._table.arrays, self._table.seed
        while True:
            row, why = tokenise(texts, row, longest, self._characters.arrays, table, seed, folded, tokens)
            if why == DONE:
                return tokens
            if why == FULL:
                tokens = doubled(tokens)
            elif why == LONG:
                folded = scratch(2 * len(folded))
            elif why == UNREAD:
                self._characters.read(rows.column.readable(row))
            else:
                message = rows.read(row)
                tokens = self._written(row, message.tokens if message else (), tokens)
                row += 1

    def _written(self, row: int, words: Sequence[Token], tokens: Tokens) -> Tokens:
        """Room in which the row, done by the analyzer, stands behind the rows before it."""
        terms = self.lexicon.terms([token.word for token in words])
        distinct = sorted({term for term in terms if term >= 0})
        low, high = int(tokens.word_from[row]), int(tokens.term_from[row])
        while low + len(terms) > len(tokens.words):
            tokens = doubled(tokens)
        tokens.words[low : low + len(terms)] = terms
        tokens.positions[low : low + len(terms)] = [token.position for token in words]
        tokens.terms[high : high + len(distinct)] = distinct
        tokens.word_from[row + 1] = low + len(terms)
        tokens.term_from[row + 1] = high + len(distinct)
        return tokens


def from_texts(texts: TextsLike, places: ArrayLike, lexicon: Lexicon, *, space: Space = earth) -> Encoded:
    """One batch from texts and places. For many batches keep a `TextEncoder`: it knows the lexicon by then."""
    return TextEncoder(lexicon, space).encode(texts, places)


class _Rows:
    """The rows of one call, and why some of them are rejected."""

    def __init__(self, column: TextColumn, places: NDArray[np.float64], space: Space, analysis: Analyzer) -> None:
        self.column = column
        self.places = places if places.shape[1] == 4 else np.tile(places, 2)
        self.rejected: dict[int, str] = {}
        self._names = ("lon", "lat") if places.shape[1] == 2 else ("west", "south", "east", "north")
        self._space = space
        self._analysis = analysis

    def read(self, row: int) -> Message | None:
        """The row as `read_message` has it; None if it is rejected."""
        sides = dict(zip(self._names, self.places[row].tolist(), strict=False))  # a point needs the first two
        try:
            record = {"id": row, "text": self.column.value(row), **sides}
            return read_message(record, self._space, self._analysis)
        except NearcastError as error:
            self.rejected[row] = str(error)
            return None

    def read_odd_ones(self) -> dict[int, tuple[Box, ...]]:
        """Read the rows that are no text or have no ordinary place; the boxes of the good ones among them."""
        odd = np.flatnonzero(self.column.odd | ~are_ordinary(self.places, self._space)).tolist()
        read = {row: self.read(row) for row in odd}
        return {row: self._space.place_boxes(message.place) for row, message in read.items() if message}

    def reject_blank_ones(self, wordless: NDArray[np.intp]) -> None:
        """Signs alone are a legal text without words; white space is not."""
        for row in wordless.tolist():
            if row not in self.rejected and not self.column.value(row).strip():
                self.read(row)

    def served(self) -> NDArray[np.bool_]:
        served = np.ones(len(self.column), np.bool_)
        served[list(self.rejected)] = False
        return served


def _batch(
    tokens: Tokens, places: NDArray[np.float64], kept: NDArray[np.intp], boxes: dict[int, tuple[Box, ...]]
) -> MessageBatch:
    """The kept rows. The others own no words, so that only their starts must go."""
    word_from = np.append(tokens.word_from[:-1][kept], tokens.word_from[-1])
    term_from = np.append(tokens.term_from[:-1][kept], tokens.term_from[-1])
    words, positions = (run[: word_from[-1]].copy() for run in (tokens.words, tokens.positions))
    terms = tokens.terms[: term_from[-1]].copy()
    order = WordOrder(word_from, words, positions)
    batch = MessageBatch(places[kept], term_from, terms, None, len(kept), order)
    return with_boxes(batch, np.searchsorted(kept, list(boxes)), list(boxes.values())) if boxes else batch
