"""Road networks: real ones, or a generated grid, and the ways through them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.errors import NearcastError
from nearcast.workloads.real import DataAbsent, data_folder
from nearcast.workloads.sampling import Floats, generator, require

ROAD_CLASSES = 7  # 0 is the fastest, as in Brinkhoff's networks
_GRID = 11  # keeps the stream of the grid apart from others


@dataclass(frozen=True)
class Roads:
    """Crossings in the unit square and roads between them, which may be used in both directions."""

    nodes: NDArray[np.float64]  # [n, 2]  x, y in [0, 1]
    ends: NDArray[np.int32]  # [m, 2]  crossings of a road
    road_class: NDArray[np.int8]  # [m]

    @cached_property
    def lengths(self) -> Floats:
        return np.asarray(np.hypot(*(self.nodes[self.ends[:, 0]] - self.nodes[self.ends[:, 1]]).T))

    @cached_property
    def _leaving(self) -> list[list[tuple[int, float]]]:
        """By crossing: (crossing at the other end, seconds at the speed of the road's class)."""
        leaving: list[list[tuple[int, float]]] = [[] for _ in range(len(self.nodes))]
        costs = self.lengths / class_speed(self.road_class)
        for (a, b), cost in zip(self.ends.tolist(), costs.tolist(), strict=True):
            leaving[a].append((b, cost))
            leaving[b].append((a, cost))
        return leaving

    @cached_property
    def _known_ways(self) -> dict[int, NDArray[np.int32]]:
        return {}

    def ways_to(self, goal: int) -> NDArray[np.int32]:
        """By crossing, the next one on the quickest way to the goal; -1 where no way leads there, and at the goal."""
        if goal not in self._known_ways:
            self._known_ways[goal] = self._find_ways(goal)
        return self._known_ways[goal]

    def _find_ways(self, goal: int) -> NDArray[np.int32]:
        following = np.full(len(self.nodes), -1, np.int32)
        best = np.full(len(self.nodes), np.inf)
        best[goal] = 0.0
        waiting = [(0.0, goal)]
        while waiting:
            cost, node = heapq.heappop(waiting)
            if cost > best[node]:
                continue
            for other, more in self._leaving[node]:
                if cost + more < best[other]:
                    best[other] = cost + more
                    following[other] = node
                    heapq.heappush(waiting, (cost + more, other))
        return following


def class_speed(road_class: NDArray[np.int8]) -> Floats:
    """Share of the highest speed that a road allows."""
    return np.asarray((ROAD_CLASSES - road_class) / ROAD_CLASSES)


def grid_roads(side: int = 40, seed: int = 1) -> Roads:
    """A town of `side` by `side` crossings, slightly crooked; every fifth street is a fast one. Needs no files."""
    require(side >= 2, f"side must be at least 2, not {side}")
    rng = generator(seed, _GRID)
    x, y = np.meshgrid(np.arange(side), np.arange(side))
    crossings = np.stack([x.ravel(), y.ravel()], axis=1)
    nodes = (crossings + rng.uniform(-0.3, 0.3, crossings.shape) * ((crossings > 0) & (crossings < side - 1))) / (
        side - 1
    )
    number = y * side + x
    east = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    north = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    street = np.concatenate([y[:, :-1].ravel(), x[:-1].ravel()])
    road_class = np.where(street % 5 == 0, 1, rng.integers(4, ROAD_CLASSES, len(street)))
    return Roads(nodes, np.concatenate([east, north]).astype(np.int32), road_class.astype(np.int8))


def read_roads(name: str) -> Roads:
    """`oldenburg` (the papers' ODB) or `california`, scaled to the unit square; DataAbsent where there is no file."""
    if name not in _FILES:
        raise NearcastError(f"roads {name!r} given; there are grid, {', '.join(_FILES)}")
    folder = data_folder()
    nodes, edges = (None if folder is None else folder / f"road_{name}_{part}.parquet" for part in ("nodes", "edges"))
    if nodes is None or edges is None or not nodes.is_file() or not edges.is_file():
        raise DataAbsent(f"roads of {name}: no files road_{name}_nodes.parquet and …_edges.parquet in {folder}")
    return _FILES[name](nodes, edges)


@cache
def find_roads(name: str) -> Roads:
    """Roads by name, read once; `grid` is always there."""
    return grid_roads() if name == "grid" else read_roads(name)


def _oldenburg(nodes: Path, edges: Path) -> Roads:
    return _scaled(nodes, edges, ("x", "y"), pq.read_table(edges)["road_class"].to_numpy())


def _california(nodes: Path, edges: Path) -> Roads:
    """Its roads have no classes: all are of a middle one."""
    return _scaled(nodes, edges, ("lon", "lat"), np.full(pq.read_metadata(edges).num_rows, ROAD_CLASSES // 2))


_FILES: dict[str, Callable[[Path, Path], Roads]] = {"oldenburg": _oldenburg, "california": _california}
ROADS = ("grid", *_FILES)
"""Names that `find_roads` knows."""


def _scaled(nodes: Path, edges: Path, axes: tuple[str, str], road_class: NDArray[np.int64]) -> Roads:
    """Both axes by the same factor, so that distances keep their proportion."""
    table, roads = pq.read_table(nodes), pq.read_table(edges)
    places = np.stack([table[axis].to_numpy().astype(np.float64) for axis in axes], axis=1)
    places = (places - places.min(axis=0)) / (places.max(axis=0) - places.min(axis=0)).max()
    ids = table["id"].to_numpy()
    order = np.argsort(ids)
    ends = [order[np.searchsorted(ids[order], roads[end].to_numpy())] for end in ("from_id", "to_id")]
    return Roads(
        places, np.stack(ends, axis=1).astype(np.int32), np.clip(road_class, 0, ROAD_CLASSES - 1).astype(np.int8)
    )
