"""The hub: subscribe, unsubscribe, publish, explain."""

from __future__ import annotations

import pytest
from hypothesis import given

from nearcast import Hub, NearcastError, box, circle, plane
from nearcast.explain import explain
from nearcast.hub import UnknownSubscriptionError
from tests.worlds import World, worlds

SHIBUYA = (139.701, 35.659)


@pytest.fixture
def hub() -> Hub:
    hub = Hub()
    hub.subscribe("ana", "ramen AND (tonkotsu OR miso) NOT instant", within=circle(139.70, 35.66, metres=1500))
    hub.subscribe("bo", '"pop up"', within=box(139.6, 35.6, 139.8, 35.7), id="pop-ups")
    return hub


def test_a_message_reaches_who_wants_it(hub: Hub) -> None:
    deliveries = hub.publish("Tonkotsu ramen pop-up tonight", at=SHIBUYA, payload={"price": 3})
    assert [(d.subscriber, d.subscription) for d in deliveries] == [("ana", "ana/1"), ("bo", "pop-ups")]
    assert deliveries[0].message.payload == {"price": 3}
    assert str(deliveries[0].why).startswith("matched: ramen AND tonkotsu; inside a circle of 1,500 m, 143 m from")
    assert hub.publish("Instant tonkotsu ramen", at=SHIBUYA) == []
    assert hub.publish("Tonkotsu ramen", at=(0, 0)) == []


def test_unsubscribed_means_silence(hub: Hub) -> None:
    hub.unsubscribe("ana/1")
    assert "ana/1" not in hub
    assert len(hub) == 1
    assert [d.subscription for d in hub.publish("miso ramen pop up", at=SHIBUYA)] == ["pop-ups"]
    with pytest.raises(UnknownSubscriptionError, match="'ana/1' given; no such one of 1 is held"):
        hub.unsubscribe("ana/1")


def test_an_id_is_replaced_only_when_asked(hub: Hub) -> None:
    world = box(-180, -90, 180, 90)
    with pytest.raises(NearcastError, match="'pop-ups' exists; give replace=True"):
        hub.subscribe("bo", "jazz", within=world, id="pop-ups")
    hub.subscribe("bo", "jazz", within=world, id="pop-ups", replace=True)
    assert hub.subscription("pop-ups").expression.source == "jazz"
    assert [d.subscription for d in hub.publish("pop up jazz", at=(0, 0))] == ["pop-ups"]
    assert len(hub) == 2
    wish = hub.subscription("pop-ups")
    with pytest.raises(NearcastError, match="given twice"):
        hub.subscribe_all([wish, wish], replace=True)
    assert "pop-ups" in hub


def test_a_bad_subscription_changes_nothing(hub: Hub) -> None:
    for bad in ("ramen AND", "NOT ramen", ""):
        with pytest.raises(NearcastError):
            hub.subscribe("cy", bad, within=circle(0, 0, metres=10))
    with pytest.raises(NearcastError, match="latitude"):
        hub.subscribe("cy", "ramen", within=circle(35.66, 139.70, metres=10))
    with pytest.raises(NearcastError, match="subscriber: "):
        hub.subscribe("", "ramen", within=circle(0, 0, metres=10))
    assert len(hub) == 2


def test_bad_messages_are_refused_with_a_reason(hub: Hub) -> None:
    for text, at in (("", SHIBUYA), ("ramen", (0.0, 91.0)), ("ramen", (float("nan"), 0.0))):
        with pytest.raises(NearcastError):
            hub.publish(text, at=at)
    with pytest.raises(NearcastError, match="ts: 'soon' given"):
        hub.publish("ramen", at=SHIBUYA, ts="soon")  # type: ignore[arg-type]


def test_a_subscription_ends_by_time_and_by_number() -> None:
    hub = Hub()
    world = box(-180, -90, 180, 90)
    hub.subscribe("timed", "jazz", within=world, expires=100.0)
    hub.subscribe("twice", "jazz", within=world, max_events=2)
    reached = [d.subscriber for d in hub.publish_all([hub.message("jazz", (0, 0), ts=t) for t in (99, 100, 101)])]
    assert reached == ["timed", "twice", "twice"]
    assert len(hub) == 1


def test_explains_what_was_missing(hub: Hub) -> None:
    answer = hub.explain("ana/1", "instant ramen", at=(139.8, 35.659))
    assert not answer.matched
    assert not answer.inside
    assert answer.clause is None
    assert {v.missing for v in answer.verdicts} == {("miso",), ("tonkotsu",)}
    assert {v.unwanted for v in answer.verdicts} == {("instant",)}
    assert "missing miso; forbidden instant" in str(answer)
    assert "outside a circle of 1,500 m, 9,035 m from its centre" in str(answer)
    assert str(hub.explain("pop-ups", "pop up", at=(0, 0))) == "no match: has pop AND up; outside a box"
    assert str(hub.explain("pop-ups", "up pop", at=SHIBUYA)) == 'no match: missing "pop up"; inside a box'


def test_a_plane_hub() -> None:
    hub = Hub(space=plane(0, 0, 100, 100))
    hub.subscribe("a", '-"b c" a', within=circle(50, 50, 10))
    assert [d.subscriber for d in hub.publish("a c b", at=(60, 50))] == ["a"]
    assert hub.publish("a b c", at=(60, 50)) == []
    assert 'forbidden "b c"' in str(hub.explain("a/1", "a b c", at=(60, 50)))


def test_words_are_counted_as_messages_come(hub: Hub) -> None:
    hub.publish_all([hub.message("ramen ramen", (180, 0)), hub.message("ramen miso unheard", SHIBUYA)])
    assert hub.lexicon.messages == 2
    assert hub.lexicon.frequencies[hub.lexicon.term("ramen")] == 2
    assert "unheard" not in hub.lexicon
    assert hub.report().live == 2


@given(world=worlds())
def test_deliveries_and_explanations_agree_with_the_reference(world: World) -> None:
    hub = Hub(space=world.space)
    hub.subscribe_all(world.subscriptions)
    found = {(d.message.id, d.subscription) for d in hub.publish_all(world.messages)}
    assert found == world.truth()
    explained = {
        (m.id, s.id) for m in world.messages for s in world.subscriptions if explain(s, m, world.space).matched
    }
    assert explained == found
