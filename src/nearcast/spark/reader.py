"""Arrow batches to messages with the terms of one lexicon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.columns.encoder import TextEncoder
from nearcast.errors import NearcastError, RowError
from nearcast.files import Row
from nearcast.geo import Space
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Message
from nearcast.records import read_message
from nearcast.spark.edge import Refused, floats, place_names, refused, times
from nearcast.spark.row_kinds import RowKinds, told_apart
from nearcast.text import analyzer


class Posted(NamedTuple):
    """Messages of a batch, with what the batch itself does not know."""

    batch: MessageBatch
    ids: Sequence[Id] | pa.Array
    times: NDArray[np.float64]  # -inf: none given
    rows: NDArray[np.intp]  # where each stood in the Arrow batch


class MessageReader:
    """Arrow batches to messages with the terms of one lexicon. Ordinary rows of columns go by kernels."""

    def __init__(self, lexicon: Lexicon, space: Space) -> None:
        self._lexicon = lexicon
        self._space = space
        self._analyzer = analyzer(lexicon.analyzer)
        self._encoder = TextEncoder(lexicon, space)

    def read(self, batch: pa.RecordBatch) -> tuple[list[Posted], list[tuple[int, Refused]]]:
        """Messages in one or two lots, and the rows that are none, with their numbers."""
        lots = _Lots([], [])
        kinds = told_apart(batch)
        if len(kinds.numbers):
            self._fast(kinds, lots)
        if kinds.odd:
            self._slow(kinds.odd, lots)
        return lots.posted, lots.bad

    def _fast(self, kinds: RowKinds, lots: _Lots) -> None:
        chosen, rows = kinds.ordinary, kinds.numbers
        places = np.stack([floats(chosen[name]) for name in place_names(chosen)], axis=1)
        messages, kept, rejected = self._encoder.encode(chosen["text"], places)
        ids = chosen["id"] if len(kept) == len(chosen) else chosen["id"].take(pa.array(kept))
        lots.posted.append(Posted(messages, ids, times(chosen)[kept], rows[kept]))
        if rejected:
            wrong = kinds.rows_at([r.row for r in rejected])
            for row, (number, reason) in zip(wrong, rejected, strict=True):
                lots.bad.append((int(rows[number]), refused(row, reason)))

    def _slow(self, rows: Iterable[tuple[int, Row]], lots: _Lots) -> None:
        messages: list[Message] = []
        numbers: list[int] = []
        for number, row in rows:
            try:
                if row.record is None:
                    raise RowError(row.reason)
                messages.append(read_message(row.record, self._space, self._analyzer))
                numbers.append(number)
            except NearcastError as error:
                lots.bad.append((number, refused(row, str(error))))
        times = np.array([-np.inf if m.ts is None else m.ts for m in messages])
        sealed = MessageBatch.from_values(messages, self._lexicon, space=self._space)
        lots.posted.append(Posted(sealed, [m.id for m in messages], times, np.array(numbers, np.intp)))


class _Lots(NamedTuple):
    """What a batch was found to hold."""

    posted: list[Posted]
    bad: list[tuple[int, Refused]]
