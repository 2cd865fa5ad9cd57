"""Regions and spaces: values, what exists, and that touching counts."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from nearcast.errors import RegionError
from nearcast.geo import (
    EARTH_RADIUS_M,
    Box,
    Earth,
    Region,
    Space,
    box,
    circle,
    earth,
    multipolygon,
    plane,
    point,
    polygon,
)
from tests.coordinates import flat

square = [(0, 0), (8, 0), (8, 8), (0, 8)]


# --- regions as values


def test_regions_are_values_that_compare_hash_and_pickle() -> None:
    for make in (
        lambda: box(170, -10, -170, 10),
        lambda: circle(139.70, 35.66, metres=1500),
        lambda: polygon(square, [[(2, 2), (4, 2), (4, 4)]]),
        lambda: multipolygon([polygon(square), polygon([(20, 0), (21, 0), (21, 1)])]),
    ):
        one, two = make(), make()
        assert one == two
        assert hash(one) == hash(two)
        assert pickle.loads(pickle.dumps(one)) == one
        assert "geometry" not in repr(one)


def test_numbers_become_floats_and_rings_become_closed() -> None:
    assert Box(np.float32(1), np.int64(2), 3, 4) == Box(1.0, 2.0, 3.0, 4.0)
    assert type(box(1, 2, 3, 4).west) is float
    assert polygon(square) == polygon([*square, square[0]]) == polygon(np.array(square))
    assert polygon(square).exterior[0] == polygon(square).exterior[-1] == (0.0, 0.0)


def test_a_point_is_a_degenerate_box() -> None:
    assert point(1, 2) == Box(1, 2, 1, 2)
    assert point(1, 2).is_point
    assert not box(1, 2, 1, 3).is_point


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: box(0, 1, 0, 0), "south <= north, got south 1.0 and north 0.0"),
        (lambda: box(True, 0, 1, 1), "west must be a number, got True"),
        (lambda: box("1", 0, 1, 1), "west must be a number, got '1'"),
        (lambda: box(0, math.nan, 1, 1), "south must be a finite number, got nan"),
        (lambda: box(0, 0, 10**400, 1), "east must be a finite number"),
        (lambda: box(0, 0, 10**5000, 1), "east must be a finite number"),
        (lambda: circle(0, 0, metres=-1), "radius must be 0 or more, got -1.0"),
        (lambda: circle(0, 0, metres=math.inf), "radius must be a finite number, got inf"),
        (lambda: polygon([(0, 0), (1, 1), (0, 0)]), "at least 3 distinct points, got 2"),
        (lambda: polygon([(0, 0), (1, 1), (2, 2)]), "must not cross itself"),
        (lambda: polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), r"Self-intersection\[0.5 0.5\]"),
        (lambda: polygon([(0, 0), (1, 1), (1, 0, 5)]), r"pair of numbers \(x, y\)"),
        (lambda: polygon([(0, 0), (1, 1), 7]), "must be a sequence, got 7"),
        (lambda: polygon("abc"), "must be a sequence, got 'abc'"),
        (lambda: polygon([(0, 0), (1, False), (1, 2)]), "must be a number, got False"),
        (lambda: polygon([(0, 0), (1e101, 0), (1, 2)]), "within ±1e"),
        (lambda: polygon(square, [[(9, 9), (10, 9), (10, 10)]]), "Hole lies outside shell"),
        (lambda: polygon(square, 3), "holes must be a sequence, got 3"),
        (lambda: multipolygon([]), "one or more Polygon values"),
        (lambda: multipolygon([square]), "one or more Polygon values"),
        (lambda: multipolygon([polygon(square), polygon(square)]), "merge polygons that overlap"),
    ],
)
def test_what_no_space_has_is_refused(make: Callable[[], Region], words: str) -> None:
    with pytest.raises(RegionError, match=words):
        make()


# --- what exists in a space


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (point(200, 10), r"a point needs longitudes in \[-180, 180\].*got longitude 200.0, latitude 10.0$"),
        (box(170, 0, 190, 1), "west > east when it crosses the 180th meridian"),
        (box(35, 139, 36, 140), "longitude and latitude may be swapped"),
        (circle(35.66, 139.70, 10), "longitude and latitude may be swapped"),
        (circle(100, 95, 10), r"latitude 95.0$"),
        (polygon([(35, 139), (36, 139), (36, 140)]), "longitude and latitude may be swapped"),
        (polygon([(0, 0), (361, 0), (300, 1)]), r"\[-360, 360\].*got longitude 361.0"),
        (polygon([(-200, 0), (170, 0), (0, 1)]), "span 360 degrees of longitude, got -200.0 to 170.0"),
        ("everywhere", "a region is a Box, Circle, Polygon or MultiPolygon, got 'everywhere'"),
    ],
)
def test_earth_refuses(region: Region, words: str) -> None:
    with pytest.raises(RegionError, match=words):
        earth.check_region(region)


def test_a_place_is_a_box_in_every_space() -> None:
    for space in (earth, flat):
        assert space.check_place(box(1, 2, 3, 4)) == box(1, 2, 3, 4)
        with pytest.raises(RegionError, match=r"a place is a Box .*got Circle"):
            space.check_place(circle(0, 0, 1))  # type: ignore[arg-type]


def test_earth_takes_its_whole_surface() -> None:
    assert earth.check_place(box(170, -90, -170, 90)) == box(170, -90, -170, 90)
    assert earth.check_region(earth.bounds) == earth.bounds
    assert earth.check_region(circle(-180, 90, 1e9)) == circle(-180, 90, 1e9)
    everything = polygon([(-180, -90), (180, -90), (180, 90), (-180, 90)])
    assert earth.check_region(everything) is everything


def test_a_plane_has_places_inside_and_regions_beyond() -> None:
    assert flat.check_place(point(100, -100)) == point(100, -100)
    for region in (box(-500, 0, 500, 1), circle(900, 0, 1), polygon([(0, 0), (900, 0), (0, 900)])):
        assert flat.check_region(region) is region
    with pytest.raises(RegionError, match="must lie within the plane's Box"):
        flat.check_place(point(100.5, 0))
    for check in (flat.check_place, flat.check_region):
        with pytest.raises(RegionError, match=r"west <= east, got west 2\.0 and east 1\.0"):
            check(box(2, 0, 1, 1))
    with pytest.raises(RegionError, match="a region is a Box"):
        flat.check_region(None)  # type: ignore[arg-type]


def test_spaces_are_values_with_a_name_bounds_and_a_largest_distance() -> None:
    assert plane(0, 0, 3, 4) == plane(Box(0, 0, 3, 4))
    assert plane(0, 0, 3, 4).max_distance == 5.0
    assert earth == Earth()
    assert earth.max_distance == math.pi * EARTH_RADIUS_M
    assert (earth.name, flat.name) == ("earth", "plane")
    for space in (earth, flat):
        assert pickle.loads(pickle.dumps(space)) == space
        assert hash(pickle.loads(pickle.dumps(space))) == hash(space)
    for bounds in (Box(0, 0, 0, 0), Box(-1e308, -1e308, 1e308, 1e308)):
        with pytest.raises(RegionError, match="finite diagonal above 0"):
            plane(bounds)
    with pytest.raises(RegionError, match="west <= east"):
        plane(5, 0, 0, 1)


# --- touching counts


@pytest.mark.parametrize("space", [earth, flat])
@pytest.mark.parametrize(
    "region",
    [box(0, 0, 8, 8), polygon(square), multipolygon([polygon(square), polygon([(20, 0), (21, 0), (21, 1)])])],
)
def test_borders_and_corners_belong(space: Space, region: Region) -> None:
    for place in (point(0, 0), point(8, 3), point(4, 8), box(8, 8, 9, 9), box(-1, 3, 0, 4), box(3, -2, 5, 0)):
        assert space.intersects(region, place)
    assert space.intersects(region, box(-5, -5, 50, 50)), "a place around the region"
    assert space.intersects(region, box(4, -5, 4, 50)), "a line across"
    assert space.intersects(region, box(-5, 4, 50, 4)), "a line along"
    beyond = math.nextafter(8, 9)
    for place in (point(beyond, 3), point(4, beyond), box(beyond, 0, 9, 8), box(8, beyond, 8, 9)):
        assert not space.intersects(region, place)


def test_a_circle_includes_its_border() -> None:
    at = (139.701, 35.659)
    radius = earth.distance(139.70, 35.66, *at)
    assert earth.intersects(circle(139.70, 35.66, radius), point(*at))
    assert not earth.intersects(circle(139.70, 35.66, math.nextafter(radius, 0)), point(*at))
    assert flat.intersects(circle(0, 0, 5), point(3, 4))
    assert flat.intersects(circle(0, 0, 5), box(3, 4, 9, 9))
    assert not flat.intersects(circle(0, 0, math.nextafter(5, 0)), box(3, 4, 9, 9))
    assert flat.intersects(circle(0, 0, 0), point(0, 0))
    assert earth.intersects(circle(10, 10, 0), box(9, 9, 11, 11))


def test_a_hole_excludes_its_inside_but_not_its_border() -> None:
    ring = polygon(square, [[(2, 2), (6, 2), (6, 6), (2, 6)]])
    for space in (earth, flat):
        assert space.intersects(ring, point(2, 4))
        assert space.intersects(ring, point(2, 2))
        assert space.intersects(ring, box(3, 3, 4, 6))
        assert not space.intersects(ring, point(4, 4))
        assert not space.intersects(ring, box(3, 3, 5, 5))
        assert not space.intersects(ring, box(3, 3, 3, 5))


def test_degenerate_boxes_are_regions_too() -> None:
    for space in (earth, flat):
        assert space.intersects(point(1, 2), point(1, 2))
        assert space.intersects(box(1, 0, 1, 5), box(0, 3, 2, 3))
        assert not space.intersects(box(1, 0, 1, 5), point(1, math.nextafter(5, 6)))
