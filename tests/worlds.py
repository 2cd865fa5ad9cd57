"""Hypothesis generators that love borders, duplicates, empty sets, the 180th meridian and NOT clauses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from nearcast import reference
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.expression import Clause, Expression
from nearcast.geo import Box, Circle, Polygon, Region, Space, earth, plane
from nearcast.lexicon import Lexicon
from nearcast.model import Message, Subscription
from nearcast.text import Token

WORDS = ("a", "b", "c", "d", "e", "f")
SQUARE = plane(0, 0, 8, 8)

# -- flat worlds: integer boxes and terms, one entry a subscription --------------------------------------


class Flat(NamedTuple):
    """Rows of (box, sorted terms)."""

    subscriptions: list[tuple[tuple[int, int, int, int], list[int]]]
    messages: list[tuple[tuple[int, int, int, int], list[int]]]


def _sides(side: int) -> st.SearchStrategy[tuple[int, int, int, int]]:
    interval = st.tuples(st.integers(0, side), st.integers(0, side)).map(sorted)
    return st.tuples(interval, interval).map(lambda xy: (xy[0][0], xy[1][0], xy[0][1], xy[1][1]))


def _points(side: int) -> st.SearchStrategy[tuple[int, int, int, int]]:
    return st.tuples(st.integers(0, side), st.integers(0, side)).map(lambda p: (*p, *p))


def _terms(least: int, vocabulary: int = 6) -> st.SearchStrategy[list[int]]:
    return st.sets(st.integers(0, vocabulary - 1), min_size=least, max_size=4).map(sorted)


def flat_rows(least_terms: int, most: int, side: int = 6) -> st.SearchStrategy[list]:
    place = st.one_of(_sides(side), _points(side))
    return st.lists(st.tuples(place, _terms(least_terms)), max_size=most)


flat_worlds = st.builds(Flat, flat_rows(1, 24), flat_rows(0, 8))


def _csr(rows: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    boxes = np.array([box for box, _ in rows], dtype=np.float64).reshape(-1, 4)
    counts = [len(terms) for _, terms in rows]
    flat = np.array([t for _, terms in rows for t in terms], dtype=np.int32)
    return boxes, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), flat


def flat_subscriptions(rows: list) -> SubscriptionColumns:
    return SubscriptionColumns.from_flat(*_csr(rows))


def flat_messages(rows: list) -> MessageBatch:
    return MessageBatch.from_flat(*_csr(rows))


def flat_truth(subscriptions: list, messages: list) -> set[tuple[int, int]]:
    """The reference for rows of (box, terms)."""
    return reference.match(
        [_subscription(i, box, terms) for i, (box, terms) in enumerate(subscriptions)],
        [_message(i, box, terms) for i, (box, terms) in enumerate(messages)],
        SQUARE,
    )


def _subscription(number: int, box: tuple[int, int, int, int], terms: list[int]) -> Subscription:
    words = frozenset(map(str, terms))
    clause = Clause(words, frozenset(), frozenset(), frozenset())
    return Subscription(number, Expression("", (clause,)), Box(*map(float, box)))


def _message(number: int, box: tuple[int, int, int, int], terms: list[int]) -> Message:
    return Message(number, tuple(Token(str(t), i) for i, t in enumerate(terms)), Box(*map(float, box)))


# -- full worlds: expressions, regions of all kinds, the whole earth ---------------------------------------


class World(NamedTuple):
    space: Space
    subscriptions: list[Subscription]
    messages: list[Message]

    def columns(self) -> tuple[SubscriptionColumns, MessageBatch]:
        lexicon = Lexicon()
        wishes = SubscriptionColumns.from_values(self.subscriptions, lexicon, space=self.space)
        return wishes, MessageBatch.from_values(self.messages, lexicon, space=self.space)

    def truth(self) -> set[tuple[int, int]]:
        return reference.match(self.subscriptions, self.messages, self.space)


_words = st.sampled_from(WORDS)
_phrases = st.lists(_words, min_size=2, max_size=3).map(tuple)


@st.composite
def _clauses(draw: st.DrawFn) -> Clause:
    phrases = draw(st.frozensets(_phrases, max_size=1))
    required = draw(st.frozensets(_words, min_size=1, max_size=3)) | {w for p in phrases for w in p}
    forbidden = draw(st.frozensets(_words, max_size=2)) - required
    return Clause(required, forbidden, phrases, draw(st.frozensets(_phrases, max_size=1)))


expressions = st.lists(_clauses(), min_size=1, max_size=3).map(lambda c: Expression("", tuple(c)))
_longitudes = st.sampled_from([-180, -179, -170, -90, 0, 1, 90, 170, 179, 180]).map(float)
_latitudes = st.sampled_from([-90, -89, -45, 0, 1, 45, 89, 90]).map(float)
_lattice = st.integers(0, 8).map(float)


def _boxes(xs: st.SearchStrategy[float], ys: st.SearchStrategy[float], wrap: bool) -> st.SearchStrategy[Box]:
    spans = st.tuples(xs, xs) if wrap else st.tuples(xs, xs).map(sorted)
    return st.tuples(spans, st.tuples(ys, ys).map(sorted)).map(lambda s: Box(s[0][0], s[1][0], s[0][1], s[1][1]))


def _polygons(xs: st.SearchStrategy[float], ys: st.SearchStrategy[float]) -> st.SearchStrategy[Polygon]:
    corners = st.lists(st.tuples(xs, ys), min_size=3, max_size=3, unique=True).map(tuple)
    has_area = corners.filter(
        lambda c: (c[1][0] - c[0][0]) * (c[2][1] - c[0][1]) != (c[2][0] - c[0][0]) * (c[1][1] - c[0][1])
    )
    with_hole = st.just(Polygon(((0, 0), (8, 0), (8, 8), (0, 8)), (((2, 2), (6, 2), (6, 6), (2, 6)),)))
    return st.one_of(has_area.map(Polygon), with_hole)


texts = st.lists(_words, max_size=6).map(lambda ws: tuple(Token(w, i) for i, w in enumerate(ws)))


def _coordinates(on_earth: bool) -> tuple[st.SearchStrategy[float], st.SearchStrategy[float]]:
    return (_longitudes, _latitudes) if on_earth else (_lattice, _lattice)


def places(on_earth: bool) -> st.SearchStrategy[Box]:
    xs, ys = _coordinates(on_earth)
    return st.one_of(st.tuples(xs, ys).map(lambda p: Box(*p, *p)), _boxes(xs, ys, on_earth))


def regions(on_earth: bool) -> st.SearchStrategy[Region]:
    """Boxes, circles and polygons."""
    xs, ys = _coordinates(on_earth)
    radii = st.sampled_from([0.0, 111_000.0, 2_000_000.0, 12_000_000.0, 20_100_000.0] if on_earth else [0.0, 1.0, 5.0])
    return st.one_of(
        _boxes(xs, ys, on_earth),
        st.tuples(st.tuples(xs, ys), radii).map(lambda c: Circle(*c[0], c[1])),
        _polygons(xs, ys),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    on_earth = draw(st.booleans())
    space: Space = earth if on_earth else SQUARE
    wishes = draw(st.lists(st.tuples(expressions, regions(on_earth)), max_size=10))
    posts = draw(st.lists(st.tuples(texts, places(on_earth)), max_size=6))
    return World(
        space,
        [Subscription(i, e, space.check_region(r)) for i, (e, r) in enumerate(wishes)],
        [Message(i, tokens, place) for i, (tokens, place) in enumerate(posts)],
    )
