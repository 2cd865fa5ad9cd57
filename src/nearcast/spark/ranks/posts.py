"""Rows of messages to columns of a window, on the driver: ordinary rows by kernels, the others one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import NearcastError, RowError
from nearcast.idf import Idf
from nearcast.lexicon import Lexicon
from nearcast.model import Message
from nearcast.ranking import PostColumns
from nearcast.ranking.encoder import PostEncoder
from nearcast.records import read_message
from nearcast.spark.edge import Refused, floats, place_names, refused, times
from nearcast.spark.ranks.ids import id_array
from nearcast.spark.ranks.plan import RankSettings
from nearcast.spark.row_kinds import RowKinds, told_apart
from nearcast.spark.storage import IdKind
from nearcast.text import analyzer

NO_TIME = "ts: nothing given; a window of seconds needs the time of every message"


@dataclass(frozen=True, slots=True)
class Posts:
    """Messages that were read and have no numbers yet."""

    columns: PostColumns
    ids: pa.Array

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def from_values(cls, messages: Sequence[Message], lexicon: Lexicon, idf: Idf, kind: IdKind) -> Posts:
        columns = PostColumns.from_values(messages, lexicon, idf)
        return cls(columns, id_array([message.id for message in messages], kind))

    @classmethod
    def joined(cls, parts: Sequence[Posts], kind: IdKind) -> Posts:
        """One after the other."""
        columns = PostColumns.joined([part.columns for part in parts])
        return cls(columns, pa.concat_arrays([id_array([], kind), *(part.ids for part in parts)]))

    def take(self, rows: NDArray[np.intp]) -> Posts:
        """These rows, in this order."""
        return Posts(self.columns.take(rows), self.ids.take(pa.array(rows)))


class PostReader:
    """Arrow batches to messages in their order. Words that are new join the lexicon."""

    def __init__(self, settings: RankSettings, lexicon: Lexicon, idf: Idf) -> None:
        self._settings, self._lexicon, self._idf = settings, lexicon, idf
        self._encoder = PostEncoder(lexicon, idf, settings.space)
        self._analyzer = analyzer(settings.analyzer)
        self._needs_time = settings.window.seconds is not None

    def read(self, batches: Iterable[pa.RecordBatch]) -> tuple[Posts, list[Refused]]:
        """Messages, and the rows that are none with the reason why."""
        posts: list[Posts] = []
        bad: list[Refused] = []
        for batch in batches:
            found, wrong = self._read(batch)
            posts.append(found)
            bad += wrong
        return Posts.joined(posts, self._settings.message_ids), bad

    def _read(self, batch: pa.RecordBatch) -> tuple[Posts, list[Refused]]:
        kinds = told_apart(batch)
        lots = [self._fast(kinds)] * bool(len(kinds.numbers)) + [self._slow(kinds)] * bool(kinds.odd)
        posts = Posts.joined([lot.posts for lot in lots], self._settings.message_ids)
        if len(lots) > 1:
            posts = posts.take(np.argsort(np.concatenate([lot.numbers for lot in lots])))
        bad = {number: row for lot in lots for number, row in lot.bad.items()}
        return posts, [bad[number] for number in sorted(bad)]

    def _fast(self, kinds: RowKinds) -> _Lot:
        rows = kinds.ordinary
        places = np.stack([floats(rows[name]) for name in place_names(rows)], axis=1)
        ts = times(rows)
        ts[ts == -np.inf] = np.nan
        columns, kept, rejected = self._encoder.encode(rows["text"], places, ts)
        posts = Posts(columns, id_array(rows["id"], self._settings.message_ids).take(pa.array(kept)))
        reasons = dict(rejected)
        if self._needs_time:
            timed = ~np.isnan(columns.ts)
            reasons |= dict.fromkeys(kept[~timed].tolist(), NO_TIME)
            posts, kept = posts.take(np.flatnonzero(timed)), kept[timed]
        wrong = kinds.rows_at(list(reasons)) if reasons else ()
        bad = {int(kinds.numbers[at]): refused(row, why) for row, (at, why) in zip(wrong, reasons.items(), strict=True)}
        return _Lot(posts, kinds.numbers[kept], bad)

    def _slow(self, kinds: RowKinds) -> _Lot:
        messages: list[Message] = []
        numbers: list[int] = []
        bad: dict[int, Refused] = {}
        for number, row in kinds.odd:
            try:
                if row.record is None:
                    raise RowError(row.reason)
                message = read_message(row.record, self._settings.space, self._analyzer)
                if self._needs_time and message.ts is None:
                    raise RowError(NO_TIME)
                messages.append(message)
                numbers.append(number)
            except NearcastError as error:
                bad[number] = refused(row, str(error))
        posts = Posts.from_values(messages, self._lexicon, self._idf, self._settings.message_ids)
        return _Lot(posts, np.array(numbers, np.intp), bad)


@dataclass(frozen=True, slots=True)
class _Lot:
    """What became of some rows of a batch."""

    posts: Posts
    numbers: NDArray[np.intp]  # of the messages: where each stood
    bad: dict[int, Refused]  # by where it stood
