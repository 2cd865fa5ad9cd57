"""Moving subscriptions of a hub: text in, enter and leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast import Hub, box, circle
from nearcast.errors import NearcastError, RowError
from nearcast.geo import plane
from nearcast.moving.tracker import UnknownFollowerError
from nearcast.ranking import Window

LINE = plane(0, 0, 10, 1)


def told(deliveries: list) -> list[tuple]:
    return [(d.operation, d.subscription, d.message.id) for d in deliveries]


def line(west: float, east: float):
    return box(west, 0, east, 1)


def test_a_taxi_s_messages_change_as_it_drives() -> None:
    hub = Hub(space=LINE, window=Window(seconds=60.0))
    assert hub.follow("bo", "taxi NOT shared", within=line(0, 2), subscriber="driver") == "bo"
    assert told(hub.publish("taxi please", at=(5, 0), id=1, ts=0)) == []
    [enter] = hub.publish("taxi here", at=(1, 0), id=2, ts=10)
    assert told([enter]) == [("enter", "bo", 2)]
    assert enter.subscriber == "driver"
    assert enter.why.matched
    hub.publish("shared taxi", at=(5, 0), id=3, ts=10)
    moved = hub.move("bo", line(1, 5))
    assert told(moved) == [("enter", "bo", 1)]
    assert [message.id for message in hub.current("bo")] == [1, 2]
    assert hub.follower("bo").region == line(1, 5)
    assert told(hub.move("bo", circle(6, 0, 2))) == [("leave", "bo", 2)]
    assert told(hub.advance(60)) == [("leave", "bo", 1)]
    assert hub.current("bo") == []
    [again] = hub.publish("taxi taxi", at=(6, 0), id=4, ts=61, ttl=5)
    assert told([again]) == [("enter", "bo", 4)]
    [left] = hub.publish("ferry", at=(6, 0), id=5, ts=66)
    assert told([left]) == [("leave", "bo", 4)]
    with pytest.raises(NearcastError, match="not wanted any more"):
        _ = left.why
    hub.unfollow("bo")
    assert hub.followers() == []
    assert hub.publish("taxi", at=(6, 0), ts=70) == []


def test_moves_of_one_step_and_words_that_came_before_the_wish() -> None:
    hub = Hub(space=LINE, window=Window(count=3))
    hub.follow("a", "jazz", within=line(0, 1))
    hub.publish("rock and soul", at=(1, 0), id=1)
    hub.follow("b", "soul", within=line(0, 1))
    assert [message.id for message in hub.current("b")] == [1]
    hub.publish("jazz", at=(9, 0), id=2)
    step = hub.move_all({"a": line(8, 9), "b": line(5, 6)})
    assert sorted(told(step)) == [("enter", "a", 2), ("leave", "b", 1)]
    hub.publish("one", at=(0, 0))
    hub.publish("two", at=(0, 0))
    assert told(hub.publish("three", at=(0, 0))) == [("leave", "a", 2)]
    assert hub.move_report().live == 2
    assert len(hub.followers()) == 2


def test_matches_rankings_and_moves_side_by_side_in_a_store(tmp_path: Path) -> None:
    with Hub.open(f"sqlite:///{tmp_path}/hub.db", space=LINE) as hub:
        hub.subscribe("cy", "jazz", within=line(0, 10), id="match")
        rank = hub.rank("cy", "jazz", near=(0, 0))
        hub.follow("move", "jazz", within=line(0, 5))
        deliveries = hub.publish("jazz", at=(1, 0), id=1)
        assert told(deliveries) == [("match", "match", 1), ("enter", rank, 1), ("enter", "move", 1)]
        assert {d.seq for d in deliveries} == {1}


def test_bad_moves_get_a_clear_error() -> None:
    hub = Hub(window=Window(seconds=5.0))
    with pytest.raises(NearcastError, match="holds no moving subscription"):
        hub.move("bo", box(0, 0, 1, 1))
    hub.follow("bo", "taxi", within=box(0, 0, 1, 1))
    with pytest.raises(NearcastError, match="'bo' exists"):
        hub.follow("bo", "taxi", within=box(0, 0, 1, 1))
    with pytest.raises(UnknownFollowerError, match="'cy' given"):
        hub.move_all({"bo": box(5, 5, 6, 6), "cy": box(0, 0, 1, 1)})
    assert hub.follower("bo").region == box(0, 0, 1, 1)
    with pytest.raises(NearcastError, match="999"):
        hub.move("bo", box(0, 0, 999, 1))
    with pytest.raises(NearcastError, match="has no ts; a window of seconds"):
        hub.publish("taxi", at=(0, 0))
    with pytest.raises(RowError, match="ttl: -1 given"):
        hub.publish("taxi", at=(0, 0), ts=0, ttl=-1)
    hub.publish("taxi", at=(0, 0), ts=10)
    with pytest.raises(NearcastError, match="does not run back"):
        hub.advance(9)


@pytest.mark.parametrize("is_closed", [True, False])
def test_followers_and_live_messages_are_there_again(tmp_path: Path, is_closed: bool) -> None:
    url = f"sqlite:///{tmp_path}/hub.db"
    options = {"space": LINE, "window": Window(seconds=60.0)}
    hub = Hub.open(url, **options)
    hub.publish("taxi before", at=(1, 0), id=0, ts=1)
    hub.follow("bo", "taxi", within=line(0, 2), subscriber="driver")
    hub.follow("cy", "taxi", within=line(0, 9))
    hub.follow("dy", "taxi", within=line(0, 9))
    hub.publish("taxi early", at=(1, 0), id=1, ts=10)
    hub.publish("taxi late", at=(7, 0), id=2, ts=60)
    hub.unfollow("dy")
    hub.move("bo", line(6, 8))
    if is_closed:
        hub.close()
    else:
        hub.checkpoint()
        hub.publish("taxi last", at=(7, 0), id=3, ts=65)
        hub._keeper.store.close()
        hub._keeper = None
    with Hub.open(url, **options) as again:
        last = [] if is_closed else [3]
        assert [wish.id for wish in again.followers()] == ["bo", "cy"]
        assert again.follower("bo").receiver == "driver"
        assert [m.id for m in again.current("bo")] == [2, *last]
        assert [m.id for m in again.current("cy")] == [1, 2, *last]
        assert told(again.publish("ferry", at=(0, 0), id=4, ts=70)) == [("leave", "cy", 1)]
        assert sorted(told(again.move("cy", line(0, 1)))) == [("leave", "cy", i) for i in (2, *last)]
        with pytest.raises(NearcastError, match="'bo' exists"):
            again.follow("bo", "taxi", within=line(0, 2))


def test_who_moved_and_left_is_gone_after_the_next_start(tmp_path: Path) -> None:
    with Hub.open(f"sqlite:///{tmp_path}/a.db") as hub:
        for name in ("bo", "cy"):
            hub.follow(name, "taxi", within=box(0, 0, 1, 1))
            hub.move(name, box(5, 5, 6, 6))
        hub.unfollow("bo")
    with Hub.open(f"sqlite:///{tmp_path}/a.db") as hub:
        hub.publish("taxi", at=(5.5, 5.5), id=1)
        assert [message.id for message in hub.current("cy")] == [1]
        with pytest.raises(NearcastError, match="no such one"):
            hub.current("bo")
