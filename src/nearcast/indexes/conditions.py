"""What box and required terms cannot say: forbidden terms, phrases, circles and polygons of entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import Conditions, MessageBatch
from nearcast.errors import ColumnsError
from nearcast.indexes.polygons import PolygonTable
from nearcast.indexes.pool import Pool, reserved
from nearcast.kernels.refine import Extras, WordOrder, refine

NO_CIRCLE = np.nan


class ConditionTable:
    """Further conditions by entry number; made only when some entry has any."""

    def __init__(self) -> None:
        self._forbid, self._phrases = Pool(), Pool()
        self._forbid_from, self._phrase_from = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._forbid_count, self._phrase_count = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
        self._circles = np.zeros((0, 3), dtype=np.float64)
        self._polygons = PolygonTable()
        self._top = 0  # entries that the arrays are in use for

    @property
    def nbytes(self) -> int:
        parts = (self._forbid, self._phrases, self._polygons)
        arrays = (self._forbid_from, self._forbid_count, self._phrase_from, self._phrase_count, self._circles)
        return sum(array[: self._top].nbytes for array in arrays) + sum(part.nbytes for part in parts)

    @property
    def _arrays(self) -> Extras:
        return Extras(
            self._forbid_from,
            self._forbid_count,
            self._forbid.values,
            self._phrase_from,
            self._phrase_count,
            self._phrases.values,
            self._circles,
        )

    def put(self, entries: NDArray[np.int64], top: int, conditions: Conditions | None) -> None:
        known, self._top = self._top, top
        self._forbid_from = reserved(self._forbid_from, top)
        self._forbid_count = reserved(self._forbid_count, top)
        self._phrase_from = reserved(self._phrase_from, top)
        self._phrase_count = reserved(self._phrase_count, top)
        self._circles = reserved(self._circles, top)
        if not known:  # entries that came before the first one with conditions
            self._circles[:top] = NO_CIRCLE
        self._circles[entries] = NO_CIRCLE
        if conditions is None:
            return
        self._forbid_from[entries] = self._forbid.put(conditions.forbid_from, conditions.forbid)
        self._forbid_count[entries] = np.diff(conditions.forbid_from)
        self._phrase_from[entries] = self._phrases.put(conditions.phrase_from, conditions.phrases)
        self._phrase_count[entries] = np.diff(conditions.phrase_from)
        self._circles[entries] = conditions.circles
        self._polygons.put({int(entries[row]): shape for row, shape in conditions.polygons.items()})

    def free(self, entries: NDArray[np.int64]) -> None:
        self._forbid.free(self._forbid_from[entries], self._forbid_count[entries])
        self._phrases.free(self._phrase_from[entries], self._phrase_count[entries])
        self._forbid_count[entries] = 0
        self._phrase_count[entries] = 0
        self._circles[entries] = NO_CIRCLE
        self._polygons.free(entries)

    def holds(
        self,
        batch: MessageBatch,
        rows: NDArray[np.int32],
        message: NDArray[np.int32],
        entries: NDArray[np.int32],
        on_earth: bool,
    ) -> NDArray[np.bool_]:
        """Which candidate pairs also keep the further conditions."""
        order = batch.order
        if order is None:
            if self._phrase_count[entries].any():
                raise ColumnsError("a phrase was asked for, but this batch has no word order (use from_records)")
            empty = np.zeros(0, dtype=np.int32)
            order = WordOrder(np.zeros(batch.count + 1, dtype=np.int64), empty, empty)
        keep = np.ones(len(rows), dtype=np.bool_)
        refine(self._arrays, batch.rows, order, message, rows, entries, on_earth, keep)
        if self._polygons:
            self._polygons.refine(batch.boxes, rows, entries, keep)
        return keep

    def state(self, top: int) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "forbid_from": self._forbid_from[:top],
            "forbid_count": self._forbid_count[:top],
            "phrase_from": self._phrase_from[:top],
            "phrase_count": self._phrase_count[:top],
            "circles": self._circles[:top],
        }
        arrays |= self._polygons.state()
        arrays |= {f"forbid.{name}": array for name, array in self._forbid.state().items()}
        return arrays | {f"phrases.{name}": array for name, array in self._phrases.state().items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> ConditionTable:
        extra = cls()
        parts = ("values", "free_length", "free_start")
        extra._forbid = Pool.restored(*(arrays[f"forbid.{part}"] for part in parts))
        extra._phrases = Pool.restored(*(arrays[f"phrases.{part}"] for part in parts))
        extra._forbid_from, extra._forbid_count = arrays["forbid_from"], arrays["forbid_count"]
        extra._phrase_from, extra._phrase_count = arrays["phrase_from"], arrays["phrase_count"]
        extra._circles = arrays["circles"]
        extra._top = len(extra._circles)
        extra._polygons = PolygonTable.restored(arrays)
        return extra
