"""`scan`: no structure at all, the baseline and second reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.base import EntryIndex
from nearcast.indexes.scan import Scan as ScanIndex
from nearcast.kernels import move_scan
from nearcast.kernels.move_layout import Differences
from nearcast.moving.base import Mover


class Scan(Mover):
    """Every message against every subscription, on arrival, on a move and at its end."""

    name = "scan"

    def _new_index(self) -> EntryIndex:
        return ScanIndex()

    def _differ(
        self,
        entries: NDArray[np.int64],
        old: NDArray[np.float64],
        new: NDArray[np.float64],
        first: int,
        out: Differences,
    ) -> tuple[int, int]:
        following, n = move_scan.differ(
            self.index.entries, entries, old, new, first, self.live.rows, out, self._counters
        )
        return int(following), int(n)
