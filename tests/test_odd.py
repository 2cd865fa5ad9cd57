"""Odd worlds: the answers are right, as inserted at once or bit by bit, and after half of it is gone."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast import Hub, indexes
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import ColumnsError, NearcastError
from nearcast.geo import box
from tests.families import on_one_worker
from tests.odd import ODD, OddWorld

N, M = 150, 6

every_index = pytest.mark.parametrize("name", [on_one_worker(name) for name in indexes.CATALOGUE])


def truth(world: OddWorld, gone: int = 0) -> set[tuple[int, int]]:
    """Subscriptions from `gone` on, each compared with each message."""
    wishes, posts = world
    found = set()
    for m, (place, has) in enumerate(zip(posts.boxes, runs(posts), strict=True)):
        for s, (region, wants) in enumerate(zip(wishes.boxes, runs(wishes), strict=True)):
            touches = (place[:2] <= region[2:]).all() and (region[:2] <= place[2:]).all()
            if s >= gone and touches and wants <= has:
                found.add((m, s))
    return found


def runs(columns: MessageBatch | SubscriptionColumns) -> list[set[int]]:
    return [set(run.tolist()) for run in np.split(columns.terms, columns.term_from[1:-1])]


def part(columns: SubscriptionColumns, first: int, last: int) -> SubscriptionColumns:
    starts = columns.term_from[first : last + 1]
    return SubscriptionColumns.from_flat(
        columns.boxes[first:last], starts - starts[0], columns.terms[starts[0] : starts[-1]]
    )


@every_index
@pytest.mark.parametrize("kind", ODD)
def test_odd_worlds_have_right_answers(name: str, kind: str) -> None:
    world = ODD[kind](N, M)
    expected = truth(world)
    assert expected, "nothing matches: this would show nothing"
    index = indexes.build(name, world.subscriptions)
    assert index.match(world.messages).as_set() == expected
    grown = indexes.create(name)
    slots = np.concatenate([grown.insert(part(world.subscriptions, at, at + 50)) for at in range(0, N, 50)])
    owner = {slot: number for number, slot in enumerate(slots.tolist())}
    assert {(m, owner[s]) for m, s in grown.match(world.messages).as_set()} == expected
    grown.remove(slots[: N // 2])
    assert {(m, owner[s]) for m, s in grown.match(world.messages).as_set()} == truth(world, N // 2)


def test_a_clause_without_words_is_refused() -> None:
    with pytest.raises(ColumnsError, match="term"):
        SubscriptionColumns.from_flat(np.zeros((2, 4)), [0, 1, 1], [5])
    for expression in ("", "   ", "NOT ramen", "...", "()", '""', "ramen OR NOT jazz"):
        with pytest.raises(NearcastError):
            Hub().subscribe("ana", expression, within=box(0, 0, 1, 1))


def test_a_message_without_known_words_or_with_ten_thousand_is_served() -> None:
    hub = Hub()
    hub.subscribe("ana", "ramen AND word9999", within=box(-180, -90, 180, 90))
    assert hub.publish("!!!", at=(0, 0)) == []
    text = "ramen " + " ".join(f"word{n}" for n in range(10_000))
    assert [d.subscriber for d in hub.publish(text, at=(0, 0))] == ["ana"]
    assert [d.subscriber for d in hub.publish_all([hub.message(text, (0, 0)) for _ in range(6)])] == ["ana"] * 6
