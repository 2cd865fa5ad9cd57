"""Which messages beyond the best k a buffer keeps: Skype section 6."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import CatalogueError
from nearcast.kernels import rank_refill
from nearcast.kernels.rank_refill import CSKYBAND, FACTOR, KIND, KMAX, N_POLICY, REACH, SKYBAND

COSTS = {rank_refill.SCAN_COST: 4.0, rank_refill.SCORE_COST: 400.0, rank_refill.TOUCH_COST: 150.0}
"""Measured, in units of moving an entry of a buffer (about 2 ns): a comparison and an exact score, with what a search
does around them, so that a search costs what the experiment `searches` says; finding a buffer."""


@dataclass(frozen=True, slots=True)
class Refill:
    """A policy. `factor` is kmax / k, or the threshold's ratio to the k-th score; `room` is room / k."""

    kind: int
    factor: float
    room: float

    def policy(self) -> NDArray[np.float64]:
        """What kernels read."""
        values = np.zeros(N_POLICY)
        values[KIND], values[FACTOR] = self.kind, self.factor
        values[rank_refill.EXPIRY_SHARE] = 0.5
        for at, cost in COSTS.items():
            values[at] = cost
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


class Pace:
    """Arrivals and expiries of late, in a window of time (Skype section 6.3); in a count window they are alike."""

    RECENT = 0.25  # of the window: what is older counts for less and less
    EXTREME = 0.2  # a share below this one, or as near to 1, does not last

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._arrived = self._expired = 0.0
        self._now = -math.inf

    def share_of_expiries(self, arrived: int, expired: int, now: float) -> float:
        """Take note of what happened until now; the share of expiries in all that happened of late."""
        if self._seconds is None:
            return 0.5
        fading = math.exp(-(now - self._now) / (self.RECENT * self._seconds)) if math.isfinite(self._now) else 0.0
        self._arrived, self._expired = self._arrived * fading + arrived, self._expired * fading + expired
        self._now = now
        share = (self._expired + 1.0) / (self._arrived + self._expired + 2.0)
        return min(max(share, self.EXTREME), 1.0 - self.EXTREME)


def find_refill(name: str) -> Refill:
    if name not in REFILLS:
        raise CatalogueError(f"refill {name!r} given; there are {', '.join(REFILLS)}")
    return REFILLS[name]
