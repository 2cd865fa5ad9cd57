"""`ap+`: the AP+-Tree, subscriptions and live messages in one adaptive tree (VLDBJ'17 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import CatalogueError
from nearcast.geo import Space, earth
from nearcast.kernels import move_separate
from nearcast.kernels.layout import Entries
from nearcast.kernels.move_layout import Differences
from nearcast.moving.ap_nodes import MovingTree
from nearcast.moving.base import Mover
from nearcast.moving.boxes import Moved
from nearcast.moving.postings import DEFAULT_FILL, MessagePostings

KEPT = ("unified", "keyword", "space")
ONE_LIST = 1 << 30  # a list of so many postings has no grid


class ApPlus(Mover):
    """messages: `unified`, in the m-lists of the tree's nodes; or apart from it, in an inverted file (`keyword`,
    AP+k-Tree) or in a grid (`space`, AP+s-Tree). limit: copies of a message in the tree. f, theta_p, theta_kl: of
    the tree."""

    name = "ap+"
    index: MovingTree
    may_repeat = True

    def __init__(
        self,
        space: Space = earth,
        *,
        most: int | None = None,
        messages: str = "unified",
        limit: int = 64,
        f: int = 200,
        theta_p: int = 40,
        theta_kl: float = 0.001,
    ) -> None:
        if messages not in KEPT:
            raise CatalogueError(f"ap+: messages={messages!r} given; there are {', '.join(KEPT)}")
        if limit < 1:
            raise CatalogueError(f"ap+: limit {limit} given; a whole number of at least 1 needed")
        self._kept, self._limit = messages, limit
        self._given = {"f": f, "theta_p": theta_p, "theta_kl": theta_kl}
        self._apart = MessagePostings(ONE_LIST if messages == "keyword" else DEFAULT_FILL)
        self._timestamps = 0
        self._knows_motion = False
        super().__init__(space, most=most)

    def _new_index(self) -> MovingTree:
        return MovingTree(self.live, self._limit, **self._given)

    # -- motion -------------------------------------------------------------------------------------

    def _pass(self, now: float) -> None:
        is_later = now > self.now
        super()._pass(now)
        if not is_later:
            return
        self._timestamps += 1
        live = self.index.table.n_live
        updates = self._moves / max(1, live * self._timestamps)
        self.index.set_rates(self._arrived / self._timestamps, min(1.0, updates))
        if self._moves > live // 10 and not self._knows_motion:  # enough to choose other partitions
            self._knows_motion = True
            self.index.build_again()

    # -- messages -----------------------------------------------------------------------------------

    def _put(self, rows: NDArray[np.int64]) -> None:
        if self._kept == "unified":
            self.index.put(rows)
        else:
            self._apart.put(self._rows_apart, rows, self.live.table.n_entries)

    def _take(self, rows: NDArray[np.int64]) -> None:
        if self._kept == "unified":
            self.index.take(rows)
        else:
            self._apart.take(self._rows_apart, rows)

    @property
    def _rows_apart(self) -> Entries:
        """A grid knows no words: to it every message has the same one."""
        return self.live.rows if self._kept == "keyword" else _without_words(self.live.rows)

    # -- moves --------------------------------------------------------------------------------------

    def _differ(self, moved: Moved, first: int, out: Differences) -> tuple[int, int]:
        if self._kept == "unified":
            return self.index.differ(moved, first, self.live.rows, out, self._counters)
        postings, frame = self._apart.arrays, self._apart.frame
        table, rows = self.index.entries, self._rows_apart
        asked = table if self._kept == "keyword" else _without_words(table)
        following, n = move_separate.differ(postings, asked, *moved, first, frame, rows, out, self._counters)
        if self._kept == "space":
            n = move_separate.keep_terms(table, moved.entries, self.live.rows, out, n)
        return int(following), int(n)

    def _bytes(self) -> dict[str, int]:
        return self.index.message_bytes() if self._kept == "unified" else self._apart.nbytes()

    def _details(self) -> dict[str, Any]:
        kept = self.index.message_details() if self._kept == "unified" else self._apart.details()
        return kept | self.index.report().details


def _without_words(rows: Entries) -> Entries:
    """The same rows, all with the one term 0."""
    return Entries(
        rows.boxes,
        np.zeros(len(rows.term_count), np.int32),
        np.minimum(rows.term_count, 1).astype(np.int32),
        np.zeros(1, np.int32),
    )
