"""True-hit cells answer what GEOS would, and most of the questions."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from nearcast.indexes import polygons
from nearcast.indexes.polygons import PolygonTable, place_geometries

corner = st.tuples(st.integers(0, 16), st.integers(0, 16))
rings = st.lists(corner, min_size=3, max_size=8, unique=True).map(lambda ring: shapely.Polygon(ring).buffer(0))
shapes = st.one_of(
    rings.filter(lambda shape: not shape.is_empty),
    st.just(shapely.box(0, 0, 16, 16).difference(shapely.box(3, 3, 5, 9))),
    st.just(shapely.MultiPolygon([shapely.box(0, 0, 4, 4), shapely.box(9, 9, 16, 12)])),
    st.just(shapely.box(2, 2, 2 + 1e-300, 9)),
)
places = st.lists(st.tuples(corner, st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20)


def boxes_of(given_places: list) -> np.ndarray:
    return np.array([(x, y, x + w, y + h) for (x, y), w, h in given_places], dtype=np.float64)


def refined(table: PolygonTable, boxes: np.ndarray, entry: int) -> list[bool]:
    n = len(boxes)
    keep = np.ones(n, dtype=np.bool_)
    table.refine(boxes, np.arange(n, dtype=np.int32), np.full(n, entry, dtype=np.int32), keep)
    return keep.tolist()


@given(st.lists(shapes, min_size=1, max_size=4), places)
def test_touches_exactly_what_geos_says(given_shapes: list, given_places: list) -> None:
    table = PolygonTable(dict(enumerate(given_shapes)))
    boxes = boxes_of(given_places) / 1.3
    for entry, shape in enumerate(given_shapes):
        assert refined(table, boxes, entry) == shapely.intersects(shape, place_geometries(boxes)).tolist()


@given(shapes, shapes, places)
def test_a_freed_number_serves_another_polygon(first: object, second: object, given_places: list) -> None:
    table, boxes = PolygonTable({7: first, 2: first}), boxes_of(given_places)
    refined(table, boxes, 7)
    table.free(np.array([7, 9], dtype=np.int64))
    assert refined(table, boxes, 7) == [True] * len(boxes)  # no polygon: nothing to say
    table.put({40: second})
    assert refined(table, boxes, 40) == shapely.intersects(second, place_geometries(boxes)).tolist()
    assert refined(table, boxes, 2) == shapely.intersects(first, place_geometries(boxes)).tolist()
    again = PolygonTable.restored(table.state())
    assert refined(again, boxes, 40) == refined(table, boxes, 40)


def test_most_points_never_reach_geos(monkeypatch: pytest.MonkeyPatch) -> None:
    circle = shapely.Point(0, 0).buffer(10, quad_segs=64)
    table = PolygonTable({0: circle})
    rng = np.random.default_rng(1)
    points = np.tile(rng.uniform(-10, 10, (2000, 2)), 2)
    asked = 0
    intersects = shapely.intersects

    def counted(shapes: np.ndarray, places: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += len(places)
        return intersects(shapes, places)

    monkeypatch.setattr(polygons.shapely, "intersects", counted)
    kept = refined(table, points, 0)
    monkeypatch.undo()
    assert kept == shapely.intersects(circle, shapely.points(points[:, :2])).tolist()
    assert asked < 500
