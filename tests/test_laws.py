"""The laws: what every entry of the catalogue must do, in the compiled and in the pure mode.

A law is a sentence. A new index gets no tests of its own for these; it joins the catalogue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast import indexes
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import CatalogueError, SnapshotError
from nearcast.kernels.jit import PURE
from nearcast.workloads import messages as generate_messages
from nearcast.workloads import subscriptions as generate_subscriptions
from tests.families import on_one_worker
from tests.tiny import TINY
from tests.worlds import (
    Flat,
    World,
    flat_messages,
    flat_rows,
    flat_subscriptions,
    flat_truth,
    flat_worlds,
    worlds,
)

every_index = pytest.mark.parametrize("name", [on_one_worker(name) for name in [*indexes.names(), *TINY]])

retraced = pytest.mark.no_cover  # other laws pass through the same lines, and tracing takes as long as the law itself


def create(name: str, **options: Any) -> indexes.EntryIndex:
    """By catalogue name, or by the name of a case with tiny parameters."""
    name, tiny = TINY.get(name, (name, {}))
    return indexes.create(name, **tiny, **options)


def build(name: str, columns: SubscriptionColumns, **options: Any) -> indexes.EntryIndex:
    index = create(name, **options)
    index.insert(columns)
    return index


@every_index
@retraced
@given(world=flat_worlds)
def test_finds_exactly_the_matches(name: str, world: Flat) -> None:
    index = build(name, flat_subscriptions(world.subscriptions))
    pairs = index.match(flat_messages(world.messages))
    assert pairs.as_set() == flat_truth(world.subscriptions, world.messages)
    assert len(pairs.as_set()) == len(pairs.message)


@every_index
@retraced
@given(world=worlds())
def test_finds_exactly_the_matches_of_expressions_and_regions(name: str, world: World) -> None:
    columns, batch = world.columns()
    pairs = build(name, columns).match(batch)
    assert pairs.as_set() == world.truth()
    assert len(pairs.as_set()) == len(pairs.message)


@every_index
@retraced
@given(world=flat_worlds)
def test_batching_changes_nothing(name: str, world: Flat) -> None:
    index = build(name, flat_subscriptions(world.subscriptions))
    singly = {
        (number, slot)
        for number, message in enumerate(world.messages)
        for _, slot in index.match(flat_messages([message])).as_set()
    }
    assert index.match(flat_messages(world.messages)).as_set() == singly


@every_index
@given(world=flat_worlds, past=flat_rows(0, 20))
def test_history_changes_nothing_but_the_cost(name: str, world: Flat, past: list) -> None:
    index = build(name, flat_subscriptions(world.subscriptions), history=flat_messages(past))
    assert index.match(flat_messages(world.messages)).as_set() == flat_truth(world.subscriptions, world.messages)


@every_index
@given(world=flat_worlds)
def test_one_by_one_equals_bulk(name: str, world: Flat) -> None:
    index = create(name)
    slots = [int(index.insert(flat_subscriptions([row]))[0]) for row in world.subscriptions]
    assert slots == list(range(len(world.subscriptions)))
    assert index.match(flat_messages(world.messages)).as_set() == flat_truth(world.subscriptions, world.messages)


@every_index
@retraced
@given(world=flat_worlds, chance=st.randoms(use_true_random=False))
def test_insertion_order_does_not_matter(name: str, world: Flat, chance: object) -> None:
    order = list(range(len(world.subscriptions)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    index = build(name, flat_subscriptions([world.subscriptions[i] for i in order]))
    found = {(m, order[slot]) for m, slot in index.match(flat_messages(world.messages)).as_set()}
    assert found == flat_truth(world.subscriptions, world.messages)


@every_index
@given(
    steps=st.lists(st.tuples(flat_rows(1, 8), st.sets(st.integers(0, 30))), min_size=1, max_size=6),
    posts=flat_rows(0, 6),
)
def test_removed_ones_never_appear_and_the_others_stay(name: str, steps: list, posts: list) -> None:
    index = create(name)
    live: dict[int, tuple] = {}
    for rows, unwanted in steps:
        for slot, row in zip(index.insert(flat_subscriptions(rows)).tolist(), rows, strict=True):
            assert slot not in live
            live[slot] = row
        gone = sorted(unwanted & live.keys())
        index.remove(gone)
        for slot in gone:
            del live[slot]
        slots = list(live)
        truth = {(m, slots[s]) for m, s in flat_truth(list(live.values()), posts)}
        assert index.match(flat_messages(posts)).as_set() == truth
    assert index.report().live == len(live)


@every_index
@given(world=worlds(), unwanted=st.sets(st.integers(0, 9)))
def test_removal_of_expressions(name: str, world: World, unwanted: set[int]) -> None:
    columns, batch = world.columns()
    index = build(name, columns)
    gone = sorted(unwanted & set(range(len(columns))))
    index.remove(gone)
    assert index.match(batch).as_set() == {(m, s) for m, s in world.truth() if s not in gone}
    again = index.insert(columns)
    found = index.match(batch).as_set()
    assert found == {(m, s) for m, s in world.truth() if s not in gone} | {(m, int(again[s])) for m, s in world.truth()}


@every_index
@settings(max_examples=15)
@given(world=worlds(), more=flat_rows(1, 5))
def test_saved_and_loaded_answers_the_same(name: str, world: World, more: list, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("snapshot") / "index"
    columns, batch = world.columns()
    index = build(name, columns)
    if len(columns):
        index.remove([0])
        index.insert(columns)
    index.save(path)
    loaded = indexes.load(path)
    assert loaded.match(batch).as_set() == index.match(batch).as_set()
    if world.space.name == "earth":
        columns = flat_subscriptions(more)
        assert index.insert(columns).tolist() == loaded.insert(columns).tolist()
        loaded.remove([0] if loaded.report().live else [])
        index.remove([0] if index.report().live else [])
        assert loaded.match(batch).as_set() == index.match(batch).as_set()
    assert indexes.load(path).report().live == len(world.subscriptions) + max(0, len(world.subscriptions) - 1)


@every_index
@retraced
@given(world=flat_worlds)
def test_match_changes_nothing_and_candidates_include_all_matches(name: str, world: Flat) -> None:
    index = build(name, flat_subscriptions(world.subscriptions))
    batch = flat_messages(world.messages)
    first = index.match(batch)
    assert index.match(batch).as_set() == first.as_set()
    report = index.report()
    assert report.messages == 2 * len(batch)
    assert report.candidates >= report.found == 2 * len(first.message)


@every_index
def test_memory_stays_bounded_under_churn(name: str) -> None:
    index = create(name)
    rounds = 12 if PURE else 60
    columns = [_world(60, 1, seed)[0] for seed in range(4)]
    held = [index.insert(c) for c in columns]
    sizes = []
    for number in range(rounds):
        index.remove(held[number % 4])
        held[number % 4] = index.insert(columns[number % 4])
        sizes.append(index.report().bytes_total)
    assert max(sizes[rounds // 2 :]) <= 1.5 * max(sizes[: rounds // 2])
    assert index.report().live == sum(map(len, columns))


def _world(n_subscriptions: int, n_messages: int, seed: int) -> tuple[SubscriptionColumns, MessageBatch]:
    batch = generate_messages(max(n_messages, 50), seed)
    return generate_subscriptions(batch, n_subscriptions, seed + 1, area=(1e-4, 1e-1)), batch


@every_index
@pytest.mark.parametrize("seed", [1, 2])
def test_larger_worlds_agree_with_the_scan(name: str, seed: int) -> None:
    """Large enough that trees have several levels and lists several blocks; with changes in between."""
    n_subscriptions, n_messages = (150, 50) if PURE else (4000, 300)
    columns, batch = _world(n_subscriptions, n_messages, seed)
    index, scan = build(name, columns, history=batch), indexes.build("scan", columns)
    assert index.match(batch).as_set() == scan.match(batch).as_set()
    unwanted = np.random.default_rng(seed).choice(len(columns), len(columns) // 3, replace=False)
    more, _ = _world(n_subscriptions // 2, 1, seed + 10)
    for each in (index, scan):
        each.remove(unwanted)
        each.insert(more)
    assert index.match(batch).as_set() == scan.match(batch).as_set()
    assert len(scan.match(batch).message) > 0


@every_index
def test_bad_slots_and_options_get_a_clear_error(name: str, tmp_path: Path) -> None:
    index = build(name, flat_subscriptions([((0, 0, 1, 1), [1])]))
    index.remove([0])
    for slots in ([0], [7], [-1]):
        with pytest.raises(CatalogueError, match="not in use"):
            index.remove(slots)
    with pytest.raises(CatalogueError, match="option 'colour' given; it takes"):
        create(name, colour="red")
    with pytest.raises(SnapshotError, match="not a nearcast snapshot"):
        indexes.load(tmp_path)


@every_index
def test_many_equal_subscriptions_and_one_place(name: str) -> None:
    """A degenerate world: nothing can be told apart by words or place."""
    n = 40 if PURE else 500
    rows = [((3, 3, 3, 3), [1])] * n + [((0, 0, 6, 6), [1, 2])] * n
    index = build(name, flat_subscriptions(rows))
    index.insert(flat_subscriptions(rows))
    pairs = index.match(flat_messages([((3, 3, 3, 3), [1, 2]), ((0, 0, 2, 6), [1, 2]), ((3, 3, 3, 3), [2])]))
    assert np.bincount(pairs.message, minlength=3).tolist() == [4 * n, 2 * n, 0]


def test_an_unknown_index_is_named_with_those_that_exist() -> None:
    with pytest.raises(CatalogueError, match="index 'nope' given; there are scan"):
        indexes.create("nope")
