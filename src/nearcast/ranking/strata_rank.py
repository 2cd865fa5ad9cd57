"""`strata-rank`: nearcast's own ranker, see `kernels.rank_strata`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.geo import Space, earth
from nearcast.kernels import rank_strata
from nearcast.kernels.rank_layout import Candidates
from nearcast.kernels.rank_strata import BLOCK, GROUP, N_BOUNDS, N_FIELDS, Scratch, Sheet, Upper
from nearcast.ranking.postings import parts, term_lists
from nearcast.ranking.sheets import SheetOf, SheetRanker
from nearcast.ranking.window import Window, origin_of

PIECE = 20_000  # postings that are laid out anew between two chunks of messages
WAITING = 256  # wishes of one row that are verified together


class Both(NamedTuple):
    sheet: Sheet
    upper: Upper


class StrataRank(SheetRanker[Both]):
    """Lists by term, in blocks by place, weights and threshold."""

    name = "strata-rank"

    def __init__(self, window: Window, space: Space = earth, *, refill: str = "cskyband") -> None:
        super().__init__(window, space, refill=refill)
        self._origin = origin_of(space)
        self.piece = PIECE
        self._renewed = 0
        self._place = np.zeros(3, np.float32)
        waiting = np.zeros((WAITING, 2), np.int64)
        self._scratch = Scratch(np.zeros((16, 2), np.int64), np.zeros(16), np.zeros(BLOCK, np.float32), waiting)

    def _lay(self, slots: NDArray[np.int32]) -> Both:
        wants, theta = self.table.wants, self.table.buffers.theta
        counts = wants.term_count[slots].astype(np.int64)
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        owner = np.repeat(slots, counts)
        terms = wants.terms[np.arange(start[-1]) + np.repeat(wants.term_from[slots] - start[:-1], counts)]
        keys, list_of, lists, list_from = term_lists(terms)
        fields = np.zeros((N_FIELDS, len(terms)), np.float32)
        bits, into = np.zeros(len(terms), np.int32), np.zeros(3, np.float32)
        rank_strata.describe(wants, theta, slots, start, lists, self._origin, self._space, fields, bits, into)
        order = np.argsort(lists, kind="stable").astype(np.int64)
        rank_strata.split(fields, order, list_from, np.zeros((128, 2), np.int64))
        block_from, group_from = parts(list_from, BLOCK), parts(list_from, BLOCK * GROUP)
        laid, ids = np.zeros(fields.size, np.float32), np.zeros(2 * len(terms), np.int32)
        bounds = np.zeros((int(block_from[-1]), N_BOUNDS), np.float32)
        groups = np.zeros((int(group_from[-1]), N_BOUNDS), np.float32)
        at = np.zeros(len(terms), np.int64)
        both = Both(
            Sheet(keys, list_of, list_from, block_from, group_from, laid, ids, bounds), Upper(groups, lists, at, start)
        )
        rank_strata.lay(fields, owner, bits, order, both.sheet, at)
        rank_strata.bound_all(*both)
        return both

    def _set(self, arrays: Both, rows: NDArray[np.int32], thetas: NDArray[np.float64]) -> None:
        rank_strata.set_thresholds(arrays.sheet, arrays.upper, rows, thetas)

    def _renew(self, sheet: SheetOf[Both]) -> bool:
        """Lists one after the other, those of about `PIECE` postings at a time: a batch never waits for all of them."""
        arrays, done = sheet.arrays, 0
        list_from = arrays.sheet.list_from
        while done < self.piece and sheet.next_list < len(list_from) - 1:
            n = int(list_from[sheet.next_list + 1] - list_from[sheet.next_list])
            if n > BLOCK:
                fields, ids = np.zeros((N_FIELDS, n), np.float32), np.zeros((2, n), np.int32)
                order, stack = np.zeros(n, np.int64), np.zeros((128, 2), np.int64)
                rank_strata.lay_again(*arrays, sheet.next_list, fields, ids, order, self._row_of, stack)
                done += n
                self._renewed += 1
            sheet.next_list += 1
        return sheet.next_list == len(list_from) - 1

    def _details(self) -> dict[str, Any]:
        return super()._details() | {"lists laid out anew": self._renewed}

    def _probe_sheet(
        self, arrays: Both, first_post: int, row: int, last_row: int, room: Candidates, n: int
    ) -> tuple[int, int]:
        posts = self.store.posts
        longest = self.store.longest(first_post + row, first_post + last_row)
        if longest > len(self._scratch.lists):
            self._scratch = self._scratch._replace(
                lists=np.zeros((2 * longest, 2), np.int64), weights=np.zeros(2 * longest)
            )
        following, found = rank_strata.probe(
            arrays.sheet,
            arrays.upper,
            self.table.wants,
            self.table.buffers.theta,
            posts,
            first_post,
            row,
            last_row,
            self._origin,
            self._space,
            room,
            n,
            self._place,
            self._scratch,
            self._counters,
        )
        return following, found

    def _bytes(self) -> dict[str, int]:
        sheets = [array.nbytes for s in self._sheets for part in s.arrays for array in part]
        return {"sheets": sum(sheets)}
