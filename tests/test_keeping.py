"""A hub with a store: there again after a restart, and the past can be matched again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import Hub, NearcastError, box, circle, earth, plane, reference
from nearcast.hub import Delivery
from nearcast.keeping import checkpoint, rematch
from nearcast.model import Message, Subscription
from nearcast.store import StoreError, open_store
from tests.stores import Urls
from tests.worlds import World, worlds

WORLD = box(-180, -90, 180, 90)
SHIBUYA = (139.701, 35.659)


def clock(*times: float) -> Callable[[], float]:
    """A clock that shows these times, then stands still."""
    left = list(times)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/alerts.db"


def told(deliveries: Any) -> list[tuple[Any, Any, Any]]:
    return [(d.seq, d.subscription, d.message.id) for d in deliveries]


# -- restart ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["closed", "killed", "damaged", "moved"])
def test_a_hub_is_there_again(address: str, tmp_path: Path, ending: str) -> None:
    hub = Hub.open(address, analysis="english")
    hub.subscribe("ana", "noodles", within=circle(139.70, 35.66, metres=1500))
    hub.subscribe("bo", "jazz", within=WORLD, id="b")
    hub.checkpoint()
    hub.subscribe("cy", '"pop up" -instant', within=box(139.6, 35.6, 139.8, 35.7), id=7)
    hub.subscribe("bo", "blues", within=WORLD, id="b", replace=True)
    hub.unsubscribe(hub.subscribe("dan", "jazz", within=WORLD))
    before = told(hub.publish_all([hub.message("A noodle pop-up with jazz and blues", SHIBUYA, id="m")]))
    if ending == "closed":
        hub.close()
    else:
        hub._kept().store.close()  # as if the process were gone: no checkpoint
    index = tmp_path / "alerts.db.index"
    if ending == "damaged":
        (index / "index" / "header.json").write_text("{}")
    if ending == "moved":
        shutil.rmtree(index)
    with Hub.open(address) as hub:
        assert hub._kept().was_warm == (ending in ("closed", "killed"))
        assert len(hub) == 3
        again = hub.publish_all([hub.message("noodle pop-up, blues", SHIBUYA, id="m")])
        assert {d.subscription for d in again} == {s for _, s, _ in before} == {"ana/1", 7, "b"}
        assert {d.seq for d in again} == {2}
        assert hub.lexicon.analyzer == "english"
        assert hub.subscribe("ana", "x", within=WORLD) not in ("ana/1", "dan/2")


def test_a_checkpoint_of_another_lexicon_is_not_used(tmp_path: Path) -> None:
    one, other = f"sqlite:///{tmp_path}/one.db", f"sqlite:///{tmp_path}/other.db"
    for address, word in ((one, "jazz"), (other, "blues")):
        with Hub.open(address) as hub:
            hub.subscribe("ana", word, within=WORLD, id="a")
    shutil.rmtree(tmp_path / "one.db.index")
    shutil.move(tmp_path / "other.db.index", tmp_path / "one.db.index")
    with Hub.open(one) as hub:
        assert not hub._kept().was_warm
        assert [d.subscription for d in hub.publish("jazz", at=(0, 0))] == ["a"]
    assert checkpoint.load(tmp_path / "nothing", hub.lexicon) is None


def test_space_and_analyzer_are_recorded(new_url: Urls) -> None:
    store = open_store(new_url())
    hub = Hub.open(store, space=plane(0, 0, 10, 10), analysis="german")
    hub.close()  # the store was given, so it stays open
    assert Hub.open(store).space == plane(0, 0, 10, 10)
    assert Hub.open(store, analysis="german").lexicon.analyzer == "german"
    with pytest.raises(StoreError, match="the store was made with"):
        Hub.open(store, space=earth)
    with pytest.raises(StoreError, match="'english' asked for; the store was made with 'german'"):
        Hub.open(store, analysis="english")
    assert Hub.open(store, tenant="other").space == earth
    store.close()


def test_a_maximum_of_events_survives(address: str) -> None:
    with Hub.open(address) as hub:
        hub.subscribe("ana", "jazz", within=WORLD, id="a", max_events=4)
        hub.subscribe("bo", "jazz", within=WORLD, id="b", max_events=2)
        hub.publish("jazz", at=(0, 0))
    hub = Hub.open(address)
    hub.publish("blues", at=(0, 0))
    keeper = hub._kept()
    keeper.append([hub.message("jazz", (0, 0)), hub.message("jazz", (0, 0))])  # logged; killed before matching
    keeper.store.close()
    hub = Hub.open(address)
    assert "b" not in hub
    assert [d.subscription for d in hub.publish_all([hub.message("jazz", (0, 0), id=n) for n in (1, 2)])] == ["a"]
    assert len(hub) == 0
    assert [d.seq for d in hub.replay("ana")] == [1, 3, 4, 5]
    assert [d.seq for d in hub.replay("bo")] == [1, 3]
    hub.close()


def test_a_hub_in_memory_has_no_past() -> None:
    hub = Hub()
    with pytest.raises(StoreError, match="this hub is in memory"):
        list(hub.replay("ana"))
    hub.close()


def test_a_store_that_cannot_write_takes_nothing(address: str) -> None:
    hub = Hub.open(address)
    hub.subscribe("ana", "jazz", within=WORLD, id="a")
    hub._kept().store.close()
    with pytest.raises(StoreError):
        hub.publish("jazz", at=(0, 0))
    with pytest.raises(StoreError):
        hub.unsubscribe("a")
    with pytest.raises(StoreError):
        hub.subscribe("ana", "blues", within=WORLD, id="b")
    assert "a" in hub
    assert "b" not in hub


# -- replay -----------------------------------------------------------------------------------------


def test_replay_from_a_cursor_a_number_or_a_time(new_url: Urls) -> None:
    with Hub.open(new_url(), clock=clock(10, 20, 30, 40)) as hub:
        hub.subscribe("ana", "jazz", within=WORLD, id="a", expires=100)
        live = [d for ts in (1, 100, 2, 3) for d in hub.publish("jazz tonight", at=(0, 0), ts=ts, payload={"n": ts})]
        assert told(hub.replay("ana")) == told(live)
        assert [d.seq for d in live] == [1, 3, 4]
        assert [d.seq for d in hub.replay("ana", after=1)] == [3, 4]
        assert [d.seq for d in hub.replay("ana", since=40)] == [4]
        hub.acknowledge("ana", 3)
        assert [d.message.payload for d in hub.replay("ana")] == [{"n": 3}]
        assert list(hub.replay("nobody")) == []
        with pytest.raises(NearcastError, match="one of them needed"):
            list(hub.replay("ana", after=1, since=1))


def test_a_dry_run_before_subscribing(new_url: Urls) -> None:
    with Hub.open(new_url(), clock=clock(10, 20, 30)) as hub:
        for text in ("jazz", "blues", "jazz again"):
            hub.publish(text, at=SHIBUYA)
        run = hub.dry_run("jazz", within=WORLD)
        assert (run.matched, run.scanned, run.after, run.up_to) == (2, 3, 0, 3)
        assert [d.message.text for d in run.examples] == ["jazz", "jazz again"]
        assert str(run.examples[0].why).startswith("matched: jazz")
        assert hub.dry_run("jazz", within=WORLD, since=20, examples=0).matched == 1
        assert hub.dry_run("jazz", within=circle(0, 0, metres=5), after=1).matched == 0
        with pytest.raises(NearcastError):
            hub.dry_run("NOT jazz", within=WORLD)


def test_replay_begins_where_the_log_does(new_url: Urls) -> None:
    with Hub.open(new_url()) as hub:
        hub.subscribe("ana", "jazz", within=WORLD)
        for _ in range(4):
            hub.publish("jazz", at=(0, 0))
        hub._kept().store.log.purge(max_bytes=2 * hub._kept().store.log.nbytes // 4)
        assert [d.seq for d in hub.replay("ana")] == [3, 4]


# -- laws -------------------------------------------------------------------------------------------

SUBSCRIBERS = ("ana", "bo")
_steps = st.lists(
    st.tuples(st.sampled_from(["subscribe", "unsubscribe", "publish", "reopen"]), st.integers(0, 9)), max_size=14
)


class _Checked:
    """A hub, and beside it what the reference says each subscriber must have been sent."""

    def __init__(self, hub: Hub, world: World) -> None:
        self.hub, self.world = hub, world
        self.live: list[Delivery] = []
        self.expected: list[tuple[int, Any, Any]] = []
        self._valid: dict[Any, Subscription] = {}
        self._seq = 0

    def step(self, action: str, number: int) -> None:
        wishes, messages = self.world.subscriptions, self.world.messages
        if action == "subscribe" and number < len(wishes):
            wish = wishes[number]
            named = Subscription(number % 3, wish.expression, wish.region, SUBSCRIBERS[number % 2])
            self.hub.subscribe_all([named], replace=True)
            self._valid[named.id] = named
        if action == "unsubscribe" and number in self._valid:
            self.hub.unsubscribe(number)
            del self._valid[number]
        if action == "publish" and messages:
            self._publish([messages[number % len(messages)], messages[(number + 1) % len(messages)]])

    def _publish(self, posted: list[Message]) -> None:
        self.live += self.hub.publish_all(posted)
        for message in posted:
            self._seq += 1
            self.expected += [
                (self._seq, wish.id, wish.subscriber)
                for wish in self._valid.values()
                if reference.matches(wish, message, self.world.space)
            ]

    def replayed(self, after: int) -> list[tuple[int, Any, Any]]:
        return [(d.seq, d.subscription, d.subscriber) for s in SUBSCRIBERS for d in self.hub.replay(s, after=after)]


@given(world=worlds(), steps=_steps, cut=st.integers(0, 20), chunk=st.integers(1, 3))
def test_live_and_replayed_are_the_same_and_what_the_reference_says(
    world: World, steps: list[tuple[str, int]], cut: int, chunk: int
) -> None:
    store = open_store("memory:")
    checked = _Checked(Hub.open(store, space=world.space), world)
    for action, number in steps:
        if action == "reopen":
            checked.hub.close()
            checked.hub = Hub.open(store)
        checked.step(action, number)
    live = [(d.seq, d.subscription, d.subscriber) for d in checked.live]
    assert sorted(live, key=str) == sorted(checked.expected, key=str)
    assert [seq for seq, _, _ in live] == sorted(seq for seq, _, _ in live)
    later = [row for row in checked.expected if row[0] > cut]
    assert sorted(checked.replayed(cut), key=str) == sorted(later, key=str)
    past = checked.hub._kept().past_of("ana", cut)
    chunks, position = [], cut
    while position < store.log.last_seq:
        step = past.chunk(position, store.log.last_seq, chunk)
        chunks += [found.seq for found in step.found]
        assert position < step.position
        position = step.position
    assert chunks == sorted({seq for seq, _, subscriber in later if subscriber == "ana"})
    store.close()


@given(
    texts=st.lists(st.text("ab cé#東\u0301A", min_size=1, max_size=12).filter(str.strip), max_size=8),
    x=st.sampled_from([-180.0, 0.0, 180.0]),
)
def test_texts_are_matched_again_as_they_were(texts: list[str], x: float) -> None:
    with Hub.open("memory:") as hub:
        for word in ("a", "b", '"a b"', "é -a", "東", "#a"):
            hub.subscribe("ana", word, within=box(170, -1, -170, 1) if x else WORLD)
        live = hub.publish_all([hub.message(text, (x, 0.0)) for text in texts])
        assert sorted(told(hub.replay("ana")), key=str) == sorted(told(live), key=str)
        assert len(texts) < rematch.CHUNK
