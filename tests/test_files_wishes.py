"""Subscriptions of a file: batches join, ids belong to their first line, endings."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast import indexes
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import RowError
from nearcast.files import Endings, Wishes
from nearcast.geo import earth
from nearcast.lexicon import Lexicon
from nearcast.records import read_message, read_subscription
from nearcast.text import analyzer
from tests.rows_read import TRIANGLE, pairs


def test_batches_of_subscriptions_join_to_what_they_are_at_once() -> None:
    words = analyzer("unicode")
    sources = [
        {"expression": "a", "west": 0, "south": 0, "east": 5, "north": 5},
        {"expression": "a OR b", "west": 0, "south": 0, "east": 5, "north": 5},
        {"expression": "b NOT c", "west": 170, "south": 0, "east": -170, "north": 5},
        {"expression": '"a b"', "lon": 1, "lat": 1, "radius_m": 300_000},
        {"expression": "c", "region": TRIANGLE},
        {"expression": "c a", "west": 0, "south": 0, "east": 9, "north": 9},
    ]
    values = [read_subscription({"id": n, **source}, earth, words) for n, source in enumerate(sources)]
    texts = ["a", "b", "c", "a b", "b a", "a c", "a b c"]
    posted = [
        read_message({"id": n, "text": text, "lon": lon, "lat": 0.5}, earth, words)
        for n, (text, lon) in enumerate((text, lon) for text in texts for lon in (1, 1.5, 175, 4))
    ]
    whole = Lexicon()
    wanted = indexes.build("scan", SubscriptionColumns.from_values(values, whole)).match(
        MessageBatch.from_values(posted, whole)
    )
    for size in (1, 2, 4, 6):
        lexicon = Lexicon()
        wishes = Wishes(lexicon)
        for start in range(0, len(values), size):
            wishes.add(values[start : start + size])
        found = indexes.build("scan", wishes.columns()).match(MessageBatch.from_values(posted, lexicon))
        assert found.as_set() == wanted.as_set()
        assert wishes.ids == list(range(6))
    assert len(wanted.slot) > 20


def test_batches_of_plain_subscriptions_join_to_plain_columns() -> None:
    wishes = Wishes(Lexicon())
    for n in range(3):
        record = {"id": n, "expression": "a", "west": 0, "south": 0, "east": n, "north": 1}
        wishes.add([read_subscription(record, earth, analyzer("unicode"))])
    columns = wishes.columns()
    assert (columns.owner, columns.conditions, len(columns)) == (None, None, 3)
    assert columns.boxes[:, 2].tolist() == [0, 1, 2]


def test_no_subscriptions_are_columns_too() -> None:
    assert len(Wishes(Lexicon()).columns()) == 0


def test_an_id_belongs_to_its_first_line() -> None:
    wishes = Wishes(Lexicon())
    wishes.claim("1", 4)
    with pytest.raises(RowError, match="id: 1 given; the subscription of line 4 has it already"):
        wishes.claim(1, 9)
    wishes.claim(2, 9)


def test_subscriptions_end_as_in_the_hub() -> None:
    endings = Endings(np.array([np.inf, 10.0, np.inf, 10.0]), np.array([np.inf, np.inf, 2.0, 1.0]))
    every = pairs(*((message, slot) for message in (2, 1, 0) for slot in (0, 1, 2, 3)))
    first = endings.apply(every, [9.0, None, 10.0])
    assert first.as_set() == {(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3)}
    assert endings.apply(pairs((0, 0), (0, 1), (0, 2), (0, 3)), [1.0]).as_set() == {(0, 0), (0, 1)}
    assert len(endings.apply(pairs(), []).slot) == 0


def test_subscriptions_without_an_end_cost_nothing() -> None:
    every = pairs((0, 0))
    assert Endings(np.array([np.inf]), np.array([np.inf])).apply(every, [None]) is every
