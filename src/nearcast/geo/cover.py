"""Boxes that cover regions, and what the 180th meridian does to them.

All boxes made here have west <= east. A cover may be larger than its region, never smaller: rounding
goes outward, so a filter that compares boxes loses no match.
"""

from __future__ import annotations

import math
import sys

import shapely
from shapely.affinity import translate

from nearcast.geo.regions import Box, Circle, MultiPolygon, Polygon, polygons_of
from nearcast.kernels.distance import EARTH_RADIUS_M, RADIAN

MARGIN_DEGREES = 1e-9  # 0.1 mm; `haversine` errs by less than a hundredth of it up to FAR_DEGREES
FAR_DEGREES = 179.0  # beyond it, towards the antipode, `haversine` errs by up to 0.1 m
WIDEN = 1e-12  # relative; thousands of roundings of float64
SMALLEST_STEP = 1e-150  # the square of a smaller difference underflows, and its distance is 0


def meet(a: Box, b: Box) -> bool:
    """Whether two boxes with west <= east have a point in common."""
    return a.west <= b.east and b.west <= a.east and a.south <= b.north and b.south <= a.north


def split(box: Box) -> tuple[Box, ...]:
    """A box on earth as boxes with west <= east: two when it crosses the 180th meridian."""
    if box.west <= box.east:
        return (box,)
    return (Box(box.west, box.south, 180.0, box.north), Box(-180.0, box.south, box.east, box.north))


def circle_boxes_earth(circle: Circle) -> tuple[Box, ...]:
    """Boxes that hold every position whose `haversine` distance, as computed, is within the radius."""
    reach = circle.radius / (EARTH_RADIUS_M * RADIAN) * (1.0 + WIDEN) + MARGIN_DEGREES
    if reach > FAR_DEGREES:
        return (Box(-180.0, -90.0, 180.0, 90.0),)
    south, north = circle.y - reach, circle.y + reach
    if south <= -90.0 or north >= 90.0:
        return (Box(-180.0, max(south, -90.0), 180.0, min(north, 90.0)),)
    half = _half_width(circle.y * RADIAN, reach * RADIAN) / RADIAN
    west, east = circle.x - half, circle.x + half
    if west < -180.0:
        west += 360.0
    elif east > 180.0:
        east -= 360.0
    return split(Box(west, south, east, north))


def _half_width(lat: float, reach: float) -> float:
    """Largest difference in longitude within a circle that holds no pole; all in radians.

    This is asin(sin(reach) / cos(lat)), written so that it keeps its digits near a quarter turn, where
    the sine is flat: cos(lat)^2 - sin(reach)^2 = cos(lat - reach) * cos(lat + reach). It grows at least
    as fast as `reach`, whose margin therefore serves for the longitude as well.
    """
    rest = math.cos(lat - reach) * math.cos(lat + reach)
    return math.atan2(math.sin(reach), math.sqrt(max(rest, 0.0)))


def circle_box_plane(circle: Circle) -> Box:
    """A box that holds every point whose Euclidean distance, as computed, is within the radius."""
    west, east = _interval(circle.x, circle.radius)
    south, north = _interval(circle.y, circle.radius)
    return Box(west, south, east, north)


def _interval(middle: float, radius: float) -> tuple[float, float]:
    largest = sys.float_info.max
    half = radius + WIDEN * (abs(middle) + radius) + SMALLEST_STEP
    return max(middle - half, -largest), min(middle + half, largest)


def polygon_boxes(region: Polygon | MultiPolygon) -> tuple[Box, ...]:
    """The bounds of every part."""
    parts = region.polygons if isinstance(region, MultiPolygon) else (region,)
    return tuple(dict.fromkeys(Box(*part.geometry.bounds) for part in parts))


def cut_at_meridian(shape: shapely.Geometry) -> Polygon | MultiPolygon:
    """Polygons with longitudes in [-360, 360], cut and moved to longitudes in [-180, 180].

    Moving is exact: float64 subtracts 360 from a number between 180 and 360 without rounding. Where an
    edge crosses the meridian, the latitude of the cut is rounded to float64. Parts that meet after the
    move (a polygon once around the earth does) are merged.
    """
    pieces: list[Polygon] = []
    for turn in (-360.0, 0.0, 360.0):
        window = shapely.box(turn - 180.0, -91.0, turn + 180.0, 91.0)
        pieces.extend(polygons_of(translate(shapely.intersection(shape, window), -turn)))
    whole = shapely.MultiPolygon([piece.geometry for piece in pieces])
    if not shapely.is_valid(whole):
        pieces = list(polygons_of(shapely.union_all([piece.geometry for piece in pieces])))
    return pieces[0] if len(pieces) == 1 else MultiPolygon(tuple(pieces))
