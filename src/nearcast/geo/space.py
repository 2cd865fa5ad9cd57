"""Earth and plane: which places exist, how far apart they are, and whether a region meets a place.

Coordinates are (x, y): longitude and latitude in degrees on earth, plane units otherwise. All sets are
closed, so touching counts. `Space.intersects` is the meaning that every index must reproduce.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

import shapely

from nearcast.errors import RegionError
from nearcast.geo.cover import (
    circle_box_plane,
    circle_boxes_earth,
    cut_at_meridian,
    meet,
    polygon_boxes,
    split,
)
from nearcast.geo.regions import Box, Circle, MultiPolygon, Polygon, Region, not_a_region, shown
from nearcast.kernels.distance import (
    EARTH_RADIUS_M,
    box_distance_earth,
    box_distance_plane,
    distance_plane,
    haversine,
)


@dataclass(frozen=True, slots=True)
class Space(ABC):
    """Where messages and subscriptions live. One hub has one space."""

    name: str
    bounds: Box  # all places lie in it
    max_distance: float  # no two places are farther apart; metres on earth

    @abstractmethod
    def check_region(self, region: Region) -> Region:
        """`region` in the form the other methods take, or a RegionError that says what is allowed."""

    @abstractmethod
    def check_place(self, place: Box) -> Box:
        """`place`, or a RegionError that says what is allowed."""

    @abstractmethod
    def distance(self, x1: float, y1: float, x2: float, y2: float) -> float:
        """Distance between two points."""

    @abstractmethod
    def distance_to_box(self, x: float, y: float, box: Box) -> float:
        """Least distance from a point to a box with west <= east."""

    @abstractmethod
    def place_boxes(self, place: Box) -> tuple[Box, ...]:
        """Every way to write a checked place in coordinates, as distinct boxes with west <= east."""

    @abstractmethod
    def region_boxes(self, region: Region) -> tuple[Box, ...]:
        """Boxes with west <= east that cover a checked region; for a Box, exactly the region.

        A place that intersects the region has a place box that meets one of them.
        """

    def intersects(self, region: Region, place: Box) -> bool:
        """Whether a checked region and a checked place have a point in common."""
        places = self.place_boxes(place)
        if isinstance(region, Circle):
            return min(self.distance_to_box(region.x, region.y, p) for p in places) <= region.radius
        if isinstance(region, Box):
            return any(meet(r, p) for r in self.region_boxes(region) for p in places)
        return any(bool(shapely.intersects(region.geometry, _shape(p))) for p in places)


@dataclass(frozen=True, slots=True)
class Earth(Space):
    """Longitude and latitude in degrees (WGS84), great-circle distance on a sphere in metres.

    The edges of boxes and polygons are straight in degrees (RFC 7946). Longitude 180 is -180, and at a
    pole all longitudes are one point; `place_boxes` carries both facts, regions need not.
    """

    name: str = field(default="earth", init=False)
    bounds: Box = field(default=Box(-180.0, -90.0, 180.0, 90.0), init=False)
    max_distance: float = field(default=math.pi * EARTH_RADIUS_M, init=False)

    def check_region(self, region: Region) -> Region:
        """A polygon drawn across the 180th meridian (longitudes beyond it) comes back cut there."""
        if isinstance(region, Box):
            return self.check_place(region)
        if isinstance(region, Circle):
            _check_degrees([(region.x, region.y)], 180.0, "a circle's centre")
            return region
        if isinstance(region, Polygon | MultiPolygon):
            parts = region.polygons if isinstance(region, MultiPolygon) else (region,)
            for part in parts:
                _check_polygon(part)
            inside = all(abs(x) <= 180.0 for part in parts for x, _ in part.exterior)
            return region if inside else cut_at_meridian(region.geometry)
        raise not_a_region(region)

    def check_place(self, place: Box) -> Box:
        _check_box(place)
        corners = ((place.west, place.south), (place.east, place.north))
        name = "a point" if place.is_point else "a box (west > east when it crosses the 180th meridian)"
        _check_degrees(corners, 180.0, name)
        return place

    def distance(self, x1: float, y1: float, x2: float, y2: float) -> float:
        return haversine(x1, y1, x2, y2)

    def distance_to_box(self, x: float, y: float, box: Box) -> float:
        return box_distance_earth(x, y, box.west, box.south, box.east, box.north)

    def place_boxes(self, place: Box) -> tuple[Box, ...]:
        """The parts of the place, its twin on the other side of the 180th meridian, its whole pole."""
        south, north = place.south, place.north
        boxes = list(split(place))
        reaches_east = any(part.east == 180.0 for part in boxes)
        reaches_west = any(part.west == -180.0 for part in boxes)
        if reaches_east and not reaches_west:
            boxes.append(Box(-180.0, south, -180.0, north))
        if reaches_west and not reaches_east:
            boxes.append(Box(180.0, south, 180.0, north))
        if north == 90.0:
            boxes.append(Box(-180.0, 90.0, 180.0, 90.0))
        if south == -90.0:
            boxes.append(Box(-180.0, -90.0, 180.0, -90.0))
        return tuple(dict.fromkeys(boxes))

    def region_boxes(self, region: Region) -> tuple[Box, ...]:
        if isinstance(region, Box):
            return split(region)
        if isinstance(region, Circle):
            return circle_boxes_earth(region)
        return polygon_boxes(region)


earth = Earth()


@dataclass(frozen=True, slots=True)
class Plane(Space):
    """Euclidean space in any unit. Places lie within `bounds`; regions may extend beyond."""

    name: str = field(default="plane", init=False)
    bounds: Box
    max_distance: float = field(init=False)

    def __post_init__(self) -> None:
        _check_ordered(self.bounds)
        b = self.bounds
        diagonal = distance_plane(b.west, b.south, b.east, b.north)
        if not 0.0 < diagonal < math.inf:
            raise RegionError(f"a plane's bounds need a finite diagonal above 0, got {b}")
        object.__setattr__(self, "max_distance", diagonal)

    def check_region(self, region: Region) -> Region:
        if isinstance(region, Box):
            _check_ordered(region)
        elif not isinstance(region, Circle | Polygon | MultiPolygon):
            raise not_a_region(region)
        return region

    def check_place(self, place: Box) -> Box:
        _check_ordered(place)
        b = self.bounds
        if place.west < b.west or place.south < b.south or place.east > b.east or place.north > b.north:
            raise RegionError(f"a place must lie within the plane's {b}, got {place}")
        return place

    def distance(self, x1: float, y1: float, x2: float, y2: float) -> float:
        return distance_plane(x1, y1, x2, y2)

    def distance_to_box(self, x: float, y: float, box: Box) -> float:
        return box_distance_plane(x, y, box.west, box.south, box.east, box.north)

    def place_boxes(self, place: Box) -> tuple[Box, ...]:
        return (place,)

    def region_boxes(self, region: Region) -> tuple[Box, ...]:
        if isinstance(region, Box):
            return (region,)
        if isinstance(region, Circle):
            return (circle_box_plane(region),)
        return polygon_boxes(region)


@overload
def plane(west: Box, /) -> Plane: ...
@overload
def plane(west: float, south: float, east: float, north: float) -> Plane: ...
def plane(west: Box | float, south: float = 0.0, east: float = 0.0, north: float = 0.0) -> Plane:
    """The plane with these bounds, given as four numbers or as one Box."""
    return Plane(west if isinstance(west, Box) else Box(west, south, east, north))


def _shape(box: Box) -> shapely.Geometry:
    """A box as Shapely wants it: a box without an area is a point or a line there, not a polygon."""
    if box.is_point:
        return shapely.Point(box.west, box.south)
    if box.west == box.east or box.south == box.north:
        return shapely.LineString([(box.west, box.south), (box.east, box.north)])
    return shapely.box(box.west, box.south, box.east, box.north)


def _check_box(value: object) -> None:
    if not isinstance(value, Box):
        raise RegionError(f"a place is a Box (a point has west == east and south == north), got {shown(value)}")


def _check_ordered(box: Box) -> None:
    _check_box(box)
    if box.west > box.east:
        raise RegionError(f"a box in a plane needs west <= east, got west {box.west} and east {box.east}")


def _check_polygon(polygon: Polygon) -> None:
    """Longitudes may run on beyond 180 or -180, once around the earth at most."""
    _check_degrees(polygon.exterior, 360.0, "a polygon (beyond 180 when it crosses the 180th meridian)")
    west, _, east, _ = polygon.geometry.bounds
    if east - west > 360.0:
        raise RegionError(f"a polygon may span 360 degrees of longitude, got {west} to {east}")


def _check_degrees(corners: Sequence[tuple[float, float]], most: float, name: str) -> None:
    """All corners have a longitude within ±`most` and a latitude within ±90."""
    wrong = [(x, y) for x, y in corners if abs(x) > most or abs(y) > 90.0]
    if not wrong:
        return
    x, y = wrong[0]
    swapped = any(abs(y) > 90.0 for _, y in wrong) and all(abs(x) <= 90 and abs(y) <= 180 for x, y in corners)
    raise RegionError(
        f"{name} needs longitudes in [-{most:g}, {most:g}] and latitudes in [-90, 90], "
        f"got longitude {x}, latitude {y}" + ("; longitude and latitude may be swapped" if swapped else "")
    )
