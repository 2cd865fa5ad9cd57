"""`skype`: the paper's dissemination and re-evaluation; see `kernels.rank_skype`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import CatalogueError
from nearcast.geo import Space, earth
from nearcast.kernels import rank_skype
from nearcast.kernels.rank_layout import Candidates
from nearcast.kernels.rank_skype import CELL_PRUNING, EARLY_END, GROUP_PRUNING, Cells, Members, Postings, Terms
from nearcast.ranking.postings import term_lists
from nearcast.ranking.quadtree import leaf_cells
from nearcast.ranking.sheets import SheetRanker
from nearcast.ranking.window import Window

DISSEMINATIONS = {"igpt": CELL_PRUNING | GROUP_PRUNING | EARLY_END, "ipt": 0}
"""Section 8.1.2: individual and group pruning, or individual pruning only."""


class Parts(NamedTuple):
    cells: Cells
    postings: Postings
    members: Members
    terms: Terms
    thetas: NDArray[np.float64]  # [n]


class Skype(SheetRanker[Parts]):
    """Quadtree cells of at most `most` wishes, posting lists in `groups` groups by alpha (section 8.1.1)."""

    name = "skype"

    def __init__(
        self,
        window: Window,
        space: Space = earth,
        *,
        refill: str = "cskyband",
        dissemination: str = "igpt",
        most: int = 1000,
        groups: int = 10,
    ) -> None:
        super().__init__(window, space, refill=refill)
        if dissemination not in DISSEMINATIONS:
            raise CatalogueError(f"dissemination {dissemination!r} given; there are {', '.join(DISSEMINATIONS)}")
        self._pruning = DISSEMINATIONS[dissemination]
        self._most, self._groups = most, groups if self._pruning else 1
        self._stamp = np.zeros(1, np.int64)

    def _lay(self, slots: NDArray[np.int32]) -> Parts:
        wants = self.table.wants
        order, wish_from, boxes = leaf_cells(wants.points[slots], self._most)
        held = slots[order]
        counts = wants.term_count[held].astype(np.int64)
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        taken = np.arange(start[-1]) + np.repeat(wants.term_from[held] - start[:-1], counts)
        terms, place, lists, _ = term_lists(wants.terms[taken])
        owner = np.repeat(np.arange(len(held)), counts)
        rarest_first = np.lexsort((lists, owner))
        lists, weights = lists[rarest_first], wants.weights[taken][rarest_first]
        cell = np.repeat(np.arange(len(boxes), dtype=np.int32), np.diff(wish_from))
        thetas, alpha = self.table.buffers.theta[held].copy(), wants.alpha[held]
        with np.errstate(divide="ignore", invalid="ignore"):
            k_score = np.where(alpha >= rank_skype.ONE, -np.inf, thetas / (1.0 - alpha))
        group = np.searchsorted(np.quantile(alpha, np.arange(1, self._groups) / self._groups), alpha)
        sorted_by = np.lexsort((k_score[owner], group[owner], cell[owner], lists))
        of = owner[sorted_by]
        new_term, new_list = _steps(lists[sorted_by]), _steps(cell[of], lists[sorted_by])
        new_group = _steps(cell[of], lists[sorted_by], group[of])
        list_at, group_at = np.flatnonzero(new_list), np.flatnonzero(new_group)
        cells = Cells(
            boxes,
            np.zeros(len(boxes)),
            wish_from,
            np.searchsorted(list_at, np.append(np.flatnonzero(new_term), len(of))).astype(np.int64),
            np.ascontiguousarray(cell[of][list_at], np.int32),
            np.searchsorted(group_at, np.append(list_at, len(of))).astype(np.int64),
            np.append(group_at, len(of)).astype(np.int64),
            np.zeros((len(group_at), 3)),
        )
        keys = np.zeros((len(of), 3))
        keys[:, rank_skype.K_SCORE] = k_score[of]
        postings = Postings(of.astype(np.int32), sorted_by.astype(np.int64), keys)
        members = Members(
            held.copy(),
            np.zeros(len(held)),
            cell,
            np.zeros(len(held), np.int64),
            start,
            np.ascontiguousarray(weights),
            np.zeros(len(weights)),
            np.zeros(len(weights), np.int64),
        )
        parts = Parts(cells, postings, members, Terms(terms, place, *_room(16), np.zeros(len(boxes))), thetas)
        rank_skype.place_members(wants, members, cells, self._space)
        rank_skype.finish(cells, postings, members, wants, thetas)
        return parts

    def _set(self, arrays: Parts, rows: NDArray[np.int32], thetas: NDArray[np.float64]) -> None:
        arrays.thetas[rows] = thetas
        rank_skype.set_thresholds(arrays.cells, arrays.postings, arrays.members, self.table.wants, arrays.thetas, rows)

    def _order(self, _slots: NDArray[np.int32], arrays: Parts) -> NDArray[np.int32]:
        return arrays.members.slots

    def _probe_sheet(
        self, arrays: Parts, first_post: int, row: int, last_row: int, room: Candidates, n: int
    ) -> tuple[int, int]:
        terms, longest = arrays.terms, self.store.longest(first_post + row, first_post + last_row)
        if longest > len(terms.keys):
            terms = Terms(terms.terms, terms.place, *_room(2 * longest), terms.outer)
        following, found = rank_skype.probe(
            arrays.cells,
            arrays.postings,
            arrays.members,
            terms,
            self.table.wants,
            arrays.thetas,
            self.store.posts,
            first_post,
            row,
            last_row,
            self._space,
            room,
            n,
            self._pruning,
            self._stamp,
            self._counters,
        )
        return following, found

    def _bytes(self) -> dict[str, int]:
        parts = [part for s in self._sheets for part in s.arrays[:4]]
        return {"cells": sum(array.nbytes for part in parts for array in part)}


def _steps(*columns: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.bool_]:
    """Where any of the columns differs from the row before; the first row does."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _room(n: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    return np.zeros(n, np.int64), np.zeros(n), np.zeros(n + 1), np.zeros(n + 1)
