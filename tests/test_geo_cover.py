"""Covers lose nothing: a filter box has every point of its region."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.geo import EARTH_RADIUS_M, Box, Circle, circle, earth, plane, point
from tests.coordinates import covered, flat, lats, lons, plain_boxes, quick


@settings(max_examples=200, deadline=None)
@given(lons, lats, lons, lats)
def test_a_circle_up_to_a_point_covers_the_point(x: float, y: float, px: float, py: float) -> None:
    place = point(px, py)
    radius = min(earth.distance_to_box(x, y, p) for p in earth.place_boxes(place))
    region = circle(x, y, radius)
    assert earth.intersects(region, place)
    assert covered(earth, region, place)


@settings(max_examples=200, deadline=None)
@given(
    lons,
    lats,
    st.floats(-9, 7.4).map(lambda e: 10.0**e),
    st.floats(0, 360),
    st.sampled_from([1.0, 0.999, 0.5]),
)
def test_a_circle_covers_all_around(x: float, y: float, radius: float, bearing: float, part: float) -> None:
    angle, turn, lat = part * radius / EARTH_RADIUS_M, math.radians(bearing), math.radians(y)
    sine = math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(turn)
    py = math.degrees(math.asin(max(-1.0, min(1.0, sine))))
    east = math.atan2(math.sin(turn) * math.sin(angle) * math.cos(lat), math.cos(angle) - math.sin(lat) * sine)
    px = (x + math.degrees(east) + 540.0) % 360.0 - 180.0
    region, place = circle(x, y, radius), point(px, py)
    assert covered(earth, region, place) or not earth.intersects(region, place)
    assert all(-180 <= b.west <= b.east <= 180 for b in earth.region_boxes(region))


@pytest.mark.parametrize("lat", [0.0, 30.0, -60.0, 89.0, 89.999999])
@pytest.mark.parametrize("short", [0.0, 1e-9, 1e-6, 1e-3, 1.0])
def test_a_circle_that_all_but_reaches_the_pole(lat: float, short: float) -> None:
    """The widest longitude there depends on the radius like a square root: the hardest to round."""
    to_pole = (90 - abs(lat)) * math.pi / 180 * EARTH_RADIUS_M
    region = circle(0, lat, max(0.0, to_pole - short))
    for degrees in np.linspace(0.0, 180.0, 241):
        for py in (lat, math.copysign(90 - 1e-7, lat), math.copysign(90 - (90 - abs(lat)) / 3, lat)):
            place = point(float(degrees), py)
            assert covered(earth, region, place) or not earth.intersects(region, place)


@quick
@given(lons, lats, plain_boxes(), st.sampled_from([1.0, 0.5, 2.0]))
def test_a_circle_up_to_a_box_covers_the_box(x: float, y: float, place: Box, scale: float) -> None:
    radius = min(earth.distance_to_box(x, y, p) for p in earth.place_boxes(place)) * scale
    region = circle(x, y, radius)
    assert earth.intersects(region, place) or scale < 1
    assert covered(earth, region, place) or not earth.intersects(region, place)


finite = st.floats(-1e6, 1e6) | st.integers(-4, 4).map(float) | st.floats(-1e-160, 1e-160)


@quick
@given(finite, finite, finite, finite)
def test_a_plane_circle_up_to_a_point_covers_the_point(x: float, y: float, px: float, py: float) -> None:
    space = plane(-1e7, -1e7, 1e7, 1e7)
    region = circle(x, y, space.distance(x, y, px, py))
    assert space.intersects(region, point(px, py))
    assert covered(space, region, point(px, py))


def test_covers_stay_finite() -> None:
    (cover,) = flat.region_boxes(Circle(1e308, 0, 1e308))
    assert flat.intersects(Circle(1e200, 0, 1e308), point(0, 0)) is False, "the square overflows to infinity"
    assert cover.west <= 0
    assert earth.region_boxes(circle(0, 0, 1e308)) == (earth.bounds,)


small_boxes = st.tuples(*[st.integers(-3, 3)] * 4).map(
    lambda v: Box(min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3]))
)


@quick
@given(small_boxes, small_boxes)
def test_boxes_meet_when_they_share_an_integer_point(a: Box, b: Box) -> None:
    def cells(c: Box) -> set[tuple[int, int]]:
        xs, ys = range(int(c.west), int(c.east) + 1), range(int(c.south), int(c.north) + 1)
        return {(x, y) for x in xs for y in ys}

    for space in (earth, flat):
        assert space.intersects(a, b) == bool(cells(a) & cells(b))
