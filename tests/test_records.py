"""Records: what is served, what is rejected with which reason, and that nothing else ever happens."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import records
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import ExpressionError, NearcastError, RegionError, RowError
from nearcast.geo import Box, Circle, MultiPolygon, Polygon, earth
from nearcast.lexicon import Lexicon
from nearcast.records import read_id, read_message, read_subscription
from nearcast.text import analyzer

WORDS = analyzer("unicode")
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
HUGE = pytest.param(10**5000, id="huge")  # Python refuses to show so many digits
TOWARDS = {"type": "Polygon", "coordinates": [[[5, 5], [6, 5], [6, 6], [5, 6], [5, 5]]]}


def message(**fields: Any) -> Any:
    """A good message with some fields changed; None takes one away."""
    record = {"id": 1, "text": "Hot ramen", "lon": 1.5, "lat": 2.5} | fields
    return read_message({k: v for k, v in record.items() if v is not ...}, earth, WORDS)


def subscription(**fields: Any) -> Any:
    record = {"id": 1, "expression": "ramen", "lon": 1.5, "lat": 2.5, "radius_m": 100} | fields
    return read_subscription({k: v for k, v in record.items() if v is not ...}, earth, WORDS)


# -- messages -------------------------------------------------------------------------------------------


def test_a_message_keeps_its_id_text_place_and_time() -> None:
    read = message(ts="2026-01-01T00:00:00Z")
    assert (read.id, read.text, read.ts) == (1, "Hot ramen", 1767225600.0)
    assert read.place == Box(1.5, 2.5, 1.5, 2.5)
    assert [token.word for token in read.tokens] == ["hot", "ramen"]


def test_a_message_may_have_a_box() -> None:
    read = message(lon=..., lat=..., west=1, south=2, east=3, north="4")
    assert read.place == Box(1, 2, 3, 4)


def test_one_side_of_a_box_alone_is_not_a_place() -> None:
    with pytest.raises(RowError, match=r"south: nothing given; a finite decimal number needed"):
        message(west=1)


@pytest.mark.parametrize("terms", [["b", "a", "b"], ("b", "a"), "b a  b"])
def test_terms_stand_for_words_and_have_no_order(terms: Any) -> None:
    read = message(text=..., terms=terms)
    assert read.text is None
    assert [token.word for token in read.tokens] == ["b", "a"]
    assert read.tokens[1].position - read.tokens[0].position == records.UNORDERED_GAP


def test_terms_may_be_integers() -> None:
    assert [token.word for token in message(text=..., terms=[7, -3]).tokens] == ["7", "-3"]


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ([], r"a list of words or integers needed"),
        ({"a": 1}, r"a list of words or integers needed"),
        (5, r"a list of words or integers needed"),
        ("   ", r"a list of words or integers needed"),
        ([""], r"'' among them; words or integers needed"),
        ([None], r"nothing among them"),
        ([True], r"True among them"),
        ([1.5], r"1\.5 among them"),
        ([["a"]], r"\['a'\] among them"),
        (["\ud800"], r"half a surrogate pair at character 1"),
        pytest.param([10**5000], r"among them; words or integers needed", id="huge"),
        (["a"] * 100_001, r"100,001 given; at most 100,000 allowed"),
    ],
)
def test_bad_terms(terms: Any, reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        message(text=..., terms=terms)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (..., r"text: nothing given; text \(or terms\) needed"),
        (None, r"text: nothing given"),
        (12345, r"text: 12345 given"),
        (True, r"text: True given"),
        (["a"], r"text: \['a'\] given"),
        ("", r"only white space given"),
        (" \t\n\r\xa0\u2003", r"only white space given"),
        ("half \ud83d", r"text: half a surrogate pair at character 6"),
        ("a" * 1_000_001, r"1,000,001 characters given; at most 1,000,000 allowed"),
    ],
)
def test_bad_texts(text: Any, reason: str) -> None:
    with pytest.raises(RowError, match=reason):
        message(text=text)


@pytest.mark.parametrize("text", ["😕", "...", "\u200b", "\x00", "<b>&amp;", "=1+1", "a" * 1_000_000])
def test_texts_without_words_and_odd_ones_are_served_unchanged(text: str) -> None:
    assert message(text=text).text == text


# -- numbers, ids, times --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "number"), [("2.5", 2.5), (" 2.5 ", 2.5), ("+.5", 0.5), ("1e1", 10.0), (-0.0, 0.0), (90, 90.0)]
)
def test_numbers_and_text_that_is_plainly_one(value: Any, number: float) -> None:
    assert message(lat=value).place.south == number


@pytest.mark.parametrize(
    "value",
    [
        *(None, "", "abc", "37,7", "37.7N", "0x25", "NaN", "Infinity", "1e999", "1_0", "30.", "１２.５", "\t1"),
        *(math.nan, math.inf, -math.inf, True, [1], {"v": 1}, HUGE, Decimal(1)),
    ],
)
def test_what_is_no_finite_number(value: Any) -> None:
    with pytest.raises(RowError, match=r"^lat: .* given; a finite decimal number needed$"):
        message(lat=value)


@pytest.mark.parametrize(("lon", "lat"), [(180.5, 0), (0, 90.0001), (-122419.4, 37.77), (44.1, -93.9)])
def test_places_outside_the_earth(lon: float, lat: float) -> None:
    with pytest.raises(RegionError, match="longitudes in"):
        message(lon=lon, lat=lat)


@pytest.mark.parametrize("identity", [0, -1, 2**63 - 1, -(2**63), "abc", "00123", " ", "a\x00b", "=1"])
def test_ids_stay_as_they_are(identity: Any) -> None:
    assert read_id({"id": identity}) == identity


@pytest.mark.parametrize("identity", [None, "", 1.5, True, [1], {}, 2**63, -(2**63) - 1, HUGE, math.nan])
def test_what_is_no_id(identity: Any) -> None:
    with pytest.raises(RowError, match=r"^id: .* given; text of 1 to 500 characters or a 64-bit integer needed$"):
        message(id=identity)


def test_an_id_is_text_that_can_be_written() -> None:
    with pytest.raises(RowError, match="id: half a surrogate pair at character 2"):
        message(id="x\udc00")


@pytest.mark.parametrize(
    ("ts", "seconds"),
    [
        (None, None),
        ("", None),
        (-1, -1.0),
        (1700000000, 1.7e9),
        ("1700000000.5", 1700000000.5),
        ("1970-01-02", 86400.0),
        ("1970-01-01 00:00:01", 1.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        (" 1970-01-01T00:00:00Z ", 0.0),
        (datetime(1970, 1, 1, 0, 0, 1), 1.0),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0.0),
        (datetime(1970, 1, 2, tzinfo=UTC), 86400.0),
        (date(1970, 1, 2), 86400.0),
        ("9999-12-31T23:59:59Z", 253402300799.0),
    ],
)
def test_times(ts: Any, seconds: float | None) -> None:
    assert message(ts=ts).ts == seconds


@pytest.mark.parametrize(
    "ts",
    [
        *("yesterday", "2026-13-45T99:99:99Z", "0000-00-00 00:00:00", "Sat Feb 30 10:00:00 +0000 2014"),
        *("19-09-2022", "NaN", "1e999", 99999999999999, 1700000000000, math.inf, math.nan, True, [1], {}),
        *(10**400, "\ud800"),
    ],
)
def test_what_is_no_time(ts: Any) -> None:
    with pytest.raises(RowError, match=r"^ts: .* given; ISO 8601 or seconds since 1970"):
        message(ts=ts)


def test_reasons_stay_short_for_long_values() -> None:
    with pytest.raises(RowError) as caught:
        message(lat="x" * 100_000)
    assert len(str(caught.value)) < 200


def test_reasons_exist_for_values_that_have_no_repr() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RowError, match=r"lat: .* given"):
        message(lat=deep)


# -- subscriptions --------------------------------------------------------------------------------------


def test_a_subscription_with_everything() -> None:
    read = subscription(subscriber="ana", expires="1970-01-02", max_events="3")
    assert (read.id, read.subscriber, read.expires, read.max_events) == (1, "ana", 86400.0, 3)
    assert read.region == Circle(1.5, 2.5, 100.0)
    assert read.expression.source == "ramen"


def test_a_subscription_with_the_least() -> None:
    read = subscription(subscriber="", expires=None, max_events="")
    assert (read.subscriber, read.expires, read.max_events) == (None, None, None)


def test_terms_of_a_subscription_are_taken_as_they_are() -> None:
    clauses = subscription(expression=..., terms=["NOT", 7]).expression.clauses
    assert [clause.required for clause in clauses] == [{"NOT", "7"}]


@pytest.mark.parametrize("fields", [{"terms": ["a"]}, {"expression": ...}, {"expression": "", "terms": ""}])
def test_either_expression_or_terms(fields: dict[str, Any]) -> None:
    with pytest.raises(RowError, match="either expression or terms needed"):
        subscription(**fields)


@pytest.mark.parametrize("expression", [5, ["a"], {"a": 1}, True])
def test_an_expression_is_text(expression: Any) -> None:
    with pytest.raises(RowError, match=r"expression: .* given; text needed"):
        subscription(expression=expression)


def test_an_expression_that_cannot_be_parsed() -> None:
    with pytest.raises(ExpressionError):
        subscription(expression="(ramen")
    with pytest.raises(RowError, match="expression: half a surrogate pair"):
        subscription(expression="ramen \ud800")


NO_CIRCLE: dict[str, Any] = {"lon": ..., "lat": ..., "radius_m": ...}


@pytest.mark.parametrize(
    ("region", "kind"),
    [
        (SQUARE, Polygon),
        ("POLYGON ((0 0, 1 0, 1 1, 0 0))", Polygon),
        ('{"type": "Point", "coordinates": [1, 2]}', Box),
        ({"type": "MultiPolygon", "coordinates": [SQUARE["coordinates"], TOWARDS["coordinates"]]}, MultiPolygon),
        (
            {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"radius_m": 5}},
            Circle,
        ),
    ],
)
def test_written_regions(region: Any, kind: type) -> None:
    assert isinstance(subscription(region=region, **NO_CIRCLE).region, kind)


def test_a_box_as_region() -> None:
    read = subscription(west=170, south=-1, east=-170, north=1, **NO_CIRCLE)
    assert read.region == Box(170, -1, -170, 1)


@pytest.mark.parametrize(
    ("fields", "error", "reason"),
    [
        (NO_CIRCLE, RowError, "no place given; one of region"),
        ({"region": SQUARE}, RowError, "region and lon,lat,radius_m given"),
        ({"west": 1}, RowError, "west,south,east,north and lon,lat,radius_m given"),
        ({"radius_m": ...}, RowError, "radius_m: nothing given"),
        ({"radius_m": -1}, RegionError, "radius must be 0 or more"),
        ({"region": 5, **NO_CIRCLE}, RowError, "region: 5 given; GeoJSON or WKT needed"),
        ({"region": [1], **NO_CIRCLE}, RowError, "GeoJSON or WKT needed"),
        ({"region": "nowhere", **NO_CIRCLE}, RegionError, "WKT"),
        ({"region": "\ud800", **NO_CIRCLE}, RowError, "region: half a surrogate pair"),
        ({"region": {}, **NO_CIRCLE}, RegionError, "GeoJSON"),
        ({"west": 0, "south": 2, "east": 1, "north": 1, **NO_CIRCLE}, RegionError, "south <= north"),
    ],
)
def test_bad_regions(fields: dict[str, Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        subscription(**fields)


@pytest.mark.parametrize("most", [0, -1, 1.5, "0"])
def test_a_maximum_of_events_is_a_whole_number(most: Any) -> None:
    with pytest.raises(RowError, match=r"max_events: .* given; a whole number of at least 1 needed"):
        subscription(max_events=most)


def test_a_subscriber_is_an_id() -> None:
    with pytest.raises(RowError, match=r"subscriber: 1\.5 given"):
        subscription(subscriber=1.5)


# -- anything at all ------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [None, 5, "id", [], [("id", 1)], True])
@pytest.mark.parametrize("read", [read_message, read_subscription])
def test_a_record_has_named_fields(read: Any, record: Any) -> None:
    with pytest.raises(RowError, match="an object with named fields needed"):
        read(record, earth, WORDS)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, -(2**63), 10**400]),
    st.floats(),
    st.text(st.characters(), max_size=12),  # half surrogate pairs too
    st.sampled_from(["a", "1.5", "-90", "a AND b", "(a", "NOT a", "POINT (1 2)", "2026-01-01", "{}", "1e999"]),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
FIELDS = (
    *("id", "text", "terms", "expression", "region", "lon", "lat", "radius_m", "west", "south", "east", "north"),
    *("ts", "expires", "max_events", "subscriber"),
)
good_fields = st.fixed_dictionaries(
    {"id": st.integers(0, 9)},
    optional={
        "text": st.just("ramen now"),
        "expression": st.just("ramen"),
        "lon": st.floats(-180, 180),
        "lat": st.floats(-90, 90),
        "radius_m": st.just(10),
        "region": st.sampled_from([SQUARE, "POINT (1 2)"]),
        "ts": st.just("2026-01-01"),
    },
)
any_records = st.builds(
    dict.__or__, good_fields | st.just({}), st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=5)
)


@given(st.lists(any_records | json_values, max_size=6))
def test_any_json_value_is_served_or_rejected_with_a_reason(rows: list[Any]) -> None:
    for columns in (MessageBatch, SubscriptionColumns):
        served, ids, rejected = columns.from_records(rows, Lexicon("unicode"))
        assert len(served) == len(ids) == len(rows) - len(rejected)
        assert all(row.reason.strip() for row in rejected)
        assert all(isinstance(identity, str | int) for identity in ids)


@given(any_records)
def test_reading_one_record_raises_nothing_else(record: dict[str, Any]) -> None:
    for read in (read_message, read_subscription):
        with suppress(NearcastError):
            assert read(record, earth, WORDS).id == record["id"]
