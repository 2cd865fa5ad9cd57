"""From raw texts to columns of a window: the fast way to what `PostColumns.from_values` says."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast.columns import MessageBatch
from nearcast.columns.encoder import TextEncoder, TextsLike
from nearcast.columns.places import seal_places
from nearcast.columns.seal import Rejected, take_runs
from nearcast.columns.texts import TextColumn
from nearcast.geo import Space, earth
from nearcast.idf import Idf
from nearcast.kernels.rank_scan import count_words
from nearcast.kernels.refine import HOLE
from nearcast.lexicon import Lexicon
from nearcast.ranking.columns import PostColumns
from nearcast.text import analyzer

Encoded = tuple[PostColumns, NDArray[np.intp], list[Rejected]]
"""The messages, which row each of them was, and the rows left out."""


class PostEncoder:
    """Turns texts and places into messages of a window. Words that are new join the lexicon.

    All of them must: each word of a text counts for its length, and a later wish may ask for it. Texts that kernels
    cannot read are read by the analyzer, if there is a new word in them.
    """

    def __init__(self, lexicon: Lexicon, idf: Idf, space: Space = earth) -> None:
        self._lexicon, self._idf = lexicon, idf
        self._encoder = TextEncoder(lexicon, space)
        self._analyzer = analyzer(lexicon.analyzer)

    def encode(self, texts: TextsLike, places: ArrayLike, ts: NDArray[np.float64]) -> Encoded:
        """Row i is texts[i] at places[i] (lon, lat or a box), posted at ts[i] or, if that is NaN, at no known time."""
        column = TextColumn.of(texts)
        sides = seal_places(places, len(column))
        self._encoder.learn(column)
        batch, kept, rejected = self._encoder.encode(texts, sides)
        boxes = (sides if sides.shape[1] == 4 else np.tile(sides, 2))[kept]
        unread = _with_holes(batch)
        read = self._counted(batch, boxes, ts[kept]).cut(~unread)
        if unread.any():
            rows = np.flatnonzero(unread)
            words = [self._analyzer.words(column.value(row)) for row in kept[rows].tolist()]
            others = PostColumns.from_words(boxes[rows], ts[kept[rows]], words, self._lexicon, self._idf)
            read = PostColumns.joined([read, others]).take(np.argsort(np.argsort(unread, kind="stable")))
        return read, kept, rejected

    def _counted(self, batch: MessageBatch, boxes: NDArray[np.float64], ts: NDArray[np.float64]) -> PostColumns:
        """With the terms that kernels found, and how often each was written."""
        term_from, terms = batch.term_from, batch.terms
        if batch.message is not None:  # a place of several boxes has its terms as often
            first = np.flatnonzero(np.diff(batch.message, prepend=-1))
            term_from, terms = take_runs(term_from, terms, first)
        assert batch.order is not None
        times = np.zeros(len(terms))
        count_words(batch.order.word_from, batch.order.words, term_from, terms, times)
        return PostColumns.from_flat(boxes, term_from, terms, self._idf, ts, times)


def _with_holes(batch: MessageBatch) -> NDArray[np.bool_]:
    """Messages with a word that has no term."""
    assert batch.order is not None
    holes = np.flatnonzero(batch.order.words == HOLE)
    found = np.zeros(len(batch), np.bool_)
    found[np.searchsorted(batch.order.word_from, holes, side="right") - 1] = True
    return found
