"""Roads and the traffic on them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nearcast.errors import NearcastError
from nearcast.workloads import DataAbsent, data_folder
from nearcast.workloads.roads import Roads, find_roads, grid_roads, read_roads
from nearcast.workloads.traffic import MEDIUM, Traffic, squares, taxi_rides

needs_data = pytest.mark.skipif(
    data_folder() is None or not (data_folder() / "road_oldenburg_nodes.parquet").is_file(),
    reason="the road networks and taxis are not on this machine",
)


def _on_a_road(roads: Roads, places: np.ndarray) -> np.ndarray:
    """Distance of each place to the nearest road."""
    a, b = roads.nodes[roads.ends[:, 0]], roads.nodes[roads.ends[:, 1]]
    way = b - a
    length = np.maximum((way**2).sum(axis=1), 1e-300)
    share = np.clip(((places[:, None] - a) * way).sum(axis=2) / length, 0, 1)
    return np.hypot(*np.moveaxis(places[:, None] - (a + share[..., None] * way), 2, 0)).min(axis=1)


def test_objects_drive_on_roads_and_no_faster_than_they_may() -> None:
    roads = grid_roads(8)
    traffic = Traffic(roads, 300, 1, mobility=0.5, destinations=10)
    before = traffic.places
    assert len(traffic) == 300
    for _ in range(5):
        moves = traffic.step()
        assert 80 < len(moves.who) < 220
        assert np.array_equal(traffic.places[moves.who], moves.places)
        assert np.hypot(*(moves.places - before[moves.who]).T).max() <= MEDIUM + 1e-12
        still = np.setdiff1d(np.arange(300), moves.who)
        assert np.array_equal(traffic.places[still], before[still])
        before = traffic.places
        assert _on_a_road(roads, before).max() < 1e-9
        assert before.min() >= 0
        assert before.max() <= 1


def test_the_same_seed_drives_the_same_way_and_speed_counts() -> None:
    roads = grid_roads(8)
    one, same, fast, parked = (Traffic(roads, 200, 7, speed=s, destinations=10) for s in (1.0, 1.0, 3.0, 0.0))
    start = one.places
    assert np.array_equal(one.step().places, same.step().places)
    ways = [np.hypot(*(t.places - start).T).mean() for t in (one, fast)]
    assert ways[0] > 0
    fast.step()
    assert np.hypot(*(fast.places - start).T).mean() > 1.5 * ways[0]
    parked.step()
    assert np.array_equal(parked.places, start)


def test_an_island_waits() -> None:
    nodes = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]])
    roads = Roads(nodes, np.array([[0, 1]], np.int32), np.zeros(1, np.int8))
    traffic = Traffic(roads, 50, 1)
    for _ in range(3):
        assert np.isfinite(traffic.step().places).all()


def test_bad_arguments_and_absent_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roads = grid_roads(3)
    for options, why in [({"mobility": 2.0}, "mobility"), ({"speed": -1.0}, "speed")]:
        with pytest.raises(NearcastError, match=why):
            Traffic(roads, 5, 1, **options)
    with pytest.raises(NearcastError, match="side must"):
        grid_roads(1)
    with pytest.raises(NearcastError, match="areas must"):
        squares(np.zeros((1, 2)), np.zeros(1))
    with pytest.raises(NearcastError, match="'rome' given; there are grid, oldenburg"):
        find_roads("rome")
    monkeypatch.setenv("NEARCAST_DATA", str(tmp_path))
    with pytest.raises(DataAbsent, match="road_oldenburg_nodes"):
        read_roads("oldenburg")
    with pytest.raises(DataAbsent, match="taxi_sf_week"):
        next(taxi_rides())


@needs_data
@pytest.mark.real_data
def test_real_roads_and_taxis() -> None:
    for name, crossings in [("oldenburg", 6105), ("california", 21_048)]:
        roads = find_roads(name)
        assert len(roads.nodes) == crossings
        assert (roads.nodes.min(), roads.nodes.max()) == (0.0, 1.0)
        moves = Traffic(roads, 100, 1, destinations=2).step()
        assert _on_a_road(roads, moves.places[:10]).max() < 1e-9
    rides = list(taxi_rides(60.0, most_steps=3))
    assert [round(later.ts - ride.ts) for ride, later in pairwise(rides)] == [60, 60]
    assert all(len(np.unique(ride.who)) == len(ride.who) > 100 for ride in rides)
    assert all((np.abs(ride.places - [-122.4, 37.8]) < 2).all() for ride in rides)
