"""Which messages beyond the best k a buffer keeps: Skype section 6."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import CatalogueError
from nearcast.kernels.rank_refill import COST, CSKYBAND, FACTOR, KIND, KMAX, N_POLICY, REACH, SKYBAND

POSTING_COST = 4.0
"""Of reading a posting, in units of touching an entry of a buffer."""


@dataclass(frozen=True, slots=True)
class Refill:
    """A policy. `factor` is kmax / k, or the threshold's ratio to the k-th score; `room` is room / k."""

    kind: int
    factor: float
    room: float

    def policy(self) -> NDArray[np.float64]:
        """What kernels read."""
        values = np.zeros(N_POLICY)
        values[KIND], values[FACTOR], values[COST] = self.kind, self.factor, POSTING_COST
        return values

    def rooms(self, k: NDArray[np.int32], count: int) -> NDArray[np.int32]:
        """[len(k)] Entries of each buffer; never more than a count window can fill."""
        rooms = np.ceil(k * self.room).astype(np.int64)
        if count:
            rooms = np.minimum(rooms, np.maximum(count + 1, 1))
        return np.asarray(np.maximum(rooms, 1), np.int32)

    def reach(self, k: int) -> int:
        """The most that a refill gathers."""
        return max(math.ceil(k * self.room), math.ceil(k * REACH)) + 1


REFILLS: Mapping[str, Refill] = {
    "cskyband": Refill(CSKYBAND, 0.0, 3.0),
    "skyband": Refill(SKYBAND, 0.95, 4.0),  # 0.95 and kmax = 3k: the best settings of Skype section 8.1.2
    "kmax": Refill(KMAX, 3.0, 3.0),
}


def find_refill(name: str) -> Refill:
    if name not in REFILLS:
        raise CatalogueError(f"refill {name!r} given; there are {', '.join(REFILLS)}")
    return REFILLS[name]
