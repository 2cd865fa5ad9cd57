"""Coordinates that love poles, the 180th meridian and its neighbours."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from nearcast.geo import Box, Region, Space, plane
from nearcast.geo.cover import meet

flat = plane(-100, -100, 100, 100)
quick = settings(max_examples=100, deadline=None)
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


def covered(space: Space, region: Region, place: Box) -> bool:
    return any(meet(r, p) for r in space.region_boxes(region) for p in space.place_boxes(place))
