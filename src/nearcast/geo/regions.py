"""The shapes of places and regions: box, circle, polygon, multipolygon.

A region holds plain numbers; what they mean (degrees and metres, or units of a plane) and which of
them exist is the business of a `Space`. Construction checks only what holds in every space: finite
numbers, ordered latitudes, rings that bound an area. All regions are closed sets.
"""

from __future__ import annotations

import math
import numbers
import reprlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import shapely

from nearcast.errors import RegionError

Ring = tuple[tuple[float, float], ...]
"""(x, y) corners in order; the last repeats the first."""

LARGEST_CORNER = 1e100  # beyond it, which side of an edge a point lies on overflows float64


_LARGEST = sys.float_info.max


def shown(value: object) -> str:
    """`value` for an error message: short and safe for any size, depth or broken repr."""
    try:
        return reprlib.repr(value)
    except Exception:  # an integer of more than 4300 digits has no repr
        return f"a {type(value).__name__}"


def number(value: object, name: str) -> float:
    """`value` as a finite float; a bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise RegionError(f"{name} must be a number, got {shown(value)}")
    try:
        result = float(value)
    except (OverflowError, ValueError):
        result = math.inf
    if not math.isfinite(result):
        raise RegionError(f"{name} must be a finite number, got {shown(value)}")
    return result


def _is_plain(value: object) -> bool:
    """Whether `number` would give it back as it is. Every message has a box: this is quick."""
    return type(value) is float and -_LARGEST <= value <= _LARGEST


def not_a_region(value: object) -> RegionError:
    """The error for a value of another type."""
    return RegionError(f"a region is a Box, Circle, Polygon or MultiPolygon, got {shown(value)}")


@dataclass(frozen=True, slots=True)
class Box:
    """West, south, east, north, borders included; a point has west == east and south == north.

    West may exceed east: on earth such a box crosses the 180th meridian.
    """

    west: float
    south: float
    east: float
    north: float

    def __post_init__(self) -> None:
        if not (_is_plain(self.west) and _is_plain(self.south) and _is_plain(self.east) and _is_plain(self.north)):
            for name in ("west", "south", "east", "north"):
                object.__setattr__(self, name, number(getattr(self, name), f"a box's {name}"))
        if self.south > self.north:
            raise RegionError(f"a box needs south <= north, got south {self.south} and north {self.north}")

    @property
    def is_point(self) -> bool:
        return self.west == self.east and self.south == self.north


@dataclass(frozen=True, slots=True)
class Circle:
    """All within `radius` of (x, y). Earth: longitude, latitude, metres; plane: its units."""

    x: float
    y: float
    radius: float

    def __post_init__(self) -> None:
        for name in ("x", "y", "radius"):
            object.__setattr__(self, name, number(getattr(self, name), f"a circle's {name}"))
        if self.radius < 0:
            raise RegionError(f"a circle's radius must be 0 or more, got {self.radius}")


@dataclass(frozen=True, slots=True)
class Polygon:
    """The inside and border of `exterior` without the inside of the holes; hole borders belong to it.

    Rings may be given open or closed and in either direction; they are kept closed. `geometry` is the
    same shape for Shapely, made once; values are compared by their rings.
    """

    exterior: Ring
    holes: tuple[Ring, ...] = ()
    geometry: shapely.Polygon = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "exterior", _ring(self.exterior, "a polygon's exterior"))
        holes = _tuple(self.holes, "a polygon's holes")
        object.__setattr__(self, "holes", tuple(_ring(hole, "a polygon's hole") for hole in holes))
        shape = shapely.Polygon(self.exterior, self.holes)
        _require_valid(shape, "a polygon", "its rings may touch only in single points, holes lie inside")
        object.__setattr__(self, "geometry", shape)


@dataclass(frozen=True, slots=True)
class MultiPolygon:
    """Several polygons as one region; they may touch in points, not overlap or share an edge."""

    polygons: tuple[Polygon, ...]
    geometry: shapely.MultiPolygon = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = _tuple(self.polygons, "a multipolygon's polygons")
        polygons = tuple(part for part in parts if isinstance(part, Polygon))
        if not parts or len(polygons) < len(parts):
            raise RegionError(f"a multipolygon consists of one or more Polygon values, got {shown(parts)}")
        object.__setattr__(self, "polygons", polygons)
        shape = shapely.MultiPolygon([part.geometry for part in polygons])
        _require_valid(shape, "a multipolygon", "merge polygons that overlap or share an edge into one")
        object.__setattr__(self, "geometry", shape)


Region = Box | Circle | Polygon | MultiPolygon


def point(x: float, y: float) -> Box:
    """The place (x, y), longitude first."""
    return Box(x, y, x, y)


def box(west: float, south: float, east: float, north: float) -> Box:
    """A box; on earth in degrees, and west > east crosses the 180th meridian."""
    return Box(west, south, east, north)


def circle(lon: float, lat: float, metres: float) -> Circle:
    """All within `metres` of a position (in a plane: within that many units)."""
    return Circle(lon, lat, metres)


def polygon(exterior: Iterable[Iterable[float]], holes: Iterable[Iterable[Iterable[float]]] = ()) -> Polygon:
    """A polygon from rings of (x, y) corners, open or closed."""
    return Polygon(cast(Ring, exterior), cast(tuple[Ring, ...], holes))  # the class brings them to rings


def multipolygon(polygons: Iterable[Polygon]) -> MultiPolygon:
    """Several polygons as one region."""
    return MultiPolygon(cast(tuple[Polygon, ...], polygons))  # the class makes the tuple


def polygons_of(shape: shapely.Geometry) -> tuple[Polygon, ...]:
    """The polygonal parts of a Shapely geometry in two dimensions; points, lines and EMPTY are left out."""
    return tuple(
        polygon(
            shapely.get_coordinates(part.exterior).tolist(),
            [shapely.get_coordinates(ring).tolist() for ring in part.interiors],
        )
        for part in shapely.get_parts(shapely.get_parts(shape))
        if isinstance(part, shapely.Polygon) and not part.is_empty
    )


def _tuple(value: object, name: str) -> tuple[object, ...]:
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        raise RegionError(f"{name} must be a sequence, got {shown(value)}")
    return tuple(value)


def _ring(corners: object, name: str) -> Ring:
    """Corners as a closed ring of float pairs with at least three distinct points."""
    ring = tuple(_corner(corner, name) for corner in _tuple(corners, name))
    if len(set(ring)) < 3:
        raise RegionError(f"{name} needs at least 3 distinct points, got {len(set(ring))}")
    return ring if ring[0] == ring[-1] else (*ring, ring[0])


def _corner(corner: object, name: str) -> tuple[float, float]:
    pair = _tuple(corner, f"a point of {name}")
    if len(pair) != 2:
        raise RegionError(f"a point of {name} must be a pair of numbers (x, y), got {shown(corner)}")
    x, y = number(pair[0], f"x in {name}"), number(pair[1], f"y in {name}")
    if max(abs(x), abs(y)) > LARGEST_CORNER:
        raise RegionError(f"{name} must lie within ±{LARGEST_CORNER:g}, got ({x}, {y})")
    return x, y


def _require_valid(shape: shapely.Geometry, name: str, allowed: str) -> None:
    try:
        reason = "" if shapely.is_valid(shape) else shapely.is_valid_reason(shape)
    except shapely.errors.GEOSException as error:
        reason = str(error)
    if reason:
        raise RegionError(f"{name} must not cross itself ({allowed}), got {reason}")
