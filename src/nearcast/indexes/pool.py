"""Growing arrays whose freed parts are used again, so that churn does not grow memory."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.mapped import RESERVED_ROWS, ROOM_FROM, room_behind, row_bytes, zero_pages


def reserved(array: NDArray[Any], needed: int) -> NDArray[Any]:
    """The array itself if it has `needed` rows, else a larger one with zeros behind.

    For arrays that grow while others wait: beyond `ROOM_FROM` the larger one is a range of addresses for
    `RESERVED_ROWS` rows, of which only the used pages take memory, so that it never has to be copied
    again. One that came from a file has such a range behind it.
    """
    if needed <= len(array):
        return array
    longer = room_behind(array, needed)
    if longer is not None:
        return longer
    capacity = max(needed, len(array) + (len(array) >> 1), 16)
    if capacity * row_bytes(array) < ROOM_FROM:
        larger = np.zeros((capacity, *array.shape[1:]), dtype=array.dtype)
    else:
        larger = _zero_pages(max(capacity, RESERVED_ROWS), capacity, array)
    larger[: len(array)] = array
    return larger


def _zero_pages(rows: int, least: int, like: NDArray[Any]) -> NDArray[Any]:
    """Zeros that take memory when they are written; fewer rows where the system gives no such range."""
    row = row_bytes(like)
    try:
        pages = zero_pages(rows * row)
    except (OSError, ValueError, AttributeError):
        return np.zeros((least, *like.shape[1:]), dtype=like.dtype)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # for what is needed now; what comes later comes in small pages, evenly
        pages.madvise(mmap.MADV_HUGEPAGE, 0, -(-least * row // mmap.PAGESIZE) * mmap.PAGESIZE)
    return np.frombuffer(pages, dtype=like.dtype).reshape(-1, *like.shape[1:])


def enlarged(array: NDArray[Any], needed: int, fill: float = 0) -> NDArray[Any]:
    """The array itself if it has `needed` rows, else a copy with at least half as many again."""
    if needed <= len(array):
        return array
    capacity = max(needed, len(array) + (len(array) >> 1), 16)
    larger = np.full((capacity, *array.shape[1:]), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


MANY_PARTS = 4096  # arrays of free numbers before they become one


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
        parts: list[NDArray[np.int64]] = []
        missing = n
        while missing and self._free:
            last = self._free.pop()
            if len(last) > missing:
                self._free.append(last[:-missing])
                last = last[-missing:]
            parts.append(last)
            missing -= len(last)
        self._n_free -= n - missing
        parts.reverse()  # as if all free numbers were one array, so that a restored one gives the same
        fresh = np.arange(self.top, self.top + missing, dtype=np.int64)
        self.top += missing
        return np.concatenate([*parts, fresh]) if parts else fresh

    def give_back(self, numbers: NDArray[np.int64]) -> None:
        self._free.append(np.asarray(numbers, dtype=np.int64))
        self._n_free += len(numbers)
        if len(self._free) > MANY_PARTS:
            self._free = [np.concatenate(self._free)]

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
        return self.top * self.values.itemsize

    def put(self, run_from: NDArray[np.int64], run: NDArray[np.int32]) -> NDArray[np.int64]:
        """Store all runs of a CSR pair; where each starts now."""
        if not self._free:  # nothing to use again: one copy
            first, self.top = self.top, self.top + len(run)
            self.values = reserved(self.values, self.top)
            self.values[first : self.top] = run
            return run_from[:-1] + first
        counts = np.diff(run_from)
        starts = np.zeros(len(counts), dtype=np.int64)
        for length in _distinct(counts):
            chosen = np.flatnonzero(counts == length)
            starts[chosen] = self._places(length, len(chosen))
        self.values = reserved(self.values, self.top)
        positions = np.arange(len(run)) + np.repeat(starts - run_from[:-1], counts)
        self.values[positions] = run
        return starts

    def _places(self, length: int, n: int) -> NDArray[np.int64]:
        free = self._free.pop(length, [])
        parts: list[NDArray[np.int64]] = []
        missing = n
        while missing and free:
            last = free.pop()
            if len(last) > missing:
                free.append(last[:-missing])
                last = last[-missing:]
            parts.append(last)
            missing -= len(last)
        if free:
            self._free[length] = free
        new = self.top + length * np.arange(missing, dtype=np.int64)
        self.top += length * missing
        return np.concatenate([*parts, new])

    def free(self, starts: NDArray[Any], counts: NDArray[Any]) -> None:
        for length in _distinct(counts):
            self._free.setdefault(length, []).append(starts[counts == length].astype(np.int64))

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


def _distinct(counts: NDArray[Any]) -> list[int]:
    """The lengths above zero that occur."""
    return [int(length) for length in np.flatnonzero(np.bincount(counts)) if length]
