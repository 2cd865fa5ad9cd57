"""Places at the 180th meridian and at the poles, under every coordinate they have."""

from __future__ import annotations

import math

import pytest

from nearcast.geo import Box, MultiPolygon, Polygon, Region, box, circle, earth, multipolygon, point, polygon
from tests.coordinates import flat


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
