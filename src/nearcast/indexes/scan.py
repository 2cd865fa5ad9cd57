"""`scan`: no index at all. The baseline of every comparison and a second reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.base import EntryIndex
from nearcast.kernels import scan as kernels
from nearcast.kernels.layout import Rows


class Scan(EntryIndex):
    """Everything against everything, compiled."""

    name = "scan"

    def _add(self, entries: NDArray[np.int64]) -> None:
        """Nothing to build: the table is all there is."""

    def _drop(self, entries: NDArray[np.int64]) -> None:
        """Nothing to forget."""

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        entries = self.entries
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: kernels.probe(entries, rows, first, found, counters),
        )
