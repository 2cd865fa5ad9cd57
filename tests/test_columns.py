"""Columns: what is sealed, what is refused, what comes back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from nearcast import indexes
from nearcast.columns import MessageBatch, Pairs, SubscriptionColumns
from nearcast.columns.parts import cut_subscriptions, join_columns, to_arrays
from nearcast.errors import ColumnsError
from nearcast.geo import Box, earth, plane
from nearcast.lexicon import Lexicon
from nearcast.model import Message
from nearcast.text import Token
from tests.worlds import Flat, flat_messages, flat_subscriptions, flat_truth, flat_worlds

BOX = [[0, 0, 1, 1]]
both = pytest.mark.parametrize("columns", [MessageBatch, SubscriptionColumns])


@both
@pytest.mark.parametrize(
    ("boxes", "starts", "terms", "told"),
    [
        ([0, 0, 1, 1], [0, 1], [1], r"boxes: shape \(4,\) given"),
        ([[0, 0, 1]], [0, 1], [1], "shape"),
        ([["a", 0, 1, 1]], [0, 1], [1], "boxes: <U"),
        ([[0, 0, 1, 1], [0, 0]], [0, 1], [1], "not an array of numbers"),
        (BOX, [0], [1], r"\[2\] \(rows \+ 1\) needed"),
        (BOX, [1, 1], [1], "must rise from 0"),
        (BOX, [0, 2], [1], "must rise from 0"),
        (BOX, [0, 1], [1.5], "float64 given, int32 needed"),
        (BOX, [0, 1], [2**40], "does not fit int32"),
        (BOX, [0, 2], [2, 1], "row 0: terms must be 0 or more, ascending and distinct"),
        (BOX, [0, 2], [1, 1], "row 0: terms must be"),
        (BOX, [0, 1], [-1], "row 0: terms must be"),
        ([[0, 0, np.nan, 1]], [0, 1], [1], "row 0: not a closed box"),
        ([[0, 0, np.inf, 1]], [0, 1], [1], "row 0: not a closed box"),
        ([[2, 0, 1, 1]], [0, 1], [1], "row 0: not a closed box"),
        ([[0, 2, 1, 1]], [0, 1], [1], "row 0: not a closed box"),
    ],
)
def test_flat_columns_refuse_what_kernels_could_not_trust(columns, boxes, starts, terms, told) -> None:
    with pytest.raises(ColumnsError, match=told):
        columns.from_flat(boxes, starts, terms)


def test_a_clause_without_terms_is_refused_and_a_message_without_is_not() -> None:
    with pytest.raises(ColumnsError, match="row 1: a clause needs at least one required term"):
        SubscriptionColumns.from_flat(BOX * 2, [0, 1, 1], [1])
    assert len(MessageBatch.from_flat(BOX, [0, 0], [])) == 1


@both
def test_flat_columns_are_sealed_to_one_layout(columns) -> None:
    boxes = np.asfortranarray(np.zeros((3, 4), dtype=np.float32))
    terms = np.arange(6, dtype=np.int64)[::2]
    terms.setflags(write=False)
    sealed = columns.from_flat(boxes, np.array([0, 1, 2, 3], dtype=np.int32), terms)
    for array, dtype in ((sealed.boxes, np.float64), (sealed.term_from, np.int64), (sealed.terms, np.int32)):
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable
    assert sealed.terms.tolist() == [0, 2, 4]
    assert len(sealed) == 3


@both
def test_float32_boxes_keep_their_exact_values(columns) -> None:
    side = np.float32(0.1)
    assert columns.from_flat([[side] * 4], [0, 1], [1]).boxes[0, 0] == float(side)


@given(world=flat_worlds)
def test_arrow_there_and_back(world: Flat) -> None:
    wishes, rows, rejected = SubscriptionColumns.from_arrow(flat_subscriptions(world.subscriptions).to_arrow())
    batch, _, _ = MessageBatch.from_arrow(flat_messages(world.messages).to_arrow())
    assert rejected == []
    assert rows.tolist() == list(range(len(world.subscriptions)))
    found = indexes.build("scan", wishes).match(batch).as_set()
    assert found == flat_truth(world.subscriptions, world.messages)


def test_arrow_rows_are_rejected_with_reasons_and_the_others_served() -> None:
    table = pa.table(
        {
            "lon": [1.0, None, 2.0, 3.0, 4.0],
            "lat": [1.0, 1.0, 2.0, 3.0, float("nan")],
            "terms": [[3, 1], [1], None, [], [2]],
        }
    )
    batch, rows, rejected = MessageBatch.from_arrow(table)
    assert rows.tolist() == [0, 3]
    assert batch.terms.tolist() == [1, 3]
    assert [(r.row, r.reason.split(":")[0]) for r in rejected] == [
        (1, "not a closed box"),
        (2, "terms are missing"),
        (4, "not a closed box"),
    ]
    _, rows, rejected = SubscriptionColumns.from_arrow(table)
    assert rows.tolist() == [0]
    assert [r.reason for r in rejected if r.row == 3] == ["a clause needs at least one required term"]
    duplicate = pa.table({"lon": [1.0], "lat": [1.0], "terms": [[2, 2]]})
    assert "distinct" in MessageBatch.from_arrow(duplicate)[2][0].reason


def test_arrow_without_the_needed_columns_says_what_is_needed() -> None:
    with pytest.raises(ColumnsError, match="terms and west,south,east,north or lon,lat needed"):
        MessageBatch.from_arrow(pa.table({"lon": [1.0]}))


def test_records_serve_the_good_rows_and_keep_the_others_aside() -> None:
    lexicon = Lexicon()
    wishes, ids, rejected = SubscriptionColumns.from_records(
        [
            {"id": "a", "expression": "ramen AND (miso OR tonkotsu)", "lon": 139.7, "lat": 35.6, "radius_m": 1500},
            {"id": "b", "expression": "ramen AND", "lon": 139.7, "lat": 35.6, "radius_m": 1500},
            {"id": "c", "terms": ["jazz"], "west": 170, "south": 0, "east": -170, "north": 10},
        ],
        lexicon,
    )
    assert ids == ["a", "c"]
    assert len(wishes) == 2
    assert [(r.row, "AND has nothing after it" in r.reason) for r in rejected] == [(1, True)]
    batch, ids, rejected = MessageBatch.from_records(
        [
            {"id": 1, "text": "Miso RAMEN!", "lon": 139.7, "lat": 35.6},
            {"id": 2, "text": "jazz", "lon": 139.7, "lat": 95},
            {"id": 3, "terms": "jazz", "lon": -180, "lat": 5},
        ],
        lexicon,
    )
    assert ids == [1, 3]
    assert [r.row for r in rejected] == [1]
    assert indexes.build("scan", wishes).match(batch).as_set() == {(0, 0), (1, 1)}


def test_terms_of_a_message_with_several_rows_count_once() -> None:
    lexicon = Lexicon()
    lexicon.intern_all(["a", "b"])
    words = (Token("a", 0), Token("b", 1), Token("a", 2))
    batch = MessageBatch.from_values(
        [Message(1, words, Box(180, 90, 180, 90)), Message(2, words, Box(1, 1, 1, 1))], lexicon
    )
    assert len(batch.boxes) > len(batch) == 2
    assert batch.terms_once().tolist() == [0, 1, 0, 1]


def test_pairs_are_a_set() -> None:
    message, slot = np.array([1, 0, 1, 1], dtype=np.int32), np.array([2, 5, 2, 0], dtype=np.int32)
    once = Pairs.once_each(message, slot)
    assert once.message.tolist() == [0, 1, 1]
    assert once.slot.tolist() == [5, 0, 2]
    assert once.to_arrow().column_names == ["message", "slot"]
    shuffled = Pairs(once.message[::-1], once.slot[::-1]).by_message()
    assert shuffled.slot.tolist() == [5, 0, 2]


def test_one_index_has_one_space() -> None:
    index = indexes.create("scan")
    index.insert(SubscriptionColumns.from_flat(BOX, [0, 1], [1]))
    other = SubscriptionColumns.from_values([], Lexicon(), space=plane(0, 0, 1, 1))
    assert earth.name == "earth"
    with pytest.raises(ColumnsError, match="given to an index of"):
        index.insert(other)


def test_a_phrase_needs_word_order() -> None:
    lexicon = Lexicon()
    record = {"id": 1, "expression": '"live jazz"', "west": 0, "south": 0, "east": 9, "north": 9}
    wishes, _, _ = SubscriptionColumns.from_records([record], lexicon)
    index = indexes.build("scan", wishes)
    terms = sorted(lexicon.terms(["live", "jazz"]))
    with pytest.raises(ColumnsError, match="no word order"):
        index.match(MessageBatch.from_flat([[1, 1, 1, 1]], [0, 2], terms))
    assert index.match(MessageBatch.from_flat([[1, 1, 1, 1]], [0, 1], terms[:1])).as_set() == set()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_columns_cut_and_joined_are_the_same(size: int) -> None:
    rows = [
        {"id": 1, "expression": "ramen OR (miso AND NOT soba)", "west": 0, "south": 0, "east": 1, "north": 1},
        {"id": 2, "expression": '"hot soup" AND tea', "lon": 1, "lat": 2, "radius_m": 500},
        {"id": 3, "expression": "jazz", "west": 170, "south": 0, "east": -170, "north": 1},
        {"id": 4, "expression": "rock", "region": "POLYGON ((0 0, 1 0, 0 1, 0 0))"},
    ]
    whole, _, rejected = SubscriptionColumns.from_records(rows, Lexicon())
    assert not rejected
    parts = list(cut_subscriptions(whole, size))
    assert [len(part) for part in parts] == [min(size, 4 - first) for first in range(0, 4, size)]
    told, again = to_arrays(whole), to_arrays(join_columns(parts, whole.space))
    assert told.keys() == again.keys()
    assert all(np.array_equal(told[name], again[name], equal_nan=name == "circles") for name in told)
