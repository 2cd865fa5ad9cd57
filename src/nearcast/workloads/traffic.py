"""Movement on roads, after Brinkhoff's network-based generator of moving objects (VLDBJ'17 section 5.2.1).

An object starts at a crossing, takes the quickest way to a destination, and then to another. It drives at the speed of
its own class, or of the road's where that is lower. In one timestamp a share of all objects, the *mobility*, moves
on and reports where it is. Destinations are a few hundred crossings, so that ways are looked up, not searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.workloads.real import DataAbsent, data_folder
from nearcast.workloads.roads import Roads, class_speed
from nearcast.workloads.sampling import Floats, generator, require

MEDIUM = 2 / 50
"""Way of the fastest object on the fastest road in one timestamp, for a square of side 1: a fiftieth of the sum of
the extents, which is what users of the generator call medium."""
OBJECT_CLASSES = 6
_TRAFFIC = 12


class Moves(NamedTuple):
    """Who moved in one timestamp, and where each is now."""

    who: NDArray[np.int64]  # [n]
    places: NDArray[np.float64]  # [n, 2]


class Traffic:
    """Objects on roads; the same arguments always give the same movement."""

    def __init__(
        self, roads: Roads, n: int, seed: int, *, speed: float = 1.0, mobility: float = 1.0, destinations: int = 128
    ) -> None:
        """`speed` is a multiple of MEDIUM; `mobility` the share of objects that moves in a timestamp."""
        require(n >= 0, f"the number of objects must not be negative, not {n}")
        require(speed >= 0, f"speed must not be negative, not {speed}")
        require(0 <= mobility <= 1, f"mobility must be a share in [0, 1], not {mobility}")
        self._rng = generator(seed, _TRAFFIC)
        self._roads, self._mobility, self._n = roads, mobility, n
        goals = self._rng.choice(len(roads.nodes), min(destinations, len(roads.nodes)), replace=False)
        self._ways = np.stack([roads.ways_to(int(goal)) for goal in goals])  # [goal, crossing]
        self._goal = self._rng.integers(0, len(goals), n)
        self._from = self._rng.integers(0, len(roads.nodes), n)
        self._to = self._ways[self._goal, self._from].astype(np.int64)
        self._driven = np.zeros(n)  # on the road between the two
        own_class = self._rng.integers(0, OBJECT_CLASSES, n)
        self._speed = speed * MEDIUM * (1.0 - own_class / OBJECT_CLASSES)
        self._limits = _by_ends(roads, speed)
        self._turn_round(np.arange(n))

    def __len__(self) -> int:
        return self._n

    @property
    def places(self) -> Floats:
        """[n, 2] where all of them are."""
        return self._place(np.arange(self._n))

    def step(self) -> Moves:
        """One timestamp."""
        who = np.flatnonzero(self._rng.random(self._n) < self._mobility)
        self._drive(who)
        return Moves(who, self._place(who))

    def _place(self, who: NDArray[np.int64]) -> Floats:
        start, end = self._roads.nodes[self._from[who]], self._roads.nodes[self._to[who]]
        length = np.hypot(*(end - start).T)
        share = np.divide(self._driven[who], length, out=np.zeros(len(who)), where=length > 0)
        return np.asarray(start + (end - start) * np.minimum(share, 1.0)[:, None])

    def _drive(self, who: NDArray[np.int64]) -> None:
        """Each drives for one timestamp, from crossing to crossing."""
        left = np.ones(len(who))  # of the timestamp
        for _ in range(_MOST_CROSSINGS):
            start, end = self._from[who], self._to[who]
            length = np.hypot(*(self._roads.nodes[end] - self._roads.nodes[start]).T)
            speed = np.minimum(self._speed[who], self._limits.of(start, end))
            way = speed * left
            stays = self._driven[who] + way < length
            self._driven[who[stays]] += way[stays]
            arrived = ~stays & (speed > 0)
            spent = np.divide(length - self._driven[who], speed, out=np.zeros(len(who)), where=arrived)
            who, left = who[arrived], (left - spent)[arrived]
            if not len(who):
                return
            self._from[who], self._driven[who] = self._to[who], 0.0
            self._to[who] = self._ways[self._goal[who], self._from[who]]
            self._turn_round(who)

    def _turn_round(self, who: NDArray[np.int64]) -> None:
        """Those who are there, or cannot get there, choose another destination; if need be they wait."""
        for _ in range(4):
            who = who[self._to[who] < 0]
            if not len(who):
                return
            self._goal[who] = self._rng.integers(0, len(self._ways), len(who))
            self._to[who] = self._ways[self._goal[who], self._from[who]]
        stuck = who[self._to[who] < 0]
        self._to[stuck] = self._from[stuck]


_MOST_CROSSINGS = 64  # in one timestamp


class _Limits:
    """Speed allowed between two crossings."""

    def __init__(self, keys: NDArray[np.int64], speeds: Floats, n_nodes: int) -> None:
        self._keys, self._speeds, self._n = keys, speeds, n_nodes

    def of(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> Floats:
        at = np.searchsorted(self._keys, start * self._n + end).clip(0, len(self._keys) - 1)
        return np.asarray(self._speeds[at])


def _by_ends(roads: Roads, speed: float) -> _Limits:
    n = len(roads.nodes)
    ends = roads.ends.astype(np.int64)
    keys = np.concatenate([ends[:, 0] * n + ends[:, 1], ends[:, 1] * n + ends[:, 0]])
    speeds = np.tile(speed * MEDIUM * class_speed(roads.road_class), 2)
    order = np.argsort(keys)
    return _Limits(keys[order], speeds[order], n)


def squares(places: Floats, areas: Floats) -> Floats:
    """[n, 4] squares around places; areas are shares of the unit square."""
    require(bool((areas > 0).all()), "areas must be shares above 0")
    half = 0.5 * np.sqrt(areas)[:, None]
    return np.concatenate([places - half, places + half], axis=1)


class Ride(NamedTuple):
    """What taxis reported in one step of time: the last place of each that reported."""

    ts: float  # end of the step, seconds since 1970
    who: NDArray[np.int64]
    places: NDArray[np.float64]  # longitude, latitude


def taxi_rides(seconds: float = 60.0, *, most_steps: int | None = None) -> Iterator[Ride]:
    """A week of real taxis of San Francisco, step by step; DataAbsent where there is no file."""
    folder = data_folder()
    path = None if folder is None else folder / "taxi_sf_week.parquet"
    if path is None or not path.is_file():
        raise DataAbsent(f"taxis: no file taxi_sf_week.parquet in {folder}")
    table = pq.read_table(path, columns=["id", "lat", "lon", "ts"])
    table = table.take(pc.sort_indices(table, [("ts", "ascending")]))
    ts = table["ts"].to_numpy().astype("datetime64[ms]").astype(np.int64) / 1000.0
    who = table["id"].to_numpy().astype(np.int64)
    places = np.stack([table["lon"].to_numpy(), table["lat"].to_numpy()], axis=1)
    step = np.floor((ts - ts[0]) / seconds).astype(np.int64)
    for number, (start, end) in enumerate(_runs(step)):
        if most_steps is not None and number == most_steps:
            return
        _, last = np.unique(who[start:end][::-1], return_index=True)
        chosen = np.sort(end - 1 - last)
        yield Ride(float(ts[0] + (step[start] + 1) * seconds), who[chosen], places[chosen])


def _runs(values: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    starts = np.flatnonzero(np.diff(values, prepend=values[0] - 1))
    yield from zip(starts.tolist(), [*starts[1:].tolist(), len(values)], strict=True)
