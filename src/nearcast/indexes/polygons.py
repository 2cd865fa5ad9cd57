"""Polygons of entries: cells that lie inside or outside answer by arithmetic, GEOS the rest.

The box around a polygon has 16 by 16 cells. One that the polygon covers is a *true hit*: whoever has a point in it
touches the polygon. A point in a cell that the polygon does not touch is a true miss. Cells are found when a polygon
is first asked for, most never are; two threads that ask at once find the same. The numbers that a place is compared
with are those that GEOS was asked about, so nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from nearcast.columns.parts import polygons_from_arrays, polygons_to_arrays
from nearcast.indexes.pool import reserved

SIDE = 16  # cells in each direction
HIT, MISS, ASK = 1, -1, 0  # what a cell says
UNKNOWN = 0  # in _known: cells not looked for yet


class PolygonTable:
    """Polygons by entry number."""

    def __init__(self, shapes: Mapping[int, Any] | None = None) -> None:
        self._shapes: dict[int, Any] = {}
        self._number = np.zeros(0, dtype=np.int32)  # by entry: number of its polygon + 1, or 0
        self._free: list[int] = []
        self._top = 0
        self._corners = np.zeros((0, 4), dtype=np.float64)  # by number: west, south, width and height of a cell
        self._cells = np.zeros((0, SIDE, SIDE), dtype=np.int8)  # by number: HIT, MISS or ASK [y, x]
        self._known = np.zeros(0, dtype=np.int8)
        if shapes:
            self.put(shapes)

    def __bool__(self) -> bool:
        return bool(self._shapes)

    @property
    def nbytes(self) -> int:
        """Of what is kept beside the shapes themselves, which belong to GEOS."""
        per_polygon = sum(array[:1].nbytes for array in (self._corners, self._cells, self._known))
        return per_polygon * self._top + self._number.itemsize * (max(self._shapes, default=-1) + 1)

    def put(self, shapes: Mapping[int, Any]) -> None:
        for entry, shape in shapes.items():
            number = self._free.pop() if self._free else self._top
            self._top = max(self._top, number + 1)
            self._make_room(entry)
            self._known[number] = UNKNOWN
            self._number[entry] = number + 1
            self._shapes[entry] = shape

    def free(self, entries: NDArray[np.int64]) -> None:
        if not self._shapes:
            return
        for entry in entries[entries < len(self._number)].tolist():
            if self._shapes.pop(entry, None) is not None:
                self._free.append(int(self._number[entry]) - 1)
                self._number[entry] = 0

    def refine(
        self,
        boxes: NDArray[np.float64],
        rows: NDArray[np.int32],
        entries: NDArray[np.int32],
        keep: NDArray[np.bool_],
    ) -> None:
        """Clear `keep` of the pairs whose place does not touch the entry's polygon."""
        within = np.minimum(entries, len(self._number) - 1)
        asked = np.flatnonzero(keep & (entries < len(self._number)) & (self._number[within] > 0))
        if not len(asked):
            return
        places, asked_entries = boxes[rows[asked]], entries[asked]
        told = self._told(places, asked_entries)
        keep[asked] = told == HIT
        doubtful = np.flatnonzero(told == ASK)
        shapes = np.array([self._shapes[entry] for entry in asked_entries[doubtful].tolist()], dtype=object)
        keep[asked[doubtful]] = shapely.intersects(shapes, place_geometries(places[doubtful]))

    def state(self) -> dict[str, NDArray[Any]]:
        """The shapes; cells are found again."""
        return polygons_to_arrays(self._shapes)

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> PolygonTable:
        return cls(polygons_from_arrays(arrays))

    def _make_room(self, entry: int) -> None:
        self._number = reserved(self._number, entry + 1)
        self._corners = reserved(self._corners, self._top)
        self._cells = reserved(self._cells, self._top)
        self._known = reserved(self._known, self._top)

    def _told(self, places: NDArray[np.float64], entries: NDArray[np.int32]) -> NDArray[np.int8]:
        """What the cell with the lower left corner of a place says of all of the place."""
        numbers = self._number[entries] - 1
        for entry in np.unique(entries[self._known[numbers] == UNKNOWN]).tolist():
            self._find_cells(entry)
        west, south, width, height = self._corners[numbers].T
        x, inside_x = _cell_of(places[:, 0], west, width)
        y, inside_y = _cell_of(places[:, 1], south, height)
        told = np.where(inside_x & inside_y, self._cells[numbers, y, x], ASK)
        is_point = (places[:, :2] == places[:, 2:]).all(axis=1)
        return np.where((told == MISS) & ~is_point, ASK, told).astype(np.int8)

    def _find_cells(self, entry: int) -> None:
        shape, number = self._shapes[entry], int(self._number[entry]) - 1
        west, south, east, north = shapely.bounds(shape).tolist()
        width, height = (east - west) / SIDE, (north - south) / SIDE
        steps = np.arange(SIDE, dtype=np.float64)
        x, y = np.meshgrid(steps, steps)
        cells = shapely.box(west + x * width, south + y * height, west + (x + 1) * width, south + (y + 1) * height)
        self._corners[number] = west, south, width, height
        prepared = _own_prepared(shape)
        if width > 0 and height > 0:
            self._cells[number] = HIT * shapely.covers(prepared, cells) + MISS * shapely.disjoint(prepared, cells)
        else:
            self._cells[number] = ASK
        self._known[number] = 1


def _own_prepared(shape: Any) -> Any:
    """A prepared copy, for this thread only: preparing builds an index inside, and threads may share the shape."""
    copied = shapely.from_wkb(shapely.to_wkb(shape))
    shapely.prepare(copied)
    return copied


def _cell_of(
    at: NDArray[np.float64], low: NDArray[np.float64], step: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The cell of a coordinate, and whether it is between the very numbers that the cell was made of."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        counted = np.nan_to_num((at - low) / step, nan=0.0)
    cell = np.clip(counted, 0, SIDE - 1).astype(np.int64)
    return cell, (low + cell * step <= at) & (at <= low + (cell + 1) * step)


def place_geometries(boxes: NDArray[np.float64]) -> NDArray[np.object_]:
    """Message places as geometries: GEOS wants a degenerate box as a point or a line."""
    west, south, east, north = boxes.T
    flat = (west == east) | (south == north)
    geometries = np.empty(len(boxes), dtype=object)
    geometries[~flat] = shapely.box(west[~flat], south[~flat], east[~flat], north[~flat])
    ends = np.stack([boxes[flat][:, :2], boxes[flat][:, 2:]], axis=1)
    is_point = (ends[:, 0] == ends[:, 1]).all(axis=1)
    lines = np.empty(len(ends), dtype=object)
    lines[is_point] = shapely.points(ends[is_point, 0])
    lines[~is_point] = shapely.linestrings(ends[~is_point])
    geometries[flat] = lines
    return geometries
