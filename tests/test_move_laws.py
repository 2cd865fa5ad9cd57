"""The laws of moving: changes are exactly the reference's, and add up; for all movers, in both modes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from nearcast import moving
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import CatalogueError, ColumnsError
from nearcast.geo import plane
from nearcast.kernels.jit import PURE
from nearcast.moving import Changes, Mover, TimeError
from nearcast.workloads import SHORT
from nearcast.workloads import messages as generate_messages
from nearcast.workloads import subscriptions as generate_subscriptions
from tests.families import on_one_worker
from tests.moved_worlds import Journey, Play, any_journeys, flat_journeys
from tests.tiny import TINY_MOVERS

NAMES = (
    ["scan", "strata-move", "ap+safe", *TINY_MOVERS] if PURE else [*moving.names(), *TINY_MOVERS]
)  # tiny ones meet all code
every_mover = pytest.mark.parametrize("name", [on_one_worker(name) for name in NAMES])
each_kind = pytest.mark.parametrize(
    "name", [on_one_worker(name) for name in (*moving.CATALOGUE, "tiny strata-move", "tiny ap+")]
)


def _named(name: str) -> tuple[str, dict[str, Any]]:
    return TINY_MOVERS.get(name, (name, {}))


def _create(name: str, **more: Any) -> Mover:
    known, options = _named(name)
    return moving.create(known, plane(0, 0, 1, 1), **options, **more)


half = settings(max_examples=max(8, settings().max_examples // 2))  # there are many movers


@every_mover
@half
@given(journey=flat_journeys)
def test_changes_are_the_reference_s(name: str, journey: Journey) -> None:
    known, options = _named(name)
    Play(known, journey, **options).run()


@every_mover
@half
@given(journey=any_journeys)
def test_all_regions_and_expressions(name: str, journey: Journey) -> None:
    known, options = _named(name)
    Play(known, journey, **options).run()


STYLE = replace(SHORT, vocabulary=60, clusters=5, words=(2, 6), zipf=1.2)  # few words: long lists


def _posted(n: int) -> MessageBatch:
    return generate_messages(n, 1, STYLE)


def _wished(n: int, **how: Any) -> SubscriptionColumns:
    return generate_subscriptions(generate_messages(n, 2, STYLE), n, 3, **how)


def _slice(batch: MessageBatch, first: int, last: int) -> MessageBatch:
    starts = batch.term_from
    return MessageBatch.from_flat(
        batch.boxes[first:last], starts[first : last + 1] - starts[first], batch.terms[starts[first] : starts[last]]
    )


def _shifted(boxes: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    by = chance.normal(0, 0.05, (len(boxes), 2))
    return boxes + np.concatenate([by, by], axis=1)


@each_kind
def test_larger_worlds_agree_with_the_scan(name: str) -> None:
    n_wishes, n_messages = (40, 120) if PURE else (2000, 3000)
    posted = _posted(n_messages)
    wishes = _wished(n_wishes, keywords=(1, 3), area=(1e-3, 1e-1))
    chance = np.random.default_rng(5)
    both = [_create(name), _create("scan")]
    slots = [mover.follow(wishes) for mover in both]
    boxes, alive = wishes.boxes.copy(), np.arange(n_wishes)
    n_changes = 0
    for now in range(10):
        size = n_messages // 10
        batch = _slice(posted, now * size, (now + 1) * size)
        ends = now + chance.integers(1, 6, size).astype(float)
        same(*(mover.arrive(batch, ends, float(now)) for mover in both))
        movers = chance.choice(alive, len(alive) // 2, replace=False)
        boxes[movers] = _shifted(boxes[movers], chance)
        ours, scan = (mover.move(s[movers], boxes[movers]) for mover, s in zip(both, slots, strict=True))
        same(ours, scan)
        n_changes += len(ours.slot)
        if now == 4:
            for mover, s in zip(both, slots, strict=True):
                mover.unfollow(s[alive[::3]])
            alive = np.setdiff1d(alive, alive[::3])
    same(*(mover.advance(100.0) for mover in both))
    assert both[0].report().messages == 0
    assert n_changes > n_wishes // 4


def same(ours: Changes, scan: Changes) -> None:
    assert len(ours.as_set()) == len(ours.slot)
    assert ours.as_set() == scan.as_set()


@each_kind
def test_away_and_back_gives_back_the_same_set(name: str) -> None:
    n = 40 if PURE else 1000
    mover = _create(name)
    wishes = _wished(n, keywords=(1, 2), area=(1e-2, 1e-1))
    slots = mover.follow(wishes)
    mover.arrive(_posted(n), np.full(n, np.inf), 0.0)
    before = [mover.current(slot).tolist() for slot in slots[:50].tolist()]
    away = mover.move(slots, wishes.boxes + 3.0)
    assert not away.entered.any()
    assert not any(len(mover.current(slot)) for slot in slots[:50].tolist())
    assert len(mover.move(slots, wishes.boxes + 3.0).slot) == 0
    back = mover.move(slots, wishes.boxes)
    assert back.as_set() == {(slot, seq, True) for slot, seq, _ in away.as_set()}
    assert [mover.current(slot).tolist() for slot in slots[:50].tolist()] == before


@each_kind
def test_memory_stays_bounded_while_all_moves(name: str) -> None:
    n = 30 if PURE else 300
    mover = _create(name)
    wishes = _wished(n, keywords=(1, 2), area=(1e-3, 1e-2))
    slots, boxes, chance = mover.follow(wishes), wishes.boxes.copy(), np.random.default_rng(1)
    batch = _posted(n)
    sizes = []
    for now in range(30 if not PURE else 16):
        mover.arrive(batch, np.full(n, now + 2.0), float(now))
        boxes = np.clip(_shifted(boxes, chance), 0.0, 1.0)
        mover.move(slots, boxes)
        sizes.append(mover.report().bytes_total)
    assert mover.report().messages == 2 * n
    half = len(sizes) // 2
    assert max(sizes[half:]) <= 1.5 * max(sizes[:half])


def test_safe_regions_save_updates_and_lose_nothing() -> None:
    n = 60 if PURE else 600
    wishes, chance = _wished(n, keywords=(1, 3), area=(1e-3, 1e-2)), np.random.default_rng(3)
    both = [_create("ap+safe"), _create("scan")]
    slots, boxes = [mover.follow(wishes) for mover in both], wishes.boxes.copy()
    for now in range(8):
        batch = generate_messages(n // 4, 10 + now, STYLE)
        same(*(mover.arrive(batch, np.full(n // 4, now + 3.0), float(now)) for mover in both))
        by = chance.normal(0, 0.002, (n, 2))
        boxes += np.concatenate([by, by], axis=1)
        same(*(mover.move(s, boxes) for mover, s in zip(both, slots, strict=True)))
    details = both[0].report().details
    assert details["updates sent"] + details["updates saved"] == 8 * n == both[0].report().moves
    assert 0.1 < details["share saved"] < 1.0
    assert details["asked by arrivals"] > 0


def test_bad_input_gets_a_clear_error() -> None:
    mover = moving.create("scan")
    one = SubscriptionColumns.from_flat(np.zeros((1, 4)), [0, 1], [0])
    [slot] = mover.follow(one).tolist()
    point = MessageBatch.from_flat(np.zeros((1, 4)), [0, 1], [0])
    for ends, now, why in [([1.0, 2.0], 0.0, "ends: shape"), ([np.nan], 0.0, "an end must"), ([1.0], np.nan, "finite")]:
        with pytest.raises((ColumnsError, TimeError), match=why):
            mover.arrive(point, ends, now)
    mover.advance(5.0)
    with pytest.raises(TimeError, match="does not run back"):
        mover.advance(4.0)
    with pytest.raises(ColumnsError, match="not a closed box"):
        mover.move([slot], [[1.0, 0.0, 0.0, 0.0]])
    with pytest.raises(ColumnsError, match="one box for each"):
        mover.move([slot], np.zeros((2, 4)))
    with pytest.raises(ColumnsError, match="as many needed"):
        mover.exchange([slot, slot], one)
    with pytest.raises(CatalogueError, match="same slot twice"):
        mover.move([slot, slot], np.zeros((2, 4)))
    with pytest.raises(CatalogueError, match="not in use"):
        mover.move([7], np.zeros((1, 4)))
    with pytest.raises(CatalogueError, match="mover 'nope' given; there are scan"):
        moving.create("nope")
    with pytest.raises(CatalogueError, match="option 'colour' given"):
        moving.create("scan", colour="red")
    with pytest.raises(CatalogueError, match="variants are none"):
        moving.create("scan:red")
    for name, options in [("scan", {"most": 0}), ("strata-move", {"fill": 0})]:
        with pytest.raises(CatalogueError, match="of at least 1"):
            moving.create(name, **options)
