"""Places, regions and the spaces they lie in."""

from nearcast.geo.formats import from_geojson, from_wkt, parse_region, to_geojson, to_wkt
from nearcast.geo.regions import (
    Box,
    Circle,
    MultiPolygon,
    Polygon,
    Region,
    box,
    circle,
    multipolygon,
    point,
    polygon,
)
from nearcast.geo.space import Earth, Plane, Space, earth, plane
from nearcast.kernels.distance import (
    EARTH_RADIUS_M,
    RADIAN,
    box_distance_earth,
    box_distance_plane,
    distance_plane,
    haversine,
    meridian_distance,
)

__all__ = [
    "EARTH_RADIUS_M",
    "RADIAN",
    "Box",
    "Circle",
    "Earth",
    "MultiPolygon",
    "Plane",
    "Polygon",
    "Region",
    "Space",
    "box",
    "box_distance_earth",
    "box_distance_plane",
    "circle",
    "distance_plane",
    "earth",
    "from_geojson",
    "from_wkt",
    "haversine",
    "meridian_distance",
    "multipolygon",
    "parse_region",
    "plane",
    "point",
    "polygon",
    "to_geojson",
    "to_wkt",
]
