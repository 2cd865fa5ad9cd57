"""Words and their terms: dense integers that kernels work on, with message frequencies.

Terms are given in order of first sight and never change or vanish, so that columns written with an older
lexicon stay readable with a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import ColumnsError

UNKNOWN = -1
"""The term of a word that the lexicon does not hold."""

_ANALYZER_KEY = b"nearcast.analyzer"
_MESSAGES_KEY = b"nearcast.messages"


class Lexicon:
    """Word to term and back, how many messages held each word, and which analyzer made the words."""

    def __init__(self, analyzer: str = "unicode") -> None:
        self.analyzer = analyzer
        self.messages = 0
        self._terms: dict[str, int] = {}
        self._words: list[str] = []
        self._frequencies: NDArray[np.int64] = np.zeros(16, np.int64)  # [capacity >= len(self)]

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._terms

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lexicon):
            return NotImplemented
        return (
            self.analyzer == other.analyzer
            and self.messages == other.messages
            and self._words == other._words
            and np.array_equal(self.frequencies, other.frequencies)
        )

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return f"Lexicon({self.analyzer!r}: {len(self)} words, {self.messages} messages)"

    def intern(self, word: str) -> int:
        """The word's term; a new word gets the next one."""
        term = self._terms.setdefault(word, len(self._words))
        if term == len(self._words):
            self._words.append(word)
        return term

    def intern_all(self, words: Iterable[str]) -> list[int]:
        return [self.intern(word) for word in words]

    def term(self, word: str) -> int:
        """The word's term, or `UNKNOWN`."""
        return self._terms.get(word, UNKNOWN)

    def terms(self, words: Iterable[str]) -> list[int]:
        known = self._terms
        return [known.get(word, UNKNOWN) for word in words]

    def word(self, term: int) -> str:
        if not 0 <= term < len(self._words):
            raise ColumnsError(f"term {term} is not in the lexicon, which holds 0 to {len(self) - 1}")
        return self._words[term]

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """[len(self)] How many messages held each term.

        A view, so that asking costs nothing: it follows `count` until new words outgrow its memory. Copy it
        to keep it, and do not write to it.
        """
        if len(self._frequencies) < len(self):
            grown = np.zeros(max(len(self), 2 * len(self._frequencies)), np.int64)
            grown[: len(self._frequencies)] = self._frequencies
            self._frequencies = grown
        return self._frequencies[: len(self)]

    def count(self, terms: NDArray[np.int32], messages: int) -> None:
        """Note these messages: each listed term was in one more message, once per listing.

        `terms` is the messages' rows one after the other, distinct within a row; no `UNKNOWN` in it.
        """
        if messages < 0:
            raise ColumnsError(f"{messages} messages cannot be counted; 0 or more can")
        if len(terms):
            self._check(terms, lowest=0)
        np.add.at(self.frequencies, terms, 1)
        self.messages += messages

    def idf(self, terms: NDArray[np.int32] | None = None) -> NDArray[np.float64]:
        """How much each term says: ln(1 + messages / frequency), for all terms or for the given ones.

        Always above 0, so that a word that every message holds still counts in a cosine. A frequency or a
        number of messages of 0 is taken as 1: a word never seen (`UNKNOWN` too) weighs as one seen once, and
        with nothing counted yet all words weigh the same.
        """
        frequencies = self.frequencies
        if terms is not None:
            if len(terms):
                self._check(terms, lowest=UNKNOWN)
            frequencies = np.append(frequencies, 0)[terms]  # UNKNOWN reads the 0 at the end
        return np.log1p(max(self.messages, 1) / np.maximum(frequencies, 1).astype(np.float64))

    def to_arrow(self) -> pa.Table:
        """Row i is term i: `word` string, `frequency` int64; analyzer and messages in the metadata."""
        columns = {
            "word": pa.array(self._words, pa.string()),
            "frequency": pa.array(self.frequencies, pa.int64()),
        }
        metadata = {_ANALYZER_KEY: self.analyzer.encode(), _MESSAGES_KEY: str(self.messages).encode()}
        return pa.table(columns).replace_schema_metadata(metadata)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Lexicon:
        """The lexicon that `to_arrow` wrote."""
        metadata: dict[bytes, bytes] = table.schema.metadata or {}
        if not {_ANALYZER_KEY, _MESSAGES_KEY} <= metadata.keys():
            raise ColumnsError("a lexicon's table names its analyzer and messages in its metadata; this has none")
        lexicon = cls(metadata[_ANALYZER_KEY].decode())
        lexicon.messages = int(metadata[_MESSAGES_KEY])
        lexicon.intern_all(_column(table, "word", pa.string()).to_pylist())
        if len(lexicon) != table.num_rows:
            raise ColumnsError(f"{table.num_rows} rows hold only {len(lexicon)} words; each word has one row")
        lexicon._frequencies = _column(table, "frequency", pa.int64()).to_numpy().copy()
        return lexicon

    def _check(self, terms: NDArray[np.int32], lowest: int) -> None:
        least, most = int(np.min(terms)), int(np.max(terms))
        if least < lowest or most >= len(self):
            raise ColumnsError(f"terms {least} to {most} came; {lowest} to {len(self) - 1} are in the lexicon")


def _column(table: pa.Table, name: str, kind: Any) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise ColumnsError(f"a lexicon's table has a column {name!r}; this one has {table.column_names}")
    column = table[name].cast(kind)
    if column.null_count:
        raise ColumnsError(f"column {name!r} of a lexicon's table has {column.null_count} nulls; none are allowed")
    return column
