"""Distances: known ones, and those to boxes as the least over their points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from nearcast.geo import EARTH_RADIUS_M, Box, box, box_distance_earth, earth, haversine, point
from tests.coordinates import flat, lats, lons, plain_boxes, quick


def sphere_distance(lon: float, lat: float, lons: np.ndarray, lats: np.ndarray) -> np.ndarray:
    """Angle between unit vectors by atan2: accurate everywhere and unlike the haversine formula."""

    def unit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = np.radians(x), np.radians(y)
        return np.stack([np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)], axis=-1)

    a, b = unit(np.asarray(lon), np.asarray(lat)), unit(lons, lats)
    return EARTH_RADIUS_M * np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), b @ a)


def test_known_distances() -> None:
    assert haversine(0, 0, 0, 90) == pytest.approx(math.pi / 2 * EARTH_RADIUS_M, rel=1e-15)
    assert haversine(0, 0, 180, 0) == earth.max_distance
    assert haversine(179.5, 0, -179.5, 0) == pytest.approx(haversine(0, 0, 1, 0), rel=1e-12)
    assert haversine(-0.1278, 51.5074, 2.3522, 48.8566) == pytest.approx(343_557, abs=2)  # London, Paris
    assert earth.distance(3, 4, 3, 4) == 0.0
    assert flat.distance(0, 0, 3, 4) == 5.0
    assert flat.distance_to_box(0, 0, box(3, 4, 9, 9)) == 5.0
    assert flat.distance_to_box(5, 5, box(3, 4, 9, 9)) == 0.0


@quick
@given(lons, lats, lons, lats)
def test_haversine_is_symmetric_and_close_to_the_angle(x1: float, y1: float, x2: float, y2: float) -> None:
    d = haversine(x1, y1, x2, y2)
    assert d == haversine(x2, y2, x1, y1)
    assert d == earth.distance_to_box(x1, y1, point(x2, y2)), "to the last bit"
    tolerance = 1e-6 if d < 0.99 * earth.max_distance else 0.5
    assert d == pytest.approx(float(sphere_distance(x1, y1, np.array(x2), np.array(y2))), abs=tolerance)


@settings(max_examples=200, deadline=None)
@given(lons, lats, plain_boxes())
@example(0.0, 60.0, Box(100, -80, 120, -70))  # the foot of the meridian lies beyond the far pole
@example(0.0, 60.0, Box(80, 0, 120, 90))  # the foot lies inside a side
@example(180.0, 0.0, Box(-180, 10, -170, 20))
def test_distance_to_a_box_is_the_least_over_its_points(lon: float, lat: float, b: Box) -> None:
    xs, ys = np.meshgrid(np.linspace(b.west, b.east, 40), np.linspace(b.south, b.north, 40))
    least = float(sphere_distance(lon, lat, xs, ys).min())
    d = earth.distance_to_box(lon, lat, b)
    assume(d < 0.99 * earth.max_distance)  # near the antipode the formula itself errs by up to 0.1 m
    step = math.radians((b.east - b.west) / 39 + (b.north - b.south) / 39) * EARTH_RADIUS_M
    assert d <= least + 1e-6
    assert d >= least - step - 1e-6
    if b.west <= lon <= b.east and b.south <= lat <= b.north:
        assert d == 0.0


def test_distance_to_a_box_across_the_pole() -> None:
    # The near way to the far side of the earth leads over the pole; so may the nearest point of a box.
    assert box_distance_earth(0, 80, 180, 60, 180, 70) == haversine(0, 80, 180, 70)
    assert box_distance_earth(0, 50, 90, 0, 100, 90) == pytest.approx(haversine(0, 50, 0, 90))


def test_180_is_minus_180_for_boxes_and_a_rounding_away_for_points() -> None:
    assert box_distance_earth(180, 15, -180, 10, -170, 20) == 0.0
    assert box_distance_earth(-180, 15, 170, 10, 180, 20) == 0.0
    assert box_distance_earth(180, 15, -180, 15, -180, 15) == haversine(180, 15, -180, 15) > 0.0


@quick
@given(*[st.integers(-6, 6)] * 6)
def test_plane_distance_to_a_box(x: int, y: int, x1: int, y1: int, x2: int, y2: int) -> None:
    b = Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    xs, ys = range(int(b.west), int(b.east) + 1), range(int(b.south), int(b.north) + 1)
    assert flat.distance_to_box(x, y, b) == min(flat.distance(x, y, px, py) for px in xs for py in ys)
