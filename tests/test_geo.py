"""Regions and spaces: what exists, how far apart it is, and what intersects."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from nearcast.errors import RegionError
from nearcast.geo import (
    EARTH_RADIUS_M,
    Box,
    Circle,
    Earth,
    MultiPolygon,
    Polygon,
    Region,
    Space,
    box,
    box_distance_earth,
    circle,
    earth,
    haversine,
    multipolygon,
    plane,
    point,
    polygon,
)
from nearcast.geo.cover import meet

flat = plane(-100, -100, 100, 100)
square = [(0, 0), (8, 0), (8, 8), (0, 8)]
quick = settings(max_examples=100, deadline=None)


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


# --- the 180th meridian and the poles


def test_a_box_across_the_meridian() -> None:
    pacific = box(170, -10, -170, 10)
    assert earth.region_boxes(pacific) == (Box(170, -10, 180, 10), Box(-180, -10, -170, 10))
    for lon in (170, 175, 180, -180, -175, -170):
        assert earth.intersects(pacific, point(lon, 10))
    for lon in (169, -169, 0):
        assert not earth.intersects(pacific, point(lon, 0))
    assert earth.intersects(pacific, box(160, 0, -175, 5))
    assert not earth.intersects(pacific, box(-169, 0, 169, 5))


def test_180_and_minus_180_are_one_meridian() -> None:
    regions: list[Region] = [
        box(180, 0, 180, 5),
        box(170, 0, 180, 5),
        circle(180, 2, 0),
        circle(180, 2, 1000),
    ]
    regions += [polygon([(170, 0), (180, 0), (180, 5)]), box(180, 0, -180, 5)]
    for region in regions:
        for lon in (180, -180):
            assert earth.intersects(region, point(lon, 2))
        assert earth.intersects(region, box(-180, 2, -175, 2))
        assert earth.intersects(region, box(175, 2, -175, 2))
        assert not earth.intersects(region, point(-179.9, 2))


def test_every_spelling_of_a_place() -> None:
    assert earth.place_boxes(point(3, 4)) == (point(3, 4),)
    assert earth.place_boxes(point(180, 4)) == (point(180, 4), point(-180, 4))
    assert earth.place_boxes(box(-180, 1, -170, 2)) == (box(-180, 1, -170, 2), box(180, 1, 180, 2))
    assert earth.place_boxes(box(-180, 1, 180, 2)) == (box(-180, 1, 180, 2),)
    assert earth.place_boxes(box(170, 1, -170, 2)) == (box(170, 1, 180, 2), box(-180, 1, -170, 2))
    assert earth.place_boxes(box(180, 1, -180, 1)) == (point(180, 1), point(-180, 1))
    assert earth.place_boxes(point(7, -90)) == (point(7, -90), box(-180, -90, 180, -90))
    assert earth.place_boxes(box(-180, 90, 180, 90)) == (box(-180, 90, 180, 90),)
    assert earth.place_boxes(earth.bounds) == (earth.bounds, box(-180, 90, 180, 90), box(-180, -90, 180, -90))
    assert flat.place_boxes(box(1, 2, 3, 4)) == (box(1, 2, 3, 4),)


def test_all_meridians_meet_at_a_pole() -> None:
    north = [
        box(100, 80, 110, 90),
        point(-50, 90),
        circle(77, 90, 0),
        polygon([(100, 80), (110, 80), (105, 90)]),
    ]
    for region in north:
        for place in (point(0, 90), point(180, 90), box(20, 70, 30, 90), box(170, 90, -170, 90)):
            assert earth.intersects(region, place)
        assert not earth.intersects(region, point(0, math.nextafter(90, 0)))
        assert not earth.intersects(region, point(0, -90))
    assert earth.intersects(box(100, -90, 110, -80), point(0, -90))


def test_a_circle_around_a_pole_has_all_longitudes() -> None:
    cap = circle(10, 89, 300_000)
    (cover,) = earth.region_boxes(cap)
    assert (cover.west, cover.east, cover.north) == (-180, 180, 90)
    assert earth.intersects(cap, point(-170, 89))
    assert earth.intersects(cap, point(55, 90))
    assert not earth.intersects(cap, point(-170, 88))


def test_a_circle_across_the_meridian() -> None:
    fiji = circle(179.5, -17, 100_000)
    west, east = earth.region_boxes(fiji)
    assert west.east == 180
    assert east.west == -180
    assert earth.intersects(fiji, point(-179.8, -17))
    assert earth.intersects(fiji, box(-179.9, -18, -170, -16))
    assert not earth.intersects(fiji, point(-179.4, -17))


def test_a_circle_may_hold_the_whole_earth() -> None:
    assert earth.region_boxes(circle(10, 20, 2.1e7)) == (earth.bounds,)
    assert earth.intersects(circle(0, 0, earth.max_distance), point(180, 0))


@pytest.mark.parametrize("turn", [-360, 0])
def test_a_polygon_drawn_across_the_meridian_is_cut_there(turn: int) -> None:
    drawn = [(170 + turn, 0), (190 + turn, 0), (190 + turn, 20), (170 + turn, 20)]
    region = earth.check_region(polygon(drawn, [[(175 + turn, 5), (185 + turn, 5), (180 + turn, 15)]]))
    assert isinstance(region, MultiPolygon)
    assert sorted(earth.region_boxes(region), key=lambda b: b.west) == [
        Box(-180, 0, -170, 20),
        Box(170, 0, 180, 20),
    ]
    for lon, lat in [(170, 20), (180, 0), (-180, 4), (-170, 20), (-175, 5), (180, 15), (-180, 15)]:
        assert earth.intersects(region, point(lon, lat))
    for lon, lat in [(180, 10), (-180, 10), (179, 7), (-179, 7), (169, 3), (-169, 3)]:
        assert not earth.intersects(region, point(lon, lat))


def test_drawn_polygons_that_need_no_cut_are_only_moved() -> None:
    moved = earth.check_region(polygon([(180, 0), (200, 0), (200, 5), (180, 5)]))
    assert isinstance(moved, Polygon)
    assert earth.region_boxes(moved) == (Box(-180, 0, -160, 5),)
    parts = multipolygon([polygon([(170, 0), (190, 0), (180, 5)]), polygon([(-180, 0), (-170, 0), (-170, 9)])])
    merged = earth.check_region(parts)
    assert all(-180 <= b.west <= b.east <= 180 for b in earth.region_boxes(merged))
    assert earth.intersects(merged, point(-172, 0.5))


def test_a_polygon_once_around_the_earth() -> None:
    belt = earth.check_region(polygon([(-90, 0), (270, 0), (270, 10), (-90, 10)]))
    assert earth.region_boxes(belt) == (Box(-180, 0, 180, 10),)
    for lon in (-180, -91, -90, -89, 0, 179, 180):
        assert earth.intersects(belt, point(lon, 5))


# --- distances

special_lon = [-180.0, 180.0, 0.0, 90.0, -90.0, 179.9999999, -179.9999999]
special_lat = [-90.0, 90.0, 0.0, 89.9999999, -89.9999999, 89.0, 45.0]
lons = st.sampled_from(special_lon) | st.floats(-180, 180) | st.integers(-180, 180).map(float)
lats = st.sampled_from(special_lat) | st.floats(-90, 90) | st.integers(-90, 90).map(float)


@st.composite
def plain_boxes(draw: st.DrawFn) -> Box:
    """Boxes on earth with west <= east, often thin, often at the meridian or a pole."""
    west, east = sorted((draw(lons), draw(lons)))
    south, north = sorted((draw(lats), draw(lats)))
    shrink = draw(st.sampled_from([1.0, 1.0, 0.01, 0.0]))
    return Box(west, south, west + (east - west) * shrink, south + (north - south) * shrink)


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


# --- covers lose nothing


def covered(space: Space, region: Region, place: Box) -> bool:
    return any(meet(r, p) for r in space.region_boxes(region) for p in space.place_boxes(place))


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


# --- polygons against exact arithmetic written another way

Corner = tuple[int, int]
Ring = Sequence[Corner]
# Corners are even and points any integers, so that many points lie on borders; `half` makes coordinates.
eight: Ring = [(0, 0), (16, 0), (16, 16), (0, 16)]
grid = [(i, j) for i in range(-1, 18) for j in range(-1, 18)]


def half(p: Corner) -> tuple[float, float]:
    return p[0] / 2, p[1] / 2


def edges(ring: Ring) -> list[tuple[Corner, Corner]]:
    return list(zip(ring, [*ring[1:], ring[0]], strict=True))


def on_ring(ring: Ring, p: Corner) -> bool:
    return any(edge_in_box(a, b, (*p, *p)) for a, b in edges(ring))


def inside_ring(ring: Ring, p: Corner) -> bool:
    """Ray to the east, half-open in y; for points that are not on the ring."""
    odd = False
    for a, b in edges(ring):
        if (a[1] > p[1]) != (b[1] > p[1]):
            odd ^= a[0] + Fraction(p[1] - a[1], b[1] - a[1]) * (b[0] - a[0]) > p[0]
    return odd


def has_point(rings: Sequence[Ring], p: Corner) -> bool:
    """Whether the polygon of an exterior and its holes has the point."""
    if any(on_ring(ring, p) for ring in rings):
        return True
    exterior, *holes = rings
    return inside_ring(exterior, p) and not any(inside_ring(hole, p) for hole in holes)


def has_box(rings: Sequence[Ring], box: tuple[int, int, int, int]) -> bool:
    """A corner of the box is in the polygon, or an edge of the polygon meets the box."""
    w, s, e, n = box
    if any(has_point(rings, corner) for corner in ((w, s), (e, s), (e, n), (w, n))):
        return True
    return any(edge_in_box(a, b, box) for ring in rings for a, b in edges(ring))


def edge_in_box(a: Corner, b: Corner, box: tuple[int, int, int, int]) -> bool:
    """Clip the edge's parameter interval [0, 1] by the sides of the box."""
    low, high = Fraction(0), Fraction(1)
    for i in (0, 1):
        least, most, step = box[i] - a[i], box[i + 2] - a[i], b[i] - a[i]
        if max(a[i], b[i]) < box[i] or min(a[i], b[i]) > box[i + 2]:
            return False
        if step != 0:
            t1, t2 = sorted((Fraction(least, step), Fraction(most, step)))
            low, high = max(low, t1), min(high, t2)
    return low <= high


@st.composite
def simple_rings(draw: st.DrawFn, low: int = 0, high: int = 8) -> Ring:
    """Corners in the order of their direction from the middle: mostly simple, often not convex."""
    number = st.integers(low, high).map(lambda n: 2 * n)
    corners = draw(st.lists(st.tuples(number, number), min_size=3, max_size=7, unique=True))
    mx, my = (sum(c[i] for c in corners) / len(corners) for i in (0, 1))
    return sorted(corners, key=lambda c: (math.atan2(c[1] - my, c[0] - mx), c))


def polygon_or_skip(*rings: Ring) -> Polygon:
    try:
        return polygon([half(c) for c in rings[0]], [[half(c) for c in hole] for hole in rings[1:]])
    except RegionError:
        assume(False)
        raise


@settings(max_examples=25, deadline=None)
@given(simple_rings())
def test_polygons_hold_exactly_their_points(ring: Ring) -> None:
    region = polygon_or_skip(ring)
    for p in grid:
        assert flat.intersects(region, point(*half(p))) == has_point([ring], p), p


@settings(max_examples=25, deadline=None)
@given(simple_rings(1, 7))
def test_polygons_with_a_hole_hold_exactly_their_points(hole: Ring) -> None:
    region = polygon_or_skip(eight, hole)
    for p in grid:
        assert earth.intersects(region, point(*half(p))) == has_point([eight, hole], p), p


@quick
@given(simple_rings(1, 7), st.booleans(), st.lists(st.tuples(*[st.integers(-1, 17)] * 4), min_size=6, max_size=6))
def test_polygons_meet_exactly_the_boxes_they_should(ring: Ring, as_hole: bool, quads: list[tuple[int, ...]]) -> None:
    rings = [eight, ring] if as_hole else [ring]
    region = polygon_or_skip(*rings)
    for x1, y1, x2, y2 in quads:
        w, s, e, n = min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)
        place = Box(w / 2, s / 2, e / 2, n / 2)
        assert flat.intersects(region, place) == has_box(rings, (w, s, e, n)), place
        assert covered(flat, region, place) or not flat.intersects(region, place)


@settings(max_examples=25, deadline=None)
@given(simple_rings(), st.sampled_from([-184, 176, 178]))
def test_a_cut_polygon_holds_the_points_of_the_drawn_one(ring: Ring, shift: int) -> None:
    region = earth.check_region(polygon_or_skip([(x + 2 * shift, y) for x, y in ring]))
    for p in grid:
        if on_ring(ring, p):  # a cut edge is rounded; borders are tested above where the cut is exact
            continue
        x, y = half(p)
        lon = x + shift - 360.0 * round((x + shift) / 360.0)
        assert earth.intersects(region, point(lon, y)) == inside_ring(ring, p), p
