"""What only the AP-Tree promises: cheap partitions, changes where they are due, and the corrections of the paper."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import indexes
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import CatalogueError
from nearcast.kernels import ap_cost
from nearcast.kernels.jit import PURE
from nearcast.workloads import messages as generate_messages
from nearcast.workloads import subscriptions as generate_subscriptions

pure_only = pytest.mark.skipif(not PURE, reason="helpers of kernels cannot be called when compiled")


def _line(weights: list[int], chances: list[float]) -> ap_cost.Line:
    mass = np.concatenate([[0], np.cumsum(weights)]).astype(np.int64)
    return ap_cost.Line(mass, mass, mass, mass, np.concatenate([[0.0], np.cumsum(chances)]))


def _cost(line: ap_cost.Line, borders: np.ndarray, parts: int) -> float:
    return sum(ap_cost.part_cost(line, borders[k], borders[k + 1]) for k in range(parts))


_words = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 8)), min_size=2, max_size=8)


@pure_only
@given(words=_words, parts=st.integers(2, 5))
def test_the_optimal_keyword_partition_is_the_cheapest_of_all(words: list, parts: int) -> None:
    n, parts = len(words), min(parts, len(words))
    line = _line([w for w, _ in words], [p / 8 for _, p in words])
    best = ap_cost.Best(np.zeros(64, dtype=np.int64), np.zeros((2, 64)), np.zeros((parts + 1, 64), dtype=np.int32))
    borders, heuristic = np.zeros(n + 2, dtype=np.int64), np.zeros(n + 2, dtype=np.int64)
    ap_cost.divide_optimally(line, n, parts, borders, best)
    ap_cost.divide_evenly(line, n, parts, heuristic)
    even = _cost(line, heuristic, parts)
    ap_cost.improve(line, parts, heuristic)
    cheapest = min(_cost(line, np.array([0, *inner, n]), parts) for inner in combinations(range(1, n), parts - 1))
    assert np.all(np.diff(borders[: parts + 1]) > 0)
    assert _cost(line, borders, parts) == pytest.approx(cheapest)
    assert cheapest - 1e-9 <= _cost(line, heuristic, parts) <= even + 1e-9


@pure_only
def test_a_long_vocabulary_is_tied_together_before_the_dynamic_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ap_cost, "DP_POSITIONS", 8)
    line = _line([1, 2, 3, 4] * 10, [0.1, 0.2, 0.0, 0.3] * 10)
    best = ap_cost.Best(np.zeros(64, dtype=np.int64), np.zeros((2, 64)), np.zeros((5, 64), dtype=np.int32))
    borders = np.zeros(42, dtype=np.int64)
    ap_cost.divide_optimally(line, 40, 4, borders, best)
    assert borders[0] == 0
    assert borders[4] == 40
    assert np.all(np.diff(borders[:5]) > 0)


def _world(n: int, seed: int) -> tuple[SubscriptionColumns, MessageBatch]:
    batch = generate_messages(400, seed)
    return generate_subscriptions(batch, n, seed + 1), batch


def _shifted(columns: SubscriptionColumns, by: float) -> SubscriptionColumns:
    return SubscriptionColumns.from_flat(columns.boxes * 0.1 + by, columns.term_from, columns.terms)


def test_a_node_is_built_again_when_the_subscriptions_drift_away() -> None:
    n = 120 if PURE else 3000
    columns, batch = _world(n, 1)
    index = indexes.build("ap-tree", columns, f=8, theta_p=4, priority="space")
    assert index.report().rebuilds == 0
    for _ in range(3):
        index.insert(_shifted(columns, 0.8))
    assert index.report().rebuilds > 0
    everything = indexes.build("scan", columns)
    for _ in range(3):
        everything.insert(_shifted(columns, 0.8))
    assert index.match(batch).as_set() == everything.match(batch).as_set()


def test_a_high_threshold_of_divergence_leaves_nodes_as_they_are() -> None:
    n = 120 if PURE else 3000
    columns, _ = _world(n, 1)
    index = indexes.build("ap-tree", columns, f=8, theta_p=4, theta_kl=1e9)
    index.insert(_shifted(columns, 0.8))
    report = index.report()
    assert report.rebuilds == 0
    assert report.details["splits"] > 0


def test_nodes_that_become_small_become_leaves() -> None:
    columns, _ = _world(200, 3)
    index = indexes.build("ap-tree", columns, f=4, theta_p=8, theta_kl=1e9)
    order = np.argsort(columns.terms[columns.term_from[:-1]])
    before = index.report().details
    for slots in np.array_split(order[:150], 10):
        index.remove(slots)
    after = index.report().details
    assert after["merges"] > 0
    assert after["leaves"] < before["leaves"]


def test_priorities_show_in_the_tree() -> None:
    columns, batch = _world(600, 5)
    details = {
        name: indexes.build(name, columns, history=batch).report().details
        for name in ("ap-tree", "ap-tree:keyword", "ap-tree:space", "ap-tree:trie-quadtree")
    }
    assert details["ap-tree"]["messages_known"] == len(batch)
    assert details["ap-tree:keyword"]["root"] == "keyword"
    assert details["ap-tree:space"]["root"] == "space"
    assert details["ap-tree:trie-quadtree"]["cuts"] > details["ap-tree:keyword"]["cuts"]


def test_a_region_is_stored_no_more_often_than_it_saves() -> None:
    """Large boxes in a fine grid would be copied into nearly every cell."""
    boxes = [[i % 7, i % 5, 90 + i % 11, 90 + i % 3] for i in range(400)]
    columns = SubscriptionColumns.from_flat(boxes, np.arange(401), np.zeros(400, dtype=np.int32))
    details = indexes.build("ap-tree:space", columns).report().details
    assert details["elements"] <= 4 * 400


def test_history_is_kept_in_a_snapshot(tmp_path: Path) -> None:
    columns, batch = _world(100, 7)
    index = indexes.build("ap-tree", columns, history=batch)
    index.save(tmp_path / "index")
    loaded = indexes.load(tmp_path / "index")
    assert loaded.report().details == index.report().details
    loaded.insert(_world(300, 9)[0])  # more than there were: built anew, by the same history
    assert loaded.report().details["messages_known"] == len(batch)


def test_coordinates_without_bounds() -> None:
    boxes = [[-1e308, -1e308, 1e308, 1e308], [0, 0, 1e-300, 0], [1e9, 0, 1e9, 5]]
    columns = SubscriptionColumns.from_flat(boxes, [0, 1, 2, 3], [0, 0, 0])
    batch = MessageBatch.from_flat([[0, 0, 0, 0], [1e9, 5, 2e9, 5], [-1e308, 7, 0, 1e308]], [0, 1, 2, 3], [0, 0, 0])
    index = indexes.build("ap-tree", columns, theta_p=1, f=2)
    assert index.match(batch).as_set() == {(0, 0), (0, 1), (1, 0), (1, 2), (2, 0)}


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("f", 1, "2 to 10000"),
        ("theta_p", 0, "1 or more"),
        ("theta_kl", -1.0, "0 or more"),
        ("keyword_partition", "best", "heuristic, optimal"),
        ("priority", "words", "adaptive, keyword, space"),
        ("order", "random", "rare, frequent"),
    ],
)
def test_a_bad_option_is_told_with_what_is_allowed(option: str, value: object, allowed: str) -> None:
    with pytest.raises(CatalogueError, match=rf"ap-tree: {option}={value!r} given; .*{allowed}"):
        indexes.create("ap-tree", **{option: value})
