"""The reference is checked by hand: it decides everything else."""

from __future__ import annotations

import math

import pytest

from nearcast import reference
from nearcast.expression import from_words
from nearcast.geo import Box, plane, point
from nearcast.model import Message, Subscription
from nearcast.text import Token

LINE = plane(0, 0, 10, 0.0000001)


def message(number: int, words: str, x: float, ts: float | None = None) -> Message:
    return Message(number, tuple(Token(w, i) for i, w in enumerate(words.split())), point(x, 0), ts)


def wish(words: str, west: float, east: float) -> Subscription:
    return Subscription("s", from_words(words.split()), Box(west, 0, east, 0))


def test_match_is_closed_and_needs_all_words() -> None:
    wishes = [wish("a", 1, 2), wish("a b", 0, 9)]
    posts = [message(0, "a", 1), message(1, "a b", 2), message(2, "b", 1), message(3, "a", 2.5)]
    assert reference.match(wishes, posts, LINE) == {(0, 0), (1, 0), (1, 1)}


def test_move_tells_changes_only() -> None:
    current = reference.Current(LINE)
    assert current.arrive([(message(1, "a", 1), 10)], now=0) == set()
    assert current.subscribe(wish("a", 0, 1)) == {("s", "+", 1)}
    assert current.arrive([(message(2, "a", 3), 20)], now=0) == set()
    assert current.move({"s": Box(1, 0, 3, 0)}) == {("s", "+", 2)}
    assert current.current("s") == {1, 2}
    assert current.move({"s": Box(2, 0, 3, 0)}) == {("s", "-", 1)}
    assert current.move({"s": Box(2, 0, 3, 0)}) == set()
    assert current.advance(20) == {("s", "-", 2)}
    assert current.unsubscribe("s") == set()


IDF = {"a": 1.0, "b": 2.0}


def test_score_weighs_place_against_words() -> None:
    about_a = reference.Wish("w", ("a",), 0.0, 0.0, 1, 0.5)
    assert reference.score(about_a, message(1, "b", 0), IDF, LINE) is None
    assert reference.score(about_a, message(1, "a", 0), IDF, LINE) == pytest.approx(1.0)
    assert reference.score(about_a, message(1, "a", 5), IDF, LINE) == pytest.approx(0.75)
    assert reference.score(about_a, message(1, "a b", 10), IDF, LINE) == pytest.approx(0.5 / math.sqrt(5))
    both = reference.Wish("w", ("a", "unheard"), 0.0, 0.0, 1, 0.0)
    assert reference.score(both, message(1, "a a a", 10), IDF, LINE) == pytest.approx(1.0)


def test_rankings_of_the_last_messages() -> None:
    rankings = reference.Rankings(IDF, LINE, count=2)
    rankings.rank(reference.Wish("w", ("a",), 0.0, 0.0, 1, 0.5))
    assert rankings.arrive(message(1, "a", 1)) == {("w", "entered", 1)}
    assert rankings.arrive(message(2, "a", 2)) == set()
    assert rankings.arrive(message(3, "b", 0)) == {("w", "left", 1), ("w", "entered", 2)}
    assert rankings.ranking("w") == [2]
    rankings.unrank("w")
    assert rankings.arrive(message(4, "a", 1)) == set()


def test_equal_scores_prefer_the_newer_message() -> None:
    rankings = reference.Rankings(IDF, LINE, count=5)
    for number in (1, 2, 3):
        rankings.arrive(message(number, "a", 1))
    rankings.rank(reference.Wish("w", ("a",), 0.0, 0.0, 2, 0.5))
    assert rankings.ranking("w") == [3, 2]


def test_rankings_of_the_last_seconds() -> None:
    rankings = reference.Rankings(IDF, LINE, seconds=10)
    rankings.rank(reference.Wish("w", ("a",), 0.0, 0.0, 5, 0.5))
    rankings.arrive(message(1, "a", 1, ts=100))
    rankings.arrive(message(2, "a", 1, ts=105))
    assert rankings.advance(109) == set()
    assert rankings.advance(110) == {("w", "left", 1)}
    assert rankings.advance(50) == set()
    with pytest.raises(ValueError, match="either count or seconds"):
        reference.Rankings(IDF, LINE)
