"""Structures that are laid out once and hold: a few of them, each at least twice as large as the next.

New wishes become a sheet of their own, which is merged with smaller ones (as in a log-structured merge tree), so
that a wish is laid out again only a logarithmic number of times. A removed wish stays in its sheet with a
threshold that nothing reaches, until half of the sheet is dead.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from nearcast.geo import Space, earth
from nearcast.indexes.pool import reserved
from nearcast.kernels.rank_layout import NEVER, Candidates
from nearcast.ranking.base import Ranker
from nearcast.ranking.window import Window

T = TypeVar("T")
MANY_MOVES = 3  # the lists of a sheet are laid out anew after so many new thresholds per wish


class SheetOf(Generic[T]):
    """One structure and the wishes in it."""

    def __init__(self, slots: NDArray[np.int32], arrays: T) -> None:
        self.slots = slots  # by row
        self.is_live = np.ones(len(slots), np.bool_)
        self.arrays = arrays
        self.moves = 0
        self.next_list = 0  # from here on lists wait to be laid out anew

    @property
    def n_live(self) -> int:
        return int(self.is_live.sum())


class SheetRanker(Ranker, Generic[T]):
    """A ranker of sheets. Subclasses lay one out and probe it."""

    def __init__(self, window: Window, space: Space = earth, *, refill: str = "cskyband") -> None:
        super().__init__(window, space, refill=refill)
        self.space = space
        self._sheets: list[SheetOf[T]] = []
        self._sheet_of = np.zeros(0, np.int32)  # by slot: number of its sheet
        self._row_of = np.zeros(0, np.int32)  # by slot: row in the sheet
        self._laid = 0

    # -- what a subclass adds -----------------------------------------------------------------------

    @abstractmethod
    def _lay(self, slots: NDArray[np.int32]) -> T:
        """The structure of these wishes."""

    def _order(self, _slots: NDArray[np.int32], _arrays: T) -> NDArray[np.int32]:
        """The wishes in the order of the structure's rows."""
        return _slots

    @abstractmethod
    def _set(self, arrays: T, rows: NDArray[np.int32], thetas: NDArray[np.float64]) -> None:
        """New thresholds for rows of the structure."""

    @abstractmethod
    def _probe_sheet(
        self, arrays: T, first_post: int, row: int, last_row: int, room: Candidates, n: int
    ) -> tuple[int, int]:
        """Append what the sheet has to the n found before: the next row, and how many are found now."""

    # -- wishes -------------------------------------------------------------------------------------

    def _add(self, slots: NDArray[np.int32]) -> None:
        self._sheet_of = reserved(self._sheet_of, self.table.top)
        self._row_of = reserved(self._row_of, self.table.top)
        while self._sheets and self._sheets[-1].n_live <= 2 * len(slots):
            last = self._sheets.pop()
            slots = np.concatenate([last.slots[last.is_live], slots])
        self._new_sheet(len(self._sheets), np.sort(slots))

    def _new_sheet(self, number: int, slots: NDArray[np.int32]) -> None:
        arrays = self._lay(slots)
        slots = self._order(slots, arrays)
        sheet = SheetOf(slots, arrays)
        self._sheets[number : number + 1] = [sheet]
        self._sheet_of[slots] = number
        self._row_of[slots] = np.arange(len(slots))
        self._laid += len(slots)

    def _drop(self, slots: NDArray[np.int32]) -> None:
        for number, chosen in self._by_sheet(slots):
            sheet, rows = self._sheets[number], self._row_of[chosen]
            sheet.is_live[rows] = False
            self._set(sheet.arrays, rows, np.full(len(rows), NEVER))
            if 0 < 2 * sheet.n_live < len(sheet.slots):  # one without any goes with the next insertion
                self._new_sheet(number, sheet.slots[sheet.is_live])

    def _moved(self, slots: NDArray[np.int32]) -> None:
        theta = self.table.buffers.theta
        for number, chosen in self._by_sheet(slots):
            sheet = self._sheets[number]
            self._set(sheet.arrays, self._row_of[chosen], theta[chosen])
            sheet.moves += len(chosen)

    def _by_sheet(self, slots: NDArray[np.int32]) -> list[tuple[int, NDArray[np.int32]]]:
        of = self._sheet_of[slots]
        return [(int(number), slots[of == number]) for number in np.unique(of)]

    def _renew(self, _sheet: SheetOf[T]) -> bool:
        """A piece of the work to lay a sheet out for its thresholds of now; True when all is done."""
        return True

    def _settled(self) -> None:
        for sheet in self._sheets:
            if sheet.moves > MANY_MOVES * len(sheet.slots) and self._renew(sheet):
                sheet.moves = sheet.next_list = 0

    # -- messages -----------------------------------------------------------------------------------

    def _probe(self, first_post: int, row: int, last_row: int, room: Candidates) -> tuple[int, int]:
        self._settled()
        n = 0
        for sheet in self._sheets:
            last_row, n = self._probe_sheet(sheet.arrays, first_post, row, last_row, room, n)
        if len(self._sheets) > 1 and n:
            kept = np.flatnonzero(room.rows[:n] < last_row)
            kept = kept[np.argsort(room.rows[kept], kind="stable")]
            n = len(kept)
            room.rows[:n], room.slots[:n], room.scores[:n] = room.rows[kept], room.slots[kept], room.scores[kept]
        return last_row, n

    def _details(self) -> dict[str, Any]:
        return {"sheets": [len(sheet.slots) for sheet in self._sheets], "laid out": self._laid}
