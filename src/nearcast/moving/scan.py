"""`scan`: no structure at all, the baseline and second reference."""

from __future__ import annotations

from nearcast.indexes.base import EntryIndex
from nearcast.indexes.scan import Scan as ScanIndex
from nearcast.kernels import move_scan
from nearcast.kernels.move_layout import Differences
from nearcast.moving.base import Mover
from nearcast.moving.boxes import Moved


class Scan(Mover):
    """Every message against every subscription, on arrival, on a move and at its end."""

    name = "scan"

    def _new_index(self) -> EntryIndex:
        return ScanIndex()

    def _differ(self, moved: Moved, first: int, out: Differences) -> tuple[int, int]:
        following, n = move_scan.differ(self.index.entries, *moved, first, self.live.rows, out, self._counters)
        return int(following), int(n)
