"""Regions as GeoJSON and WKT: the same meaning after a round trip, and only RegionError for the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearcast.errors import RegionError
from nearcast.geo import (
    Box,
    Circle,
    Polygon,
    Region,
    box,
    circle,
    earth,
    from_geojson,
    from_wkt,
    multipolygon,
    parse_region,
    plane,
    point,
    polygon,
    to_geojson,
    to_wkt,
)

square = [(0, 0), (8, 0), (8, 8), (0, 8)]
ring = polygon(square, [[(2, 2), (6, 2), (6, 6), (2, 6)]])
pair = multipolygon([ring, polygon([(20, 0), (21, 0), (21, 1)])])


# --- what is read


def test_geojson_geometries() -> None:
    assert from_geojson({"type": "Point", "coordinates": [1, 2]}) == point(1, 2)
    outer, inner = ([list(corner) for corner in r] for r in (ring.exterior, ring.holes[0]))
    assert from_geojson({"type": "Polygon", "coordinates": [outer, inner]}) == ring
    assert from_geojson(to_geojson(pair)) == multipolygon([ring_turned(p) for p in pair.polygons])


def ring_turned(region: Polygon) -> Polygon:
    """The polygon with the corner order that to_geojson writes."""
    written = to_geojson(region)["coordinates"]
    return polygon(written[0], written[1:])


def test_geojson_text_and_features() -> None:
    geometry = {"type": "Point", "coordinates": [139.7, 35.66, 40.0], "bbox": [0, 0, 1, 1]}
    assert from_geojson(json.dumps(geometry)) == point(139.7, 35.66), "altitude and bbox are left out"
    feature = {"type": "Feature", "bbox": [0, 0, 1, 1], "geometry": geometry, "properties": None}
    assert from_geojson(feature) == point(139.7, 35.66)
    feature["properties"] = {"radius_m": 1500, "name": "Shibuya"}
    assert from_geojson(feature) == circle(139.7, 35.66, metres=1500)
    feature["geometry"] = to_geojson(ring)
    assert from_geojson(feature) == ring_turned(ring), "a radius means something to a Point only"


def test_a_box_as_a_feature_without_geometry() -> None:
    feature: dict[str, Any] = {"type": "Feature", "geometry": None, "properties": {"box": True}}
    assert from_geojson({**feature, "bbox": [170, -10, -170, 10]}) == box(170, -10, -170, 10)
    assert from_geojson({**feature, "bbox": [1, 2, -9, 3, 4, 9]}) == box(1, 2, 3, 4), "with altitudes"


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("POINT (1 2)", point(1, 2)),
        (" point(1e0 2.0) ", point(1, 2)),
        ("POINT Z (1 2 3)", point(1, 2)),
        ("POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (2 2, 6 2, 6 6, 2 6, 2 2))", ring),
        ("MULTIPOLYGON (((0 0, 8 0, 8 8, 0 8, 0 0)))", multipolygon([polygon(square)])),
        ("ENVELOPE(-10, 20, 15, 10)", box(-10, 10, 20, 15)),
        ("envelope ( 170,-170 , 15, 10 )", box(170, 10, -170, 15)),
        ('\n {"type": "Point", "coordinates": [1, 2]}', point(1, 2)),
    ],
)
def test_texts_that_are_regions(text: str, region: Region) -> None:
    assert parse_region(text) == region


# --- what is written


def test_geojson_is_what_others_read() -> None:
    assert to_geojson(point(1, 2)) == {"type": "Point", "coordinates": [1.0, 2.0]}
    assert to_geojson(circle(1, 2, metres=3)) == {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [1.0, 2.0]},
        "properties": {"radius_m": 3.0},
    }
    assert to_geojson(box(0, 1, 2, 3)) == {
        "type": "Polygon",
        "coordinates": [[[0, 1], [2, 1], [2, 3], [0, 3], [0, 1]]],
    }
    clockwise = polygon([(0, 0), (0, 1), (1, 1)])
    assert to_geojson(clockwise)["coordinates"] == [[[0, 0], [1, 1], [0, 1], [0, 0]]]


def test_a_box_across_the_meridian_becomes_two_polygons() -> None:
    written = to_geojson(box(170, 0, -170, 5))
    assert written["type"] == "MultiPolygon"
    assert [part[0][0] for part in written["coordinates"]] == [[170.0, 0.0], [-180.0, 0.0]]
    assert to_geojson(box(180, 0, -170, 5))["type"] == "Polygon", "the part without area is on both sides"


def test_boxes_without_area_and_beyond_polygons_keep_their_numbers() -> None:
    for region in (box(0, 1, 5, 1), box(0, 1, 0, 5), box(180, 0, -180, 5), box(-1e300, 0, 1e300, 1)):
        written = to_geojson(region)
        assert written["geometry"] is None
        assert from_geojson(json.dumps(written)) == region


def test_wkt_keeps_all_digits() -> None:
    assert to_wkt(point(0.1, 1e-7)) == "POINT (0.1 1e-07)"
    assert to_wkt(box(170, 0, -170, 1 / 3)) == "ENVELOPE(170.0, -170.0, 0.3333333333333333, 0.0)"
    assert to_wkt(polygon([(0, 0), (1, 0), (1, 1)])) == "POLYGON ((0.0 0.0, 1.0 0.0, 1.0 1.0, 0.0 0.0))"
    assert from_wkt(to_wkt(pair)) == pair


def test_what_cannot_be_written() -> None:
    with pytest.raises(RegionError, match="a circle has no WKT, use GeoJSON or lon,lat,radius_m"):
        to_wkt(circle(0, 0, 1))
    for write in (to_wkt, to_geojson):
        with pytest.raises(RegionError, match="a region is a Box, Circle, Polygon or MultiPolygon"):
            write("everywhere")  # type: ignore[arg-type, operator]


# --- what is refused


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


point_feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}}
box_feature = {"type": "Feature", "geometry": None, "properties": {"box": True}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"type": "LineString", "coordinates": []},
            "Polygon, MultiPolygon, Point, a Feature.*got type 'LineString'",
        ),
        ({"type": "GeometryCollection", "geometries": []}, "got type 'GeometryCollection'"),
        ({"type": "FeatureCollection", "features": []}, "got type 'FeatureCollection'"),
        ({}, "got type None"),
        ({"type": nested(100_000)}, r"got type \[\["),
        ({"type": "Feature"}, "Feature with geometry None"),
        ({"type": "Feature", "geometry": point_feature}, "got type 'Feature'"),
        ({**point_feature, "properties": {"radius_m": None}}, "radius_m must be a number, got None"),
        ({**point_feature, "properties": {"radius_m": -1}}, "radius must be 0 or more"),
        ({**box_feature, "properties": {}}, "Feature with geometry None"),
        (box_feature, "a bbox is an array"),
        ({**box_feature, "bbox": [1, 2, 3]}, r"a bbox is \[west, south, east, north\]"),
        ({**box_feature, "bbox": [1, 2, 3, "4"]}, "north must be a number, got '4'"),
        ({"type": "Point"}, "a position is an array"),
        ({"type": "Point", "coordinates": "12"}, "a position is an array in GeoJSON, got '12'"),
        ({"type": "Point", "coordinates": [1]}, r"a position is \[longitude, latitude\], got \[1\]"),
        ({"type": "Point", "coordinates": [True, 1]}, "longitude must be a number, got True"),
        ({"type": "Point", "coordinates": [10**5000, 1]}, "longitude must be a finite number"),
        ('{"type": "Point", "coordinates": [NaN, 1]}', "longitude must be a finite number, got nan"),
        ('{"type": "Point", "coordinates": [1e999, 1]}', "longitude must be a finite number, got inf"),
        ('{"type": "Point", "coordinates": [%s, 1]}' % ("1" * 5000), "not readable as GeoJSON"),
        ({"type": "Polygon", "coordinates": []}, "needs an exterior ring"),
        ({"type": "Polygon", "coordinates": [[]]}, "at least 3 distinct points, got 0"),
        ({"type": "Polygon", "coordinates": nested(100_000)}, "a position is"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1]]]}, "Self-intersection"),
        ({"type": "MultiPolygon", "coordinates": []}, "one or more Polygon values"),
        ("{" + '"type":{' * 100_000, "not readable as GeoJSON"),
        ("{", "not readable as GeoJSON"),
        ("[]", "a GeoJSON region is an object"),
        (None, "a GeoJSON region is an object"),
        (b"{}", "a GeoJSON region is an object"),
    ],
    ids=lambda value: str(type(value).__name__),
)
def test_geojson_that_is_no_region(value: str | Mapping[str, Any], words: str) -> None:
    with pytest.raises(RegionError, match=words) as caught:
        from_geojson(value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "POINT, POLYGON, MULTIPOLYGON or ENVELOPE"),
        ("LINESTRING (0 0, 1 1)", "POINT, POLYGON, MULTIPOLYGON or ENVELOPE"),
        ("SRID=4326;POINT (0 0)", "POINT, POLYGON, MULTIPOLYGON or ENVELOPE"),
        ("GEOMETRYCOLLECTION(" * 200_000, "POINT, POLYGON, MULTIPOLYGON or ENVELOPE"),
        ("POLYGON(" * 200_000, "cannot be read"),
        ("POLYGON" + "(" * 200_000, "cannot be read"),
        ("MULTIPOLYGON" + "(" * 200_000, "cannot be read"),
        ("POINT (1 2)\0", "POINT, POLYGON, MULTIPOLYGON or ENVELOPE"),
        ("POINT (\ud800 2)", "POINT, POLYGON, MULTIPOLYGON or ENVELOPE"),
        ("POINT (1 2", "cannot be read"),
        ("POINT (%s)" % ("x" * 100_000), "cannot be read"),
        ("POINT (1 2) POINT (1 2)", "cannot be read"),
        ("POINT (nan 2)", "finite"),
        ("POINT (1e999 2)", "finite"),
        ("POINT EMPTY", "EMPTY"),
        ("POLYGON EMPTY", "EMPTY"),
        ("MULTIPOLYGON EMPTY", "EMPTY"),
        ("MULTIPOLYGON (EMPTY, ((0 0, 1 0, 1 1, 0 0)))", "EMPTY"),
        ("POLYGON ((0 0, 8 0, 8 8, 0 0), EMPTY)", "at least 3 distinct points, got 0"),
        ("POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))", "Self-intersection"),
        ("POLYGON ((0 0, 1 1, 1 0))", "closed"),
        ("POLYGON ((0 0, 1e150 0, 1e999 1, 0 0))", "finite|within"),
        ("ENVELOPE(1, 2, 3)", "four numbers"),
        ("ENVELOPE(1, 2, x, 3)", "four numbers"),
        ("ENVELOPE(1_0, 2, 4, 3)", "POINT, POLYGON, MULTIPOLYGON or ENVELOPE"),
        ("ENVELOPE(1, 2, 3, 4)", "south <= north"),
        ("ENVELOPE(nan, 2, 4, 3)", "finite"),
        (7, "WKT is text"),
        (None, "WKT is text"),
    ],
    ids=lambda value: str(value)[:20].encode("ascii", "replace").decode(),
)
def test_wkt_that_is_no_region(text: str, words: str) -> None:
    for read in (from_wkt, parse_region):
        with pytest.raises(RegionError, match=words) as caught:
            read(text)
        assert len(str(caught.value)) < 600


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
documents = st.fixed_dictionaries(
    {"type": st.sampled_from(["Point", "Polygon", "MultiPolygon", "Feature", "Other"]) | json_values},
    optional={
        "coordinates": json_values | st.lists(st.lists(st.lists(st.integers(0, 3)))),
        "geometry": json_values | st.fixed_dictionaries({"type": st.just("Point"), "coordinates": json_values}),
        "properties": json_values | st.fixed_dictionaries({}, optional={"box": st.booleans(), "radius_m": json_values}),
        "bbox": json_values | st.lists(st.integers(0, 3), min_size=4, max_size=4),
    },
)
wkt_pieces = [
    "POINT",
    "POLYGON",
    "MULTI",
    "ENVELOPE",
    "EMPTY",
    "Z",
    "(",
    ")",
    ",",
    " ",
    "1",
    "-2.5",
    "1e400",
    "nan",
    "é",
]


@settings(max_examples=100, deadline=None)
@given(documents | json_values)
def test_any_json_is_a_region_or_a_region_error(value: Any) -> None:
    only_region_error(lambda: from_geojson(value))
    only_region_error(lambda: parse_region(json.dumps(value)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(wkt_pieces), max_size=15).map("".join) | st.text(max_size=20))
def test_any_text_is_a_region_or_a_region_error(text: str) -> None:
    only_region_error(lambda: parse_region(text))
    only_region_error(lambda: parse_region("{" + text))


def only_region_error(read: Callable[[], Region]) -> None:
    try:
        region = read()
    except RegionError:
        return
    assert isinstance(region, Region)


# --- round trips

flat = plane(-200, -100, 200, 100)
tens_x, tens_y = st.integers(-18, 18).map(lambda n: n * 10.0), st.integers(-9, 9).map(lambda n: n * 10.0)
places = [point(x, y) for x in range(-180, 181, 15) for y in range(-90, 91, 15)]


@st.composite
def earth_boxes(draw: st.DrawFn) -> Box:
    south, north = sorted((draw(tens_y), draw(tens_y)))
    return Box(draw(tens_x), south, draw(tens_x), north)


@st.composite
def polygons(draw: st.DrawFn, x: st.SearchStrategy[float] = tens_x, y: st.SearchStrategy[float] = tens_y) -> Polygon:
    corners = draw(st.lists(st.tuples(x, y), min_size=3, max_size=4, unique=True))
    try:
        return polygon(corners)
    except RegionError:
        assume(False)
        raise


@settings(max_examples=60, deadline=None)
@given(earth_boxes() | polygons(), st.lists(earth_boxes(), min_size=5, max_size=5))
def test_geojson_round_trip_means_the_same(region: Region, more: list[Box]) -> None:
    again = earth.check_region(from_geojson(json.dumps(to_geojson(region))))
    for place in [*places[::7], *more]:
        assert earth.intersects(again, place) == earth.intersects(region, place), place


anything = st.floats(-1e99, 1e99, allow_subnormal=False)


@settings(max_examples=100, deadline=None)
@given(st.tuples(*[anything] * 4), st.floats(0, 1e99))
def test_boxes_and_circles_round_trip(v: tuple[float, ...], radius: float) -> None:
    region = Box(v[0], min(v[1], v[3]), v[2], max(v[1], v[3]))
    assert from_wkt(to_wkt(region)) == region
    assert from_geojson(json.dumps(to_geojson(Circle(v[0], v[1], radius)))) == Circle(v[0], v[1], radius)


@settings(max_examples=100, deadline=None)
@given(polygons(x=st.floats(-180, 180), y=st.floats(-90, 90)))
def test_polygons_round_trip_in_all_digits(region: Polygon) -> None:
    assert from_wkt(to_wkt(region)) == region
    corners = set(from_geojson(json.dumps(to_geojson(region))).exterior)  # type: ignore[union-attr]
    assert corners == set(region.exterior)


@settings(max_examples=100, deadline=None)
@given(st.tuples(*[st.floats(-50, 50)] * 4))
def test_plane_boxes_mean_the_same_as_geojson(v: tuple[float, ...]) -> None:
    region = Box(min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3]))
    again = from_geojson(to_geojson(region))
    for x in (region.west, region.east, 0.0, 51.0):
        for y in (region.south, region.north, 0.0, 51.0):
            assert flat.intersects(again, point(x, y)) == flat.intersects(region, point(x, y))
