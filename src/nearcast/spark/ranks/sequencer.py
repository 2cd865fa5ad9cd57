"""Gives messages and wishes their numbers, in one order that holds for all shards and for every repetition.

The first try of a batch decides: what it wrote is found by later ones. The segment is written last: without it
nothing was decided, and whatever else is there is written again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from nearcast import snapshot
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Message, Wish
from nearcast.ranking import PostColumns, WishColumns
from nearcast.spark.edge import Refused
from nearcast.spark.ranks.plan import RankPlan
from nearcast.spark.ranks.truth import Segment, Truth, WishChange, discard
from nearcast.spark.storage import texts_from_arrays, texts_to_arrays


class Sequencer:
    """On the driver: one at a time for a folder."""

    def __init__(self, truth: Truth, plan: RankPlan, words: Sequence[str] = ()) -> None:
        self._truth, self._plan = truth, plan
        self._settings = plan.settings
        self._lexicon = Lexicon(plan.settings.analyzer)
        self._lexicon.intern_all(words)
        self._numbers: dict[Id, int] = {}  # of live wishes
        self._next_wish = 0
        self._next_message = 0
        self._now = -math.inf
        self.late = 0
        self.taken: set[str] = set()  # names of inbox files that earlier batches took up
        self._recover()

    def _recover(self) -> None:
        self._truth.sweep()
        done = self._truth.numbers("segments")
        last = done[-1] if done else -1
        for batch in self._truth.numbers("words"):
            if batch <= last:
                self._lexicon.intern_all(self._words(batch))
        for batch in self._truth.numbers("wishes"):
            if batch <= last:
                self._follow(WishChange.load(self._truth.wishes(batch)))
        for batch in done:
            segment = Segment.load(self._truth.segment(batch))
            self._next_message = segment.last
            self._now = max(self._now, float(np.nan_to_num(segment.columns.ts, nan=-math.inf).max(initial=-math.inf)))

    def _words(self, batch: int) -> list[str]:
        arrays, _ = snapshot.load(self._truth.folder / "words" / f"{batch:08d}")
        return [str(word) for word in texts_from_arrays("word", arrays).to_pylist()]

    def _follow(self, change: WishChange) -> None:
        gone = set(change.gone.tolist())
        self._numbers = {i: n for i, n in self._numbers.items() if n not in gone}
        ids = change.ids.to_pylist()
        self.taken.update(change.sources)
        self._numbers.update(zip(ids, range(change.first, change.first + len(ids)), strict=True))
        self._next_wish = change.first + len(ids)

    def is_decided(self, batch: int) -> bool:
        return self._truth.segment(batch).exists()

    def decide(
        self,
        batch: int,
        wishes: Mapping[Id, Wish | None],
        messages: Sequence[Message],
        sources: Sequence[str] = (),
        bad: Sequence[Refused] = (),
    ) -> int:
        """Write what the batch is: wishes that come (an id that is there is replaced) or go (None), and messages.
        `sources` are the names of the files that the wishes came from, `bad` the rows that are neither.

        Returns how many messages were late: older than one of an earlier batch, in a window of time. Within a
        batch, they come in the order of their times.
        """
        kept = self._in_time(messages)
        known = len(self._lexicon)
        change = self._change(wishes, sources)
        columns = PostColumns.from_values(kept, self._lexicon, self._plan.idf)
        segment = Segment(self._next_message, columns, _ids([m.id for m in kept]))
        late = len(messages) - len(kept)
        self._truth.take_in(batch, {"late": late, "rejected": [list(row) for row in bad]})
        self._save_words(batch, known)
        discard(self._truth.wishes(batch))
        if change is not None:
            change.save(self._truth.wishes(batch), self._settings.wish_ids)
            self._follow(change)
        segment.save(self._truth.segment(batch), self._settings.message_ids)
        self._next_message = segment.last
        self.late += late
        return late

    def _in_time(self, messages: Sequence[Message]) -> list[Message]:
        if self._settings.window.seconds is None:
            return list(messages)
        kept = sorted((m for m in messages if m.ts is not None and m.ts >= self._now), key=lambda m: m.ts or 0.0)
        self._now = max(self._now, kept[-1].ts or 0.0) if kept else self._now
        return kept

    def _change(self, wishes: Mapping[Id, Wish | None], sources: Sequence[str]) -> WishChange | None:
        gone = np.array(sorted(self._numbers[i] for i in wishes if i in self._numbers), np.int64)
        come = [wish for wish in wishes.values() if wish is not None]
        if not come and not len(gone) and not sources:
            return None
        columns = WishColumns.from_values(come, self._lexicon, self._plan.idf)
        return WishChange(self._next_wish, columns, _ids([wish.id for wish in come]), gone, tuple(sources))

    def _save_words(self, batch: int, known: int) -> None:
        discard(self._truth.folder / "words" / f"{batch:08d}")
        new = [self._lexicon.word(term) for term in range(known, len(self._lexicon))]
        if new:
            snapshot.save(self._truth.folder / "words" / f"{batch:08d}", texts_to_arrays("word", new), {})


def _ids(ids: Sequence[Id]) -> pa.Array:
    if ids and all(isinstance(identity, int) for identity in ids):
        return pa.array(ids, pa.int64())
    return pa.array([str(identity) for identity in ids], pa.large_string())
