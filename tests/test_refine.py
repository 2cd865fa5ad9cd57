"""The last part of a match: true hits of circles are never more than the exact distance says."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.distance import box_distance_earth
from nearcast.kernels.jit import PURE
from nearcast.kernels.layout import Rows
from nearcast.kernels.refine import METRES_A_DEGREE, Extras, WordOrder, refine

EMPTY = np.zeros(0, dtype=np.int32)


def kept(circles: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Which box touches the circle of the same row, by the kernel."""
    n = len(circles)
    starts, counts, numbers = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int32), np.arange(n, dtype=np.int32)
    extras = Extras(starts, counts, EMPTY, starts, counts, EMPTY, circles)
    no_words = WordOrder(np.zeros(n + 1, dtype=np.int64), EMPTY, EMPTY)
    keep = np.ones(n, dtype=np.bool_)
    rows = Rows(boxes, np.zeros(n + 1, dtype=np.int64), EMPTY)
    refine(extras, rows, no_words, numbers, numbers, numbers, True, keep)
    return keep


def test_circles_on_the_earth_agree_with_the_exact_distance() -> None:
    """Centres everywhere, poles and the 180th meridian included; places from the middle to beyond the border."""
    rng = np.random.default_rng(5)
    n = 500 if PURE else 20_000
    x, y = rng.choice([-180.0, -60.0, 0.0, 179.9, 180.0], n), rng.choice([-90.0, -60.0, 0.0, 45.0, 89.9, 90.0], n)
    radius = rng.choice([0.0, 1e-3, 1.0, 1500.0, 2e5, 1e7, 2.1e7], n)
    reach = radius / METRES_A_DEGREE
    share = rng.choice([0.0, 0.3, 0.5, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, 1.5], (n, 2)) * rng.choice([-1, 1], (n, 2))
    west = np.clip(x + share[:, 0] * reach, -180, 180)
    south = np.clip(y + share[:, 1] * reach, -90, 90)
    wide = rng.choice([0.0, 0.2], n) * reach
    boxes = np.column_stack([west, south, np.minimum(west + wide, 180), np.minimum(south + wide, 90)])
    circles = np.column_stack([x, y, radius])
    exact = [box_distance_earth(*c[:2], *b) <= c[2] for c, b in zip(circles.tolist(), boxes.tolist(), strict=True)]
    assert kept(circles, boxes).tolist() == exact
    assert 0 < sum(exact) < n
