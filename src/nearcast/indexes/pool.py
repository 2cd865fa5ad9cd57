"""Growing arrays whose freed parts are used again, so that churn does not grow memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def enlarged(array: NDArray[Any], needed: int, fill: float = 0) -> NDArray[Any]:
    """The array itself if it has `needed` rows, else a copy with at least half as many again."""
    if needed <= len(array):
        return array
    capacity = max(needed, len(array) + (len(array) >> 1), 16)
    larger = np.full((capacity, *array.shape[1:]), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


class FreeNumbers:
    """Hands out dense numbers, freed ones first."""

    def __init__(self) -> None:
        self.top = 0
        self._free: list[NDArray[np.int64]] = []
        self._n_free = 0

    @property
    def n_free(self) -> int:
        return self._n_free

    def take(self, n: int) -> NDArray[np.int64]:
        reused = np.zeros(0, dtype=np.int64)
        if self._n_free:
            free = np.concatenate(self._free)
            reused, rest = free[:n], free[n:]
            self._free, self._n_free = [rest], len(rest)
        fresh = np.arange(self.top, self.top + n - len(reused), dtype=np.int64)
        self.top += len(fresh)
        return np.concatenate([reused, fresh])

    def give_back(self, numbers: NDArray[np.int64]) -> None:
        self._free.append(np.asarray(numbers, dtype=np.int64))
        self._n_free += len(numbers)

    def state(self) -> NDArray[np.int64]:
        """Top, then the free numbers."""
        return np.concatenate([np.array([self.top], dtype=np.int64), *self._free])

    @classmethod
    def restored(cls, state: NDArray[np.int64]) -> FreeNumbers:
        numbers = cls()
        numbers.top = int(state[0])
        numbers.give_back(np.array(state[1:]))
        return numbers


class Pool:
    """Runs of int32 of any length in one array; a freed run serves the next run of the same length."""

    def __init__(self) -> None:
        self.values: NDArray[np.int32] = np.zeros(16, dtype=np.int32)
        self.top = 0
        self._free: dict[int, list[NDArray[np.int64]]] = {}

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    def put(self, run_from: NDArray[np.int64], run: NDArray[np.int32]) -> NDArray[np.int64]:
        """Store all runs of a CSR pair; where each starts now."""
        counts = np.diff(run_from)
        starts = np.zeros(len(counts), dtype=np.int64)
        for length in np.unique(counts).tolist():
            if length:
                chosen = np.flatnonzero(counts == length)
                starts[chosen] = self._places(length, len(chosen))
        self.values = enlarged(self.values, self.top)
        positions = np.arange(len(run)) + np.repeat(starts - run_from[:-1], counts)
        self.values[positions] = run
        return starts

    def _places(self, length: int, n: int) -> NDArray[np.int64]:
        free = self._free.pop(length, [])
        places = np.concatenate(free) if free else np.zeros(0, dtype=np.int64)
        if len(places) > n:
            self._free[length] = [places[n:]]
        fresh = max(0, n - len(places))
        new = self.top + length * np.arange(fresh, dtype=np.int64)
        self.top += length * fresh
        return np.concatenate([places[:n], new])

    def free(self, starts: NDArray[np.int64], counts: NDArray[np.int32]) -> None:
        for length in np.unique(counts).tolist():
            if length:
                self._free.setdefault(int(length), []).append(starts[counts == length])

    def state(self) -> dict[str, NDArray[Any]]:
        lengths = sorted(self._free)
        starts = [np.concatenate(self._free[length]) for length in lengths]
        return {
            "values": self.values[: self.top],
            "free_length": np.repeat(lengths, [len(s) for s in starts]).astype(np.int64),
            "free_start": np.concatenate([np.zeros(0, dtype=np.int64), *starts]),
        }

    @classmethod
    def restored(cls, values: NDArray[Any], free_length: NDArray[Any], free_start: NDArray[Any]) -> Pool:
        pool = cls()
        pool.values, pool.top = values, len(values)
        pool.free(np.array(free_start), np.array(free_length))
        return pool
