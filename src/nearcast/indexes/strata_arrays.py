"""The arrays of `strata` from Python: made, enlarged, saved; kernels only ever see `view`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.pool import reserved
from nearcast.kernels.strata_layout import (
    BRANCH_FREE,
    BRANCH_TOP,
    CHILD_COLUMNS,
    FAN_MOST,
    LANE_TOP,
    LANES,
    LEAF_MOST,
    NEVER,
    NONE,
    RUN,
    STATE_SIZE,
    Strata,
)

SPARE_LANES, SPARE_BRANCHES = 64 * LANES, 64  # more than one insertion takes


class Arrays:
    """Room for lists. Grows by `reserved`: a large index is never copied while others wait."""

    def __init__(self, leaf: int = LANES, fanout: int = LANES) -> None:
        self._n_keys = 0
        self._keys = np.zeros((0, 4), dtype=np.uint64)
        self._bounds = np.zeros((0, 2, LANES), dtype=np.uint64)
        self._children = np.zeros((0, CHILD_COLUMNS), dtype=np.int32)
        self._boxes = np.zeros(0, dtype=np.uint64)
        self._entries = np.zeros(0, dtype=np.int32)
        self._others = np.zeros(0, dtype=np.int64)
        self._parents = np.zeros(0, dtype=np.int32)
        self._state = np.zeros(STATE_SIZE, dtype=np.int64)
        self._state[: BRANCH_FREE + 1] = NONE
        self._state[[LEAF_MOST, FAN_MOST]] = leaf, fanout

    @property
    def view(self) -> Strata:
        """What kernels read and write; arrays of the same rows have the same length."""
        lanes = min(len(self._boxes), len(self._entries), len(self._others), len(self._parents) * LANES)
        branches = min(len(self._bounds), len(self._children))
        return Strata(
            self._keys[: self._n_keys],
            self._bounds[:branches],
            self._children[:branches],
            self._boxes[:lanes],
            self._entries[:lanes],
            self._others[:lanes],
            self._parents[: lanes // LANES],
            self._state,
        )

    def emptied(self) -> Arrays:
        """The same keys, without entries."""
        made = Arrays(*map(int, self._state[[LEAF_MOST, FAN_MOST]]))
        made.make_keys(self._n_keys)
        return made

    @property
    def n_keys(self) -> int:
        return self._n_keys

    def make_keys(self, n_keys: int) -> None:
        """There are at least n_keys keys afterwards; new ones have empty lists."""
        if n_keys > self._n_keys:
            self._keys = reserved(self._keys, n_keys)
            self._keys[self._n_keys : n_keys, :2] = NEVER
            self._n_keys = n_keys

    def make_room(self, lanes: int = SPARE_LANES, branches: int = SPARE_BRANCHES) -> None:
        """Room for so many more lanes and branches."""
        lanes = -(-(int(self._state[LANE_TOP]) + lanes + 4 * LANES) // LANES) * LANES
        branches += int(self._state[BRANCH_TOP])
        self._boxes = reserved(self._boxes, lanes)
        self._entries = reserved(self._entries, lanes)
        self._others = reserved(self._others, lanes)
        self._parents = reserved(self._parents, lanes // LANES)
        self._bounds = reserved(self._bounds, branches)
        self._children = reserved(self._children, branches)

    def _used(self) -> dict[str, NDArray[Any]]:
        lanes, branches = int(self._state[LANE_TOP]), int(self._state[BRANCH_TOP])
        return {
            "keys": self._keys[: self._n_keys],
            "bounds": self._bounds[:branches],
            "children": self._children[:branches],
            "boxes": self._boxes[: lanes + RUN],  # kernels read a few lanes past the end of a run
            "entries": self._entries[: lanes + RUN],
            "others": self._others[:lanes],
            "parents": self._parents[: lanes // LANES],
        }

    def nbytes(self) -> dict[str, int]:
        used = {name: array.nbytes for name, array in self._used().items()}
        return {
            "keys": used["keys"],
            "branches": used["bounds"] + used["children"],
            "lanes": used["boxes"] + used["entries"] + used["others"] + used["parents"],
        }

    def state(self) -> dict[str, NDArray[Any]]:
        return self._used() | {"state": self._state}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
        made = cls()
        made._keys, made._n_keys = arrays["keys"], len(arrays["keys"])
        made._bounds, made._children = arrays["bounds"], arrays["children"]
        made._boxes, made._entries, made._others = arrays["boxes"], arrays["entries"], arrays["others"]
        made._parents, made._state = arrays["parents"], arrays["state"]
        return made
