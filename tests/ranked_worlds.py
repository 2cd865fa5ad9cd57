"""Random streams for the laws of ranking: messages, wishes and time, each step compared with the reference."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from nearcast import ranking, reference
from nearcast.geo import Box, Space, earth, plane
from nearcast.idf import Idf
from nearcast.lexicon import Lexicon
from nearcast.model import Message, Wish
from nearcast.ranking import Changes, PostColumns, Window, WishColumns
from nearcast.text import Token

WORDS = ("a", "b", "c", "d", "e", "f")  # interned in this order, so that sums have the reference's order
SQUARE = plane(0, 0, 8, 8)


class Step(NamedTuple):
    """One of: messages as (words, place, seconds since the one before), a time to pass, wishes, an unsubscription."""

    posts: list[tuple[tuple[str, ...], tuple[float, float, float, float], int]] | None = None
    pause: int | None = None
    wishes: list[tuple[tuple[str, ...], tuple[float, float], int, float]] | None = None
    unwish: int | None = None


class Stream(NamedTuple):
    space: Space
    window: Window
    idf: tuple[float, ...]  # by word
    steps: list[Step]


_few_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(tuple)
_any_words = st.lists(st.sampled_from(WORDS), max_size=5).map(tuple)
_alphas = st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.3, 0.9])
_ks = st.sampled_from([1, 1, 2, 3, 5, 40])
_lattice = st.integers(0, 8).map(float)
_gaps = st.sampled_from([0, 0, 0, 1, 1, 2, 30])


def _point(x: float, y: float) -> tuple[float, float, float, float]:
    return x, y, x, y


_flat_places = st.one_of(
    st.builds(_point, _lattice, _lattice),
    st.tuples(*[_lattice] * 4).map(lambda s: (min(s[0], s[2]), min(s[1], s[3]), max(s[0], s[2]), max(s[1], s[3]))),
)
_longitudes = st.sampled_from([-180, -170, -90, 0, 1, 90, 170, 180]).map(float)
_latitudes = st.sampled_from([-90, -45, 0, 1, 45, 90]).map(float)
_round_places = st.one_of(
    st.builds(_point, _longitudes, _latitudes),
    st.tuples(_longitudes, _latitudes, _longitudes, _latitudes).map(
        lambda s: (s[0], min(s[1], s[3]), s[2], max(s[1], s[3]))
    ),
)


def _steps(places: Any, xs: Any, ys: Any) -> st.SearchStrategy[list[Step]]:
    posts = st.lists(st.tuples(_any_words, places, _gaps), min_size=1, max_size=8)
    wishes = st.lists(st.tuples(_few_words, st.tuples(xs, ys), _ks, _alphas), min_size=1, max_size=5)
    arrivals = posts.map(lambda rows: Step(posts=rows))
    step = st.one_of(
        arrivals,
        arrivals,
        st.sampled_from([0, 1, 5, 100]).map(lambda seconds: Step(pause=seconds)),
        wishes.map(lambda rows: Step(wishes=rows)),
        st.integers(0, 30).map(lambda number: Step(unwish=number)),
    )
    return st.builds(lambda first, rest: [Step(wishes=first), *rest], wishes, st.lists(step, min_size=3, max_size=10))


_windows = st.one_of(
    st.sampled_from([1, 2, 3, 5, 9, 20]).map(lambda n: Window(count=n)),
    st.sampled_from([1.0, 2.0, 4.0, 35.0]).map(lambda s: Window(seconds=s)),
)
_idfs = st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7])] * len(WORDS))
flat_streams = st.builds(Stream, st.just(SQUARE), _windows, _idfs, _steps(_flat_places, _lattice, _lattice))
round_streams = st.builds(Stream, st.just(earth), _windows, _idfs, _steps(_round_places, _longitudes, _latitudes))


class Play:
    """A ranker and the reference, side by side through a stream."""

    def __init__(self, name: str, stream: Stream, batched: bool, **options: Any) -> None:
        self.stream = stream
        self.lexicon = Lexicon()
        self.lexicon.intern_all(WORDS)
        self.idf = Idf(np.array(stream.idf))
        self.by_word = dict(zip(WORDS, stream.idf, strict=True))
        self.ranker = ranking.create(name, stream.window, stream.space, **options)
        self.ranker.seal_from(3)
        self.reference = reference.Rankings(
            self.by_word, stream.space, count=stream.window.count, seconds=stream.window.seconds
        )
        self.batched = batched
        self.slots: dict[int, int] = {}  # wish to slot
        self.wishes: dict[int, Wish] = {}
        self.held: dict[int, set[int]] = {}  # by wish, what the changes add up to
        self.messages: list[Message] = []  # by seq
        self.now = 0
        self.latest = -np.inf

    def run(self) -> None:
        for step in self.stream.steps:
            if step.posts is not None:
                self._post(step.posts)
            elif step.pause is not None:
                self.now += step.pause
                if self.stream.window.seconds is not None:
                    self._compare(self.ranker.advance(float(self.now)), [self.reference.advance(float(self.now))])
                    self.latest = max(self.latest, self.now)
            elif step.wishes is not None:
                self._subscribe(step.wishes)
            elif step.unwish is not None:
                self._unsubscribe(step.unwish)
            self.check_rankings()

    def _post(self, rows: list) -> None:
        posted = []
        for words, sides, gap in rows:
            self.now += gap
            late = gap == 2 and bool(self.messages) and self.stream.window.seconds is not None
            ts = float(self.now - 3 if late else self.now)
            tokens = tuple(Token(word, i) for i, word in enumerate(words))
            message = Message(len(self.messages), tokens, Box(*sides), ts)
            if self.stream.window.seconds is None or ts >= self.latest:
                self.messages.append(message)
                self.latest = ts
            posted.append(message)
        expected = [self.reference.arrive(message) for message in posted]
        if self.batched:
            self._compare(self.ranker.arrive(PostColumns.from_values(posted, self.lexicon, self.idf)), expected)
        else:
            for message, one in zip(posted, expected, strict=True):
                self._compare(self.ranker.arrive(PostColumns.from_values([message], self.lexicon, self.idf)), [one])
        assert self.ranker.report().late == self.reference.late

    def _subscribe(self, rows: list) -> None:
        first = max(self.wishes, default=-1) + 1
        first = max(first, getattr(self, "_used", 0))
        wishes = [Wish(first + i, words, x, y, k, alpha) for i, (words, (x, y), k, alpha) in enumerate(rows)]
        self._used = first + len(wishes)
        slots = self.ranker.subscribe(WishColumns.from_values(wishes, self.lexicon, self.idf))
        for wish, slot in zip(wishes, slots.tolist(), strict=True):
            assert slot not in self.slots.values()
            self.slots[wish.id], self.wishes[wish.id] = slot, wish
            self.reference.rank(wish)
            self.held[wish.id] = set(self.ranker.ranking(slot).seq.tolist())

    def _unsubscribe(self, number: int) -> None:
        if self.wishes:
            wish = sorted(self.wishes)[number % len(self.wishes)]
            self.reference.unrank(wish)
            self.ranker.unsubscribe([self.slots.pop(wish)])
            del self.wishes[wish], self.held[wish]

    def _compare(self, changes: Changes, expected: list[set]) -> None:
        """Changes add up; in the plane they are the reference's to the last one."""
        wish_of = {slot: wish for wish, slot in self.slots.items()}
        found: list[set] = [set() for _ in expected]
        for step, slot, seq, entered in zip(*(c.tolist() for c in changes[:4]), strict=True):
            change = (wish_of[slot], "entered" if entered else "left", seq)
            assert change not in found[step]
            found[step].add(change)
            held = self.held[wish_of[slot]]
            assert (seq in held) != entered
            (held.add if entered else held.remove)(seq)
        assert changes.step.tolist() == sorted(changes.step.tolist())
        if self.stream.space is SQUARE:
            assert found == expected

    def check_rankings(self) -> None:
        assert self.ranker.report().live == len(self.wishes)
        for wish, slot in self.slots.items():
            best = self.ranker.ranking(slot)
            assert set(best.seq.tolist()) == self.held[wish]
            self._check_ranking(self.wishes[wish], best.seq.tolist(), best.score.tolist())

    def _check_ranking(self, wish: Wish, seqs: list[int], scores: list[float]) -> None:
        if self.stream.space is SQUARE:
            assert seqs == self.reference.ranking(wish.id)
        window = self.messages[self.ranker.oldest : self.ranker.arrived]
        truth = {m.id: s for m in window if (s := self._score(wish, m)) is not None}
        assert [s in truth and abs(truth[s] - score) <= 1e-9 for s, score in zip(seqs, scores, strict=True)] == [
            True for _ in seqs
        ]
        assert len(seqs) == min(wish.k, len(truth))
        keys = list(zip(scores, seqs, strict=True))
        assert keys == sorted(keys, reverse=True)
        others = [score for m, score in truth.items() if m not in seqs]
        assert not others or max(others) <= scores[-1] + 1e-9

    def _score(self, wish: Wish, message: Message) -> float | None:
        return reference.score(wish, message, self.by_word, self.stream.space)
