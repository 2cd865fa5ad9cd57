"""Regions as GeoJSON (RFC 7946) and WKT, both ways, with the same meaning after a round trip.

Two spellings go beyond the standards, because every region must have one:

* GeoJSON: a circle is a Point Feature with property `radius_m`; a box without an area is a Feature
  without geometry, with its `bbox` and property `box: true` (accepted for any box).
* WKT: `ENVELOPE(west, east, north, south)` as in CQL is a box.

Whatever comes in, only RegionError comes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import shapely

from nearcast.errors import RegionError
from nearcast.geo.cover import split
from nearcast.geo.regions import (
    Box,
    Circle,
    MultiPolygon,
    Polygon,
    Region,
    Ring,
    multipolygon,
    not_a_region,
    number,
    point,
    polygon,
    polygons_of,
    shown,
)

GEOJSON_ALLOWED = (
    "Polygon, MultiPolygon, Point, a Feature of one of them (a Point with property radius_m is a circle), "
    "or a Feature without geometry but with bbox and property box: true"
)
WKT_ALLOWED = "POINT, POLYGON, MULTIPOLYGON or ENVELOPE(west, east, north, south)"

_WKT = re.compile(r"\s*([A-Za-z]+)[A-Za-z0-9\s(),.+-]*", re.ASCII)
_ENVELOPE = re.compile(r"\s*ENVELOPE\s*\(([A-Za-z0-9\s,.+-]*)\)\s*", re.ASCII | re.IGNORECASE)


def parse_region(text: str) -> Region:
    """A region from GeoJSON (text that starts with a brace) or WKT."""
    if isinstance(text, str) and text.lstrip().startswith("{"):
        return from_geojson(text)
    return from_wkt(text)


def from_geojson(value: str | Mapping[str, Any]) -> Region:
    """A region from GeoJSON text or its parsed form; altitudes are left out, a `bbox` is not read."""
    document = _parsed(value) if isinstance(value, str) else value
    if not isinstance(document, Mapping):
        raise RegionError(f"a GeoJSON region is an object ({GEOJSON_ALLOWED}), got {shown(document)}")
    if document.get("type") == "Feature":
        return _from_feature(document)
    return _from_geometry(document)


def to_geojson(region: Region) -> dict[str, Any]:
    """A region as a GeoJSON object; rings turn as RFC 7946 asks, exteriors counterclockwise."""
    match region:
        case Circle(x, y, radius):
            geometry = {"type": "Point", "coordinates": [x, y]}
            return {"type": "Feature", "geometry": geometry, "properties": {"radius_m": radius}}
        case Polygon():
            return {"type": "Polygon", "coordinates": _rings(region)}
        case MultiPolygon():
            return {"type": "MultiPolygon", "coordinates": [_rings(part) for part in region.polygons]}
        case Box():
            return _box_to_geojson(region)
    raise not_a_region(region)


def from_wkt(text: str) -> Region:
    """A region from well-known text; a third ordinate is left out."""
    if not isinstance(text, str):
        raise RegionError(f"WKT is text ({WKT_ALLOWED}), got {shown(text)}")
    if envelope := _ENVELOPE.fullmatch(text):
        return _from_envelope(envelope[1])
    # Only flat types reach GEOS, whose parser recurses on nested collections until the stack ends.
    head = _WKT.fullmatch(text)
    if head is None or head[1].upper() not in ("POINT", "POLYGON", "MULTIPOLYGON"):
        raise RegionError(f"WKT of a region is {WKT_ALLOWED}, got {shown(text)}")
    try:
        with np.errstate(all="ignore"):  # numbers that overflow are refused below, not warned about
            shape = shapely.from_wkt(text)
    except shapely.errors.ShapelyError as error:
        raise RegionError(f"WKT cannot be read: {str(error)[:200]}; got {shown(text)}") from None
    if shape.is_empty or any(part.is_empty for part in shapely.get_parts(shape)):
        raise RegionError(f"an EMPTY geometry is no region, got {shown(text)}")
    if isinstance(shape, shapely.Point):
        return point(shape.x, shape.y)
    parts = polygons_of(shape)
    return parts[0] if isinstance(shape, shapely.Polygon) else multipolygon(parts)


def to_wkt(region: Region) -> str:
    """A region as well-known text with all digits; a circle has none."""
    match region:
        case Box(west, south, east, north):
            if region.is_point:
                return f"POINT ({west!r} {south!r})"
            return f"ENVELOPE({west!r}, {east!r}, {north!r}, {south!r})"
        case Polygon():
            return f"POLYGON {_wkt_rings(region)}"
        case MultiPolygon():
            return f"MULTIPOLYGON ({', '.join(_wkt_rings(part) for part in region.polygons)})"
        case Circle():
            raise RegionError(f"a circle has no WKT, use GeoJSON or lon,lat,radius_m; got {region}")
    raise not_a_region(region)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RegionError(f"not readable as GeoJSON: {error}; got {shown(text)}") from None


def _from_feature(feature: Mapping[str, Any]) -> Region:
    properties = feature.get("properties")
    if not isinstance(properties, Mapping):
        properties = {}
    geometry = feature.get("geometry")
    if geometry is None and properties.get("box") is True:
        return _from_bbox(feature.get("bbox"))
    if not isinstance(geometry, Mapping):
        raise RegionError(f"a GeoJSON region is {GEOJSON_ALLOWED}; got a Feature with geometry {shown(geometry)}")
    region = _from_geometry(geometry)
    if isinstance(region, Box) and "radius_m" in properties:
        return Circle(region.west, region.south, number(properties["radius_m"], "property radius_m"))
    return region


def _from_geometry(geometry: Mapping[str, Any]) -> Region:
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if kind == "Point":
        return point(*_position(coordinates))
    if kind == "Polygon":
        return _from_rings(coordinates)
    if kind == "MultiPolygon":
        return multipolygon([_from_rings(part) for part in _array(coordinates, "a MultiPolygon")])
    raise RegionError(f"a GeoJSON region is {GEOJSON_ALLOWED}; got type {shown(kind)}")


def _from_rings(coordinates: object) -> Polygon:
    rings = [[_position(position) for position in _array(ring, "a ring")] for ring in _array(coordinates, "a Polygon")]
    if not rings:
        raise RegionError("a Polygon needs an exterior ring, got no coordinates")
    return polygon(rings[0], rings[1:])


def _position(value: object) -> tuple[float, float]:
    numbers = _array(value, "a position")
    if len(numbers) < 2:
        raise RegionError(f"a position is [longitude, latitude], got {shown(value)}")
    return number(numbers[0], "longitude"), number(numbers[1], "latitude")


def _from_bbox(bbox: object) -> Box:
    """[west, south, east, north], or with altitudes [west, south, low, east, north, high]."""
    numbers = _array(bbox, "a bbox")
    if len(numbers) not in (4, 6):
        raise RegionError(f"a bbox is [west, south, east, north], got {shown(bbox)}")
    half = len(numbers) // 2
    return Box(numbers[0], numbers[1], numbers[half], numbers[half + 1])


def _array(value: object, name: str) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise RegionError(f"{name} is an array in GeoJSON, got {shown(value)}")
    return value


def _box_to_geojson(box: Box) -> dict[str, Any]:
    """Polygons where there is an area; a part on the 180th meridian belongs to the other part too."""
    if box.is_point:
        return {"type": "Point", "coordinates": [box.west, box.south]}
    try:
        parts = [_rings(_rectangle(part)) for part in split(box) if part.west < part.east]
    except RegionError:  # a line, or beyond what a polygon may have as corners
        parts = []
    if not parts:
        bbox = [box.west, box.south, box.east, box.north]
        return {"type": "Feature", "bbox": bbox, "geometry": None, "properties": {"box": True}}
    if len(parts) == 1:
        return {"type": "Polygon", "coordinates": parts[0]}
    return {"type": "MultiPolygon", "coordinates": parts}


def _rectangle(box: Box) -> Polygon:
    west, south, east, north = box.west, box.south, box.east, box.north
    return polygon([(west, south), (east, south), (east, north), (west, north)])


def _rings(region: Polygon) -> list[list[list[float]]]:
    shape = shapely.orient_polygons(region.geometry)
    return [[list(corner) for corner in ring.coords] for ring in (shape.exterior, *shape.interiors)]


def _from_envelope(inside: str) -> Box:
    try:
        west, east, north, south = (float(part) for part in inside.split(","))
    except ValueError:
        raise RegionError(f"ENVELOPE takes four numbers (west, east, north, south), got {shown(inside)}") from None
    return Box(west, south, east, north)


def _wkt_rings(region: Polygon) -> str:
    return f"({', '.join(_wkt_ring(ring) for ring in (region.exterior, *region.holes))})"


def _wkt_ring(ring: Ring) -> str:
    return f"({', '.join(f'{x!r} {y!r}' for x, y in ring)})"
