"""Many growing lists, from Python: see `kernels.lists`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.pool import enlarged
from nearcast.kernels import lists as kernels
from nearcast.kernels.lists import N_CLASSES, NO_RUN, TOP, Lists

FIRST_POOL = 64


class GrowingLists:
    """Lists numbered from 0, each of int32 values; room grows here, never inside a kernel."""

    def __init__(self) -> None:
        self._n = 0
        self._start = np.zeros(0, dtype=np.int64)
        self._count = np.zeros(0, dtype=np.int32)
        self._klass = np.zeros(0, dtype=np.int8)
        self._pool = np.zeros(FIRST_POOL, dtype=np.int32)
        self._state = np.full(N_CLASSES + 1, NO_RUN, dtype=np.int64)
        self._state[TOP] = 0

    def __len__(self) -> int:
        return self._n

    @property
    def arrays(self) -> Lists:
        """What kernels read and write."""
        return Lists(self._start[: self._n], self._count[: self._n], self._klass[: self._n], self._pool, self._state)

    @property
    def nbytes(self) -> int:
        return self._n * (8 + 4 + 1) + int(self._state[TOP]) * 4 + self._state.nbytes

    def make_room(self, n_lists: int) -> None:
        """There are at least n_lists lists afterwards; new ones are empty."""
        if n_lists > self._n:
            self._start = enlarged(self._start, n_lists)
            self._count = enlarged(self._count, n_lists)
            self._klass = enlarged(self._klass, n_lists, NO_RUN)
            self._n = n_lists

    def enlarge_pool(self, more: int = 1) -> None:
        """Half as many pool elements again, at least `more`."""
        self._pool = enlarged(self._pool, len(self._pool) + more)

    def append(self, targets: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        """Append values[i] to list targets[i]."""
        into, what = targets.astype(np.int64), values.astype(np.int32)
        done = 0
        while (done := kernels.append_all(self.arrays, into, what, done)) < len(into):
            self.enlarge_pool(len(into) - done)

    def drop(self, targets: NDArray[np.int64], values: NDArray[np.int64], n_values: int) -> None:
        """Remove the values from the lists named in targets. All values in any list are below n_values."""
        marked = np.zeros(n_values, dtype=np.bool_)
        marked[values] = True
        kernels.drop_marked(self.arrays, np.unique(targets).astype(np.int64), marked)

    def values(self, at: int) -> NDArray[np.int32]:
        start = self._start[at]
        return self._pool[start : start + self._count[at]]

    def state(self) -> dict[str, NDArray[Any]]:
        top = int(self._state[TOP])
        return {
            "start": self._start[: self._n],
            "count": self._count[: self._n],
            "klass": self._klass[: self._n],
            "pool": self._pool[:top],
            "state": self._state,
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> GrowingLists:
        lists = cls()
        lists._start, lists._count, lists._klass = arrays["start"], arrays["count"], arrays["klass"]
        lists._n = len(lists._start)
        lists._pool, lists._state = arrays["pool"], arrays["state"]
        return lists
