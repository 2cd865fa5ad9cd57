"""Polygons against exact arithmetic written another way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearcast.errors import RegionError
from nearcast.geo import Box, Polygon, earth, point, polygon
from tests.coordinates import covered, flat, quick

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
