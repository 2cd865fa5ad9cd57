"""Messages as sealed columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from nearcast.columns.seal import (
    Rejected,
    bad_boxes,
    bad_runs,
    flat_from_arrow,
    flat_to_arrow,
    read_rows,
    refuse,
    seal_boxes,
    seal_runs,
    take_runs,
)
from nearcast.geo import Space, earth
from nearcast.kernels.layout import Rows
from nearcast.kernels.refine import WordOrder
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Message
from nearcast.records import read_message
from nearcast.text import Analyzer, analyzer

NOT_A_BOX = "not a closed box: finite numbers with west <= east and south <= north needed"
NOT_ASCENDING = "terms must be 0 or more, ascending and distinct"


@dataclass(frozen=True, slots=True, eq=False)
class MessageBatch:
    """Messages as columns. Row i owns terms[term_from[i]:term_from[i + 1]].

    A message has one row, or several where its place has several coordinates (a box across the 180th
    meridian, a pole): then `message` says which rows belong together.
    """

    boxes: NDArray[np.float64]  # [n, 4]   west, south, east, north; a point has west == east
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [*]      ascending and distinct within a row
    message: NDArray[np.int32] | None = None  # [n]  ascending; None: row i is message i
    count: int = -1  # number of messages
    order: WordOrder | None = None  # words in text order, for phrases

    def __post_init__(self) -> None:
        if self.count < 0:
            object.__setattr__(self, "count", len(self.boxes))

    def __len__(self) -> int:
        return self.count

    @property
    def rows(self) -> Rows:
        """What kernels read."""
        return Rows(self.boxes, self.term_from, self.terms)

    def terms_once(self) -> NDArray[np.int32]:
        """The terms of all messages, those of a message with several rows once: for counting."""
        if self.message is None:
            return self.terms
        first = np.flatnonzero(np.diff(self.message, prepend=-1))
        return take_runs(self.term_from, self.terms, first)[1]

    @classmethod
    def from_flat(cls, boxes: ArrayLike, term_from: ArrayLike, terms: ArrayLike) -> MessageBatch:
        """From arrays that are laid out already; raises ColumnsError at the first row that is not."""
        sealed = seal_boxes(boxes)
        run_from, run = seal_runs(term_from, terms, len(sealed), "terms")
        refuse(bad_boxes(sealed), NOT_A_BOX)
        refuse(bad_runs(run_from, run), NOT_ASCENDING)
        return cls(sealed, run_from, run)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> tuple[MessageBatch, NDArray[np.intp], list[Rejected]]:
        """From columns `terms` (integers) and `lon, lat` or a box: the batch, its rows, the rejected ones."""
        boxes, run_from, run, rows, rejected = flat_from_arrow(
            table,
            [
                (NOT_A_BOX, lambda b, _f, _t: bad_boxes(b)),
                (NOT_ASCENDING, lambda _b, f, t: bad_runs(f, t)),
            ],
        )
        return cls.from_flat(boxes, run_from, run), rows, rejected

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        lexicon: Lexicon,
        *,
        space: Space = earth,
        analysis: Analyzer | None = None,
    ) -> tuple[MessageBatch, list[Id], list[Rejected]]:
        """From rows such as a file has: the batch, the ids of its messages, the rejected rows."""
        chosen = analysis or analyzer(lexicon.analyzer)
        values, rejected = read_rows(records, lambda record: read_message(record, space, chosen))
        return cls.from_values(values, lexicon, space=space), [m.id for m in values], rejected

    @classmethod
    def from_values(cls, messages: Sequence[Message], lexicon: Lexicon, *, space: Space = earth) -> MessageBatch:
        """From messages that were checked. Words outside the lexicon can match nothing and get no term."""
        sides: list[tuple[float, float, float, float]] = []
        owners: list[int] = []
        counts: list[int] = []
        terms: list[int] = []
        words: list[int] = []
        positions: list[int] = []
        word_from = [0]
        for number, message in enumerate(messages):
            in_order = lexicon.terms([token.word for token in message.tokens])
            words += in_order
            positions += [token.position for token in message.tokens]
            word_from.append(len(words))
            distinct = sorted({term for term in in_order if term >= 0})
            for part in space.place_boxes(message.place):
                sides.append((part.west, part.south, part.east, part.north))
                owners.append(number)
                counts.append(len(distinct))
                terms += distinct
        plain = len(owners) == len(messages)
        return cls(
            np.array(sides, dtype=np.float64).reshape(-1, 4),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.array(terms, dtype=np.int32),
            None if plain else np.array(owners, dtype=np.int32),
            len(messages),
            WordOrder(
                np.array(word_from, dtype=np.int64),
                np.array(words, dtype=np.int32),
                np.array(positions, dtype=np.int32),
            ),
        )

    def to_arrow(self) -> pa.Table:
        """One line a row, as `from_arrow` reads it."""
        return flat_to_arrow(self.boxes, self.term_from, self.terms)
