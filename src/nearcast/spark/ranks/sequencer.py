"""Gives messages and wishes their numbers, in one order that holds for all shards and for every repetition.

The first try of a batch decides: what it wrote is found by later ones. The segment is written last: without it
nothing was decided, and whatever else is there is written again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from nearcast import snapshot
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Wish
from nearcast.ranking import WishColumns
from nearcast.spark.edge import Refused
from nearcast.spark.ranks.ids import id_array
from nearcast.spark.ranks.plan import RankPlan
from nearcast.spark.ranks.posts import Posts
from nearcast.spark.ranks.truth import Segment, Truth, WishChange, discard
from nearcast.spark.storage import texts_from_arrays, texts_to_arrays


class Sequencer:
    """On the driver: one at a time for a folder."""

    def __init__(self, truth: Truth, plan: RankPlan, words: Sequence[str] = ()) -> None:
        self._truth, self._plan = truth, plan
        self._settings = plan.settings
        self.lexicon = Lexicon(plan.settings.analyzer)
        self.lexicon.intern_all(words)
        self._numbers: dict[Id, int] = {}  # of live wishes
        self._next_wish = 0
        self._next_message = 0
        self._now = -math.inf
        self.late = 0
        self.taken: set[str] = set()  # names of inbox files that earlier batches took up
        self._recover()
        self._n_words = len(self.lexicon)  # that are on storage

    def _recover(self) -> None:
        self._truth.sweep()
        done = self._truth.numbers("segments")
        last = done[-1] if done else -1
        for batch in self._truth.numbers("words"):
            if batch <= last:
                self.lexicon.intern_all(self._words(batch))
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
        posts: Posts,
        sources: Sequence[str] = (),
        bad: Sequence[Refused] = (),
    ) -> int:
        """Write what the batch is: wishes that come (an id that is there is replaced) or go (None), and messages, with
        terms of `lexicon`. `sources` are the names of the files that the wishes came from, `bad` the rows that are
        neither.

        Returns how many messages were late: older than one of an earlier batch, in a window of time. Within a
        batch, they come in the order of their times.
        """
        kept = self._in_time(posts)
        change = self._change(wishes, sources)
        segment = Segment(self._next_message, kept.columns, kept.ids)
        late = len(posts) - len(kept)
        self._truth.take_in(batch, {"late": late, "rejected": [list(row) for row in bad]})
        self._save_words(batch)
        discard(self._truth.wishes(batch))
        if change is not None:
            change.save(self._truth.wishes(batch), self._settings.wish_ids)
            self._follow(change)
        segment.save(self._truth.segment(batch), self._settings.message_ids)
        self._next_message = segment.last
        self._n_words = len(self.lexicon)
        self.late += late
        return late

    def _in_time(self, posts: Posts) -> Posts:
        if self._settings.window.seconds is None:
            return posts
        ts = posts.columns.ts
        order = np.argsort(ts, kind="stable")
        kept = posts.take(order[ts[order] >= self._now])
        self._now = float(kept.columns.ts.max(initial=self._now))
        return kept

    def _change(self, wishes: Mapping[Id, Wish | None], sources: Sequence[str]) -> WishChange | None:
        gone = np.array(sorted(self._numbers[i] for i in wishes if i in self._numbers), np.int64)
        come = [wish for wish in wishes.values() if wish is not None]
        if not come and not len(gone) and not sources:
            return None
        columns = WishColumns.from_values(come, self.lexicon, self._plan.idf)
        ids = id_array([wish.id for wish in come], self._settings.wish_ids)
        return WishChange(self._next_wish, columns, ids, gone, tuple(sources))

    def _save_words(self, batch: int) -> None:
        discard(self._truth.folder / "words" / f"{batch:08d}")
        new = [self.lexicon.word(term) for term in range(self._n_words, len(self.lexicon))]
        if new:
            snapshot.save(self._truth.folder / "words" / f"{batch:08d}", texts_to_arrays("word", new), {})
