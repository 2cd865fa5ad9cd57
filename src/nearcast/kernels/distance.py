"""Distances as scalar operations in a fixed order.

A compiled kernel that repeats these operations one by one agrees with them to the last bit, so nothing
here is rearranged for beauty: only + - * /, comparisons and sin, cos, asin, atan2, sqrt of `math`.
"""

from __future__ import annotations

import math

from nearcast.kernels.jit import shared

EARTH_RADIUS_M = 6371008.8  # mean radius of the WGS84 ellipsoid, metres
RADIAN = math.pi / 180.0  # one degree in radians


@shared
def haversine(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """Great-circle distance in metres between two positions in degrees."""
    s_lat = math.sin((lat2 - lat1) * RADIAN / 2.0)
    s_lon = math.sin((lon2 - lon1) * RADIAN / 2.0)
    a = s_lat * s_lat + math.cos(lat1 * RADIAN) * math.cos(lat2 * RADIAN) * (s_lon * s_lon)
    return 2.0 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(a)))


@shared
def meridian_distance(lon: float, lat: float, meridian: float, south: float, north: float) -> float:
    """Least distance in metres from a position to the arc of `meridian` from `south` to `north`.

    Along the whole meridian circle the cosine of the distance is A * cos(latitude - foot); the nearest
    point of the arc is the foot, or an end when the foot lies beyond it or on the opposite meridian.
    """
    y = lat * RADIAN
    turn = (meridian - lon) * RADIAN
    foot = math.atan2(math.sin(y), math.cos(y) * math.cos(turn)) / RADIAN
    nearest = min(max(foot, south), north)
    return min(
        haversine(lon, lat, meridian, nearest),
        haversine(lon, lat, meridian, south),
        haversine(lon, lat, meridian, north),
    )


@shared
def box_distance_earth(lon: float, lat: float, west: float, south: float, east: float, north: float) -> float:
    """Least distance in metres from a position to a box with west <= east; 0 inside.

    At equal latitude, distance grows with the longitude between: so the nearest point lies on the
    position's own meridian where the box has it, otherwise on the box's west or east side.
    """
    if west == east and south == north:
        return haversine(lon, lat, west, south)
    if west <= lon <= east or west <= lon + 360.0 <= east or west <= lon - 360.0 <= east:
        return haversine(lon, lat, lon, min(max(lat, south), north))
    return min(
        meridian_distance(lon, lat, west, south, north),
        meridian_distance(lon, lat, east, south, north),
    )


@shared
def distance_plane(x1: float, y1: float, x2: float, y2: float) -> float:
    """Euclidean distance between two points."""
    dx = x2 - x1
    dy = y2 - y1
    return math.sqrt(dx * dx + dy * dy)


@shared
def box_distance_plane(x: float, y: float, west: float, south: float, east: float, north: float) -> float:
    """Least Euclidean distance from a point to a box; 0 inside."""
    dx = max(west - x, 0.0, x - east)
    dy = max(south - y, 0.0, y - north)
    return math.sqrt(dx * dx + dy * dy)
