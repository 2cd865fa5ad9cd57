"""What `iq-tree` and `rq-tree` share: ranked keys, quadtree cells chosen by cost, one pool of postings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.base import EntryIndex
from nearcast.indexes.forecast import Past, grid_of, ranks_of
from nearcast.indexes.pool import enlarged
from nearcast.kernels import ranked as kernels
from nearcast.kernels.postings import N_CLASSES, NO_RUN, TOP, Postings
from nearcast.kernels.quadtree import MAX_DEPTH, Grid
from nearcast.kernels.ranked import Ranks

FIRST_POOL = 64


class RankedIndex(EntryIndex):
    """Posting lists by least frequent keyword, in quadtree cells that a cost model chooses.

    Ranks, chances and cells are fixed when the structure is built, so that an entry is found again where it
    was put. It is built anew when the number of entries has doubled or halved since: with the statistics of
    the entries there are then, and without what removals left behind.
    """

    def __init__(self, *, history: MessageBatch | None, depth: int, update_weight: float) -> None:
        super().__init__(history=history)
        if not 0 <= depth <= MAX_DEPTH:
            raise CatalogueError(f"{self.name}: depth {depth} given; 0 to {MAX_DEPTH} is allowed")
        if not 0 < update_weight < np.inf:
            raise CatalogueError(f"{self.name}: update_weight {update_weight} given; above 0 is allowed")
        self.depth, self.update_weight = int(depth), float(update_weight)
        self._past = Past.of(history, self.depth)
        self._n_built = 0
        self._n_builds = 0
        self._begin(np.zeros(0, dtype=np.int64))

    # -- what the two add ---------------------------------------------------------------------------

    @abstractmethod
    def _clear(self) -> None:
        """An empty structure, for all terms that the ranks know."""

    @abstractmethod
    def _insert(self, entries: NDArray[np.int64], keys: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        """Post entries; keys and codes (cell of the middle) are for choosing a good order."""

    @abstractmethod
    def _remove(self, entries: NDArray[np.int64]) -> None:
        """Take entries out of their lists."""

    def _is_worn(self) -> bool:
        """True when removals have left so much behind that building anew is due."""
        return False

    # -- changes ------------------------------------------------------------------------------------

    def _add(self, entries: NDArray[np.int64]) -> None:
        if self.table.n_entries > 2 * self._n_built or self._is_worn():
            self._build(self.table.live_entries())
        else:
            self._insert_in_order(entries)

    def _drop(self, entries: NDArray[np.int64]) -> None:
        if self.table.n_entries - len(entries) < self._n_built // 2:
            self._build(np.setdiff1d(self.table.live_entries(), entries))
        else:
            self._remove(entries)

    def relocate(self, entries: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
        """The best cells are chosen anew (VLDBJ'17 5.2.1); keys stay."""
        if len(entries):
            self._remove(entries)
            self.table.relocate(entries, boxes)
            self._insert_in_order(entries)
            if self._is_worn():
                self._build(self.table.live_entries())

    @property
    def n_builds(self) -> int:
        """Ranks and cells are the same as long as this is."""
        return self._n_builds

    @property
    def ranks(self) -> Ranks:
        return self._ranks

    @property
    def grid(self) -> Grid:
        return self._grid

    def _build(self, entries: NDArray[np.int64]) -> None:
        self._begin(entries)
        self._n_builds += 1
        if len(entries):
            self._insert_in_order(entries)

    def _begin(self, entries: NDArray[np.int64]) -> None:
        self._ranks = ranks_of(self.entries, entries, self._past)
        self._grid = self._past.grid if self._past else grid_of(self.entries, entries, self.depth)
        self._n_built = len(entries)
        state = np.full(N_CLASSES + 1, NO_RUN, dtype=np.int64)
        state[TOP] = 0
        self._postings = _enlarged(Postings(np.zeros((0, 2), dtype=np.int64), state))
        self._clear()

    def _insert_in_order(self, entries: NDArray[np.int64]) -> None:
        keys, codes = np.zeros(len(entries), dtype=np.int64), np.zeros(len(entries), dtype=np.int64)
        kernels.sort_keys(self._ranks, self._grid, self.entries, entries, keys, codes)
        self._insert(entries, keys, codes)

    def _enlarge_pool(self) -> None:
        self._postings = _enlarged(self._postings)

    # -- report and snapshot ------------------------------------------------------------------------

    @property
    def _n_terms(self) -> int:
        return len(self._ranks.rank) - 1

    def _bytes(self) -> dict[str, int]:
        return {
            "postings": self._postings.pool[: self._postings.state[TOP]].nbytes + self._postings.state.nbytes,
            "ranks": self._ranks.rank.nbytes + self._ranks.chance.nbytes,
            "grid": self._grid.share.nbytes,
        }

    def _shared_details(self, counts: NDArray[np.int32]) -> dict[str, Any]:
        """`counts` are the lengths of all posting lists."""
        n_postings = int(counts.sum())
        return {
            "lists": int(np.count_nonzero(counts)),
            "longest_list": int(counts.max(initial=0)),
            "postings": n_postings,
            "copies": n_postings / max(1, self.table.n_entries),
            "builds": self._n_builds,
            "history": self._past.n_messages if self._past else 0,
        }

    def _options(self) -> dict[str, Any]:
        return {"depth": self.depth, "update_weight": self.update_weight}

    def _state(self) -> dict[str, NDArray[Any]]:
        top = int(self._postings.state[TOP])
        arrays: dict[str, NDArray[Any]] = {
            "pool": self._postings.pool[:top],
            "free": self._postings.state,
            "rank": self._ranks.rank,
            "chance": self._ranks.chance,
            "frame": self._grid.frame,
            "share": self._grid.share,
            "builds": np.array([self._n_built, self._n_builds], dtype=np.int64),
        }
        return arrays | (self._past.state() if self._past else {})

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._postings = Postings(arrays["pool"], arrays["free"])
        self._ranks = Ranks(arrays["rank"], arrays["chance"])
        self._grid = Grid(arrays["frame"], arrays["share"], np.array([self.depth], dtype=np.int64))
        self._past = Past.restored(arrays, self._grid)
        self._n_built, self._n_builds = arrays["builds"].tolist()


def _enlarged(postings: Postings) -> Postings:
    return Postings(enlarged(postings.pool, len(postings.pool) + FIRST_POOL), postings.state)
