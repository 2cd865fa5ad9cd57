"""The store: the same sentences are true of SQLite, PostgreSQL and memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.expression import from_words, parse
from nearcast.geo import MultiPolygon, Polygon, box, circle, earth, plane, point
from nearcast.model import Message, Subscription
from nearcast.store import Store, StoreError, open_store
from nearcast.store.access import DeadLetter, Webhook
from nearcast.store.codec import (
    message_bytes,
    message_from,
    space_bytes,
    space_from,
    subscription_bytes,
    subscription_from,
)
from nearcast.store.truth import Ending
from nearcast.text import analyzer
from tests.stores import Urls
from tests.worlds import World, worlds

UNICODE = analyzer("unicode")


@pytest.fixture
def store(new_url: Urls):
    store = open_store(new_url())
    yield store
    store.close()


def append(store: Store, *bodies: bytes, time: float = 0.0, tenant: str = "") -> int:
    return store.log.append([(tenant, body) for body in bodies], time)


# -- log --------------------------------------------------------------------------------------------


def test_sequence_numbers_grow_without_gaps(store: Store) -> None:
    assert append(store, b"a", b"b") == 1
    assert append(store) == 3  # nothing appended, nothing taken
    assert append(store, b"\x00\xff'c") == 3
    assert [tuple(row) for row in store.log.read("", 1, 9, 10)] == [(2, 0.0, b"b"), (3, 0.0, b"\x00\xff'c")]
    assert [row.seq for row in store.log.read("", 0, 2, 1)] == [1]
    assert store.log.last_seq == 3


def test_tenants_read_their_own_messages(store: Store) -> None:
    store.log.append([("x", b"1"), ("y", b"2"), ("x", b"3")], 0.0)
    assert [row.seq for row in store.log.read("x", 0, 9, 9)] == [1, 3]
    assert [row.seq for row in store.log.read("", 0, 9, 9)] == []


def test_time_never_runs_backwards_and_can_be_searched(store: Store) -> None:
    for time in (10.0, 20.0, 15.0, 30.0):
        append(store, b"m", time=time)
    assert [row.time for row in store.log.read("", 0, 9, 9)] == [10.0, 20.0, 20.0, 30.0]
    assert [store.log.seq_before(t) for t in (5, 10, 10.5, 20, 25, 30, 31)] == [0, 0, 1, 1, 3, 3, 4]


def test_retention_by_time_and_by_size(store: Store) -> None:
    for time in range(1, 7):
        append(store, b"12345", time=time)
    assert store.log.nbytes == 30
    assert store.log.purge(before=3) == 2
    assert (store.log.first_seq, store.log.nbytes) == (3, 20)
    assert store.log.purge(max_bytes=20) == 0
    assert store.log.purge(max_bytes=12) == 2  # whole messages: 10 bytes stay
    assert [row.seq for row in store.log.read("", 0, 9, 9)] == [5, 6]
    assert store.log.purge(before=1e9, max_bytes=0) == 2
    assert (store.log.first_seq, store.log.nbytes) == (7, 0)
    assert append(store, b"next", time=0) == 7
    assert [tuple(row) for row in store.log.read("", 0, 9, 9)] == [(7, 6.0, b"next")]


def test_purging_forgets_subscriptions_nobody_can_replay(store: Store) -> None:
    append(store, b"a", b"b", b"c")
    one, two, _ = store.subscriptions.change("", [(n, "ana", b"{}") for n in "xyz"], 1)
    store.subscriptions.change("", [], 4, [Ending(one, 3), Ending(two, 4)])
    append(store, b"d", time=1)
    store.log.purge(max_bytes=2)
    assert [kept.id for kept in store.subscriptions.of("", "ana", 0)] == ["y", "z"]


# -- subscriptions ----------------------------------------------------------------------------------


def test_subscriptions_are_valid_from_and_to(store: Store) -> None:
    numbers = store.subscriptions.change("", [("a", "ana", b"A"), (5, "ana", b"B"), ("5", 7, b"C")], 3)
    assert [(kept.id, kept.subscriber, kept.body) for kept in store.subscriptions.live("")] == [
        ("a", "ana", b"A"),
        (5, "ana", b"B"),
        ("5", 7, b"C"),
    ]
    [again] = store.subscriptions.change("", [("a", "ana", b"AA")], 8, [Ending(numbers[0], 8)])
    assert again > max(numbers)
    past = store.subscriptions.of("", "ana", 0)
    assert [(k.number, k.from_seq, k.to_seq) for k in past] == [
        (numbers[0], 3, 8),
        (numbers[1], 3, None),
        (again, 8, None),
    ]
    assert [k.body for k in store.subscriptions.of("", "ana", 7)] == [b"B", b"AA"]
    assert [k.body for k in store.subscriptions.of("", "ana", 6)] == [b"A", b"B", b"AA"]
    assert store.subscriptions.live("other") == []


def test_a_live_id_is_there_once(store: Store) -> None:
    store.subscriptions.change("", [("a", "ana", b"A")], 1)
    with pytest.raises(StoreError):
        store.subscriptions.change("", [("b", "ana", b"B"), ("a", "bo", b"C")], 1)
    assert [kept.id for kept in store.subscriptions.live("")] == ["a"]  # all or nothing
    store.subscriptions.change("elsewhere", [("a", "ana", b"A")], 1)


def test_events_are_counted_and_end_subscriptions(store: Store) -> None:
    one, two = store.subscriptions.change("", [("a", "ana", b"A"), ("b", "bo", b"B")], 1)
    store.subscriptions.count_events("", {one: 2, two: 1}, [Ending(one, 6)], 9)
    assert [(kept.id, kept.spent) for kept in store.subscriptions.live("")] == [("b", 1)]
    assert store.settings.get("", "counted") == b"9"


def test_cursors_never_go_back(store: Store) -> None:
    assert store.cursors.get("", "ana") is None
    for seq in (5, 9, 7):
        store.cursors.advance("", "ana", seq)
    assert store.cursors.get("", "ana") == 9
    assert store.cursors.get("other", "ana") is None


# -- access -----------------------------------------------------------------------------------------


def test_keys_are_known_by_their_digest(store: Store) -> None:
    key = store.api_keys.create("acme", "ci", frozenset({"publish"}), {"subscriptions": 5}, 1.0)
    found = store.api_keys.find(key)
    assert found is not None
    assert (found.tenant, found.name, found.scopes, found.quotas) == ("acme", "ci", {"publish"}, {"subscriptions": 5})
    assert key not in repr(store.api_keys.all())
    assert store.api_keys.find(key + "x") is None
    assert store.api_keys.revoke(found.digest)
    assert not store.api_keys.revoke(found.digest)
    assert store.api_keys.find(key) is None


def test_webhooks(store: Store) -> None:
    hook = Webhook("acme", "w1", 7, "http://localhost/x", "whsec_abc", None, 1.0)
    store.webhooks.put(hook)
    store.webhooks.put(hook._replace(url="http://localhost/y"))
    store.webhooks.disable("acme", "w1", "410 Gone")
    assert store.webhooks.all() == [hook._replace(url="http://localhost/y", disabled="410 Gone")]
    for attempts in (3, 4):
        store.webhooks.put_letter("acme", "w1", DeadLetter(9, "status 500", attempts, 2.0))
    store.webhooks.put_letter("acme", "w1", DeadLetter(5, "status 500", 3, 2.0))
    assert [(letter.seq, letter.attempts) for letter in store.webhooks.dead_letters("acme", "w1")] == [(5, 3), (9, 4)]
    store.webhooks.forget_letter("acme", "w1", 5)
    assert [letter.seq for letter in store.webhooks.dead_letters("acme", "w1")] == [9]
    assert store.webhooks.remove("acme", "w1")
    assert store.webhooks.dead_letters("acme", "w1") == []
    assert not store.webhooks.remove("acme", "w1")


# -- opening ----------------------------------------------------------------------------------------


def test_what_was_written_is_there_again(new_url: Urls) -> None:
    url = new_url()
    if url == "memory:":
        return  # forgets, and that is all there is to say
    store = open_store(url)
    append(store, b"a", b"b", b"c", time=5.0)
    store.log.purge(max_bytes=1)
    [number] = store.subscriptions.change("", [("x", "ana", b"X")], 4)
    store.subscriptions.change("", [], 4, [Ending(number, 4)])
    store.log.purge(max_bytes=0)
    store.close()
    store = open_store(url)
    assert (store.log.first_seq, store.log.last_seq) == (4, 3)
    assert append(store, b"d", time=1.0) == 4
    assert [row.time for row in store.log.read("", 0, 9, 9)] == [5.0]
    assert store.subscriptions.change("", [("x", "ana", b"X")], 5) == [number + 1]
    with pytest.raises(StoreError, match="open in another process or hub"):
        open_store(url)
    store.settings.put("", {"version": b"99"})
    store.close()
    with pytest.raises(StoreError, match="version 99 found; this nearcast reads version 1"):
        open_store(url)


def test_a_failed_append_takes_no_numbers(store: Store) -> None:
    append(store, b"a")
    with pytest.raises(StoreError):
        store.log.append([("", b"b"), (None, b"c")], 0.0)  # type: ignore[list-item]
    assert append(store, b"d") == 2
    assert [row.body for row in store.log.read("", 0, 9, 9)] == [b"a", b"d"]


@pytest.mark.parametrize("url", ["", "alerts.db", "sqlite:///", "mysql://root:secret@host/db"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(StoreError, match="postgresql://user@host/database or memory: needed") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


def test_a_path_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path}/file/x.db")
    (tmp_path / "other.db").write_text("this is no database, but long enough to look at" * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_store(f"sqlite:///{tmp_path}/other.db")


# -- codec ------------------------------------------------------------------------------------------


@given(world=worlds())
def test_values_come_back_as_they_were(world: World) -> None:
    for message in world.messages:
        assert message_from(message_bytes(message), UNICODE) == message
    for wish in world.subscriptions:
        body = subscription_bytes(wish, UNICODE)
        assert subscription_from(wish.id, wish.receiver, body, UNICODE) == wish
    assert space_from(space_bytes(world.space)) == world.space


@pytest.mark.parametrize(
    "wish",
    [
        Subscription("a", parse('ramen (miso | "hot soup") -instant'), circle(1, 2, metres=3), "ana", 5.0, 7),
        Subscription(2**62, from_words(["a AND", "B"]), box(170, -10, -170, 10), 5),
        Subscription(
            "m",
            parse("x"),
            earth.check_region(MultiPolygon((Polygon(((0, 0), (1, 0), (1, 1))), Polygon(((5, 5), (6, 5), (6, 6)))))),
        ),
    ],
)
def test_subscriptions_come_back_as_they_were(wish: Subscription) -> None:
    body = subscription_bytes(wish, UNICODE)
    assert subscription_from(wish.id, wish.receiver, body, UNICODE) == wish


def test_messages_come_back_as_they_were() -> None:
    text = 'Café\x00 "ramen" 東京 🍜'
    place = box(1, 2, 3, 4)
    message = Message("m\x00", tuple(UNICODE.tokens(text)), place, 1.5, text, {"price": [1, None]})
    again = message_from(message_bytes(message), UNICODE)
    assert again == message
    assert again.payload == message.payload
    assert space_from(space_bytes(plane(0, 0, 1, 0.1))) == plane(0, 0, 1, 0.1)


@given(
    st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=("Cs",)), min_size=1),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1),
    st.floats(-180, 180),
    st.floats(-90, 90),
    st.none() | st.floats(0, 1e11),
)
def test_the_short_way_to_bytes_writes_what_the_encoder_writes(
    identity: int | str, text: str, x: float, y: float, ts: float | None
) -> None:
    message = Message(identity, (), point(x, y), ts, text)
    value = {"id": identity, "text": text, "at": [x, y]} | ({} if ts is None else {"ts": ts})
    assert message_bytes(message) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
