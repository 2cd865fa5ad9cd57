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
    HOT,
    LANE_TOP,
    LANES,
    LEAF_MOST,
    NEVER,
    NONE,
    ROW_TOP,
    RUN,
    STATE_SIZE,
    Strata,
)

SPARE_LANES, SPARE_BRANCHES, SPARE_ROWS = 64 * LANES, 64, 64  # more than one insertion takes


class Arrays:
    """Room for lists. Grows by `reserved`: a large index is never copied while others wait."""

    def __init__(self, leaf: int = LANES, fanout: int = LANES) -> None:
        self._n_terms = 0
        self._rows = np.zeros(0, dtype=np.int32)
        self._keys = np.zeros((SPARE_ROWS, 4), dtype=np.uint64)
        self._keys[0, :2] = NEVER
        self._bounds = np.zeros((0, 2, LANES), dtype=np.uint64)
        self._children = np.zeros((0, CHILD_COLUMNS), dtype=np.int32)
        self._boxes = np.zeros(0, dtype=np.uint64)
        self._entries = np.zeros(0, dtype=np.int32)
        self._others = np.zeros(0, dtype=np.int64)
        self._parents = np.zeros(0, dtype=np.int32)
        self._state = np.zeros(STATE_SIZE, dtype=np.int64)
        self._state[: BRANCH_FREE + 1] = NONE
        self._state[[LEAF_MOST, FAN_MOST]] = leaf, fanout
        self._state[[ROW_TOP, HOT]] = 1, NONE

    @property
    def view(self) -> Strata:
        """What kernels read and write; arrays of the same rows have the same length."""
        lanes = min(len(self._boxes), len(self._entries), len(self._others), len(self._parents) * LANES)
        branches = min(len(self._bounds), len(self._children))
        return Strata(
            self._rows[: self._n_terms],
            self._keys,
            self._bounds[:branches],
            self._children[:branches],
            self._boxes[:lanes],
            self._entries[:lanes],
            self._others[:lanes],
            self._parents[: lanes // LANES],
            self._state,
        )

    def emptied(self) -> Arrays:
        """The same terms, without entries."""
        made = Arrays(*map(int, self._state[[LEAF_MOST, FAN_MOST]]))
        made.know_terms(self._n_terms)
        return made

    @property
    def n_terms(self) -> int:
        return self._n_terms

    @property
    def n_rows(self) -> int:
        """Rows of keys in use, with the empty one."""
        return int(self._state[ROW_TOP])

    def know_terms(self, n_terms: int) -> None:
        """There are at least so many terms afterwards; new ones have no lists."""
        if n_terms > self._n_terms:
            self._rows = reserved(self._rows, n_terms)
            self._n_terms = n_terms

    def make_rows(self, rows: int = SPARE_ROWS) -> None:
        """Room for so many more rows of keys."""
        self._keys = reserved(self._keys, self.n_rows + rows)

    def make_room(self, lanes: int = SPARE_LANES, branches: int = SPARE_BRANCHES) -> None:
        """Room for so many more lanes and branches, and for some rows."""
        self.make_rows()
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
            "rows": self._rows[: self._n_terms],
            "keys": self._keys[: self.n_rows],
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
            "keys": used["rows"] + used["keys"],
            "branches": used["bounds"] + used["children"],
            "lanes": used["boxes"] + used["entries"] + used["others"] + used["parents"],
        }

    def state(self) -> dict[str, NDArray[Any]]:
        return self._used() | {"state": self._state}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
        made = cls()
        made._rows, made._n_terms = arrays["rows"], len(arrays["rows"])
        made._keys = arrays["keys"]
        made._bounds, made._children = arrays["bounds"], arrays["children"]
        made._boxes, made._entries, made._others = arrays["boxes"], arrays["entries"], arrays["others"]
        made._parents, made._state = arrays["parents"], arrays["state"]
        return made
