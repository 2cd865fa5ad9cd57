"""`strata-move`: nearcast's own way to moving subscriptions, and the default.

Words do not move. Subscriptions are in `strata`, where a move writes a box in place and changes leaves only where it
leaves the bounds of its own; messages are posted under each of their terms, with a grid where a term has many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import CatalogueError
from nearcast.geo import Space, earth
from nearcast.indexes.strata import Strata
from nearcast.kernels import move_strata
from nearcast.kernels.move_layout import Differences
from nearcast.moving.base import Mover
from nearcast.moving.boxes import Moved
from nearcast.moving.postings import DEFAULT_FILL, MessagePostings


class StrataMove(Mover):
    """fill: postings of a list, on average, before a term's grid is refined; strata: options of the index of
    subscriptions."""

    name = "strata-move"
    index: Strata

    def __init__(
        self,
        space: Space = earth,
        *,
        most: int | None = None,
        fill: int = DEFAULT_FILL,
        strata: Mapping[str, Any] | None = None,
    ) -> None:
        if fill < 1:
            raise CatalogueError(f"strata-move: fill {fill} given; a whole number of at least 1 needed")
        self._given = dict(strata or {})
        self._postings = MessagePostings(fill)
        super().__init__(space, most=most)

    def _new_index(self) -> Strata:
        return Strata(**self._given)

    def _put(self, rows: NDArray[np.int64]) -> None:
        self._postings.put(self.live.rows, rows, self.live.table.n_entries)

    def _take(self, rows: NDArray[np.int64]) -> None:
        self._postings.take(self.live.rows, rows)

    def _differ(self, moved: Moved, first: int, out: Differences) -> tuple[int, int]:
        postings, frame = self._postings.arrays, self._postings.frame
        following, n = move_strata.differ(
            postings,
            self.index.entries,
            *moved,
            first,
            frame,
            self.live.rows,
            out,
            self._counters,
        )
        return int(following), int(n)

    def _bytes(self) -> dict[str, int]:
        return self._postings.nbytes()

    def _details(self) -> dict[str, Any]:
        return self._postings.details() | self.index.report().details
