"""The laws of distributed rankings: whatever the distribution, the shards and what gets lost, the reference's."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast import reference
from nearcast.errors import NearcastError
from nearcast.geo import Box
from nearcast.idf import Idf
from nearcast.lexicon import Lexicon
from nearcast.model import Message, Wish
from nearcast.ranking import Changes, PostColumns, Window, WishColumns
from nearcast.spark.ranks.cluster import Cluster
from nearcast.spark.ranks.plan import DISTRIBUTIONS, RankPlan, RankSettings, made
from nearcast.spark.ranks.told import FIRST_RESULT, told_order
from nearcast.text import Token
from tests.ranked_worlds import SQUARE, WORDS, Step, Stream, flat_streams

every_distribution = pytest.mark.parametrize("distribution", DISTRIBUTIONS)


class Play:
    """A cluster and the reference, side by side through a stream."""

    def __init__(self, folder: Path, stream: Stream, distribution: str, shards: int, seed: int) -> None:
        self.stream, self.chance = stream, Random(seed)
        self.by_word = dict(zip(WORDS, stream.idf, strict=True))
        window = stream.window
        b = SQUARE.bounds
        chosen = RankSettings(
            window, distribution, shards, (b.west, b.south, b.east, b.north), wish_ids="long", message_ids="long"
        )
        self.cluster = Cluster(folder, self._plan(chosen), WORDS)
        self.reference = reference.Rankings(self.by_word, SQUARE, count=window.count, seconds=window.seconds)
        self.wishes: dict[int, Wish] = {}
        self.held: dict[int, set[int]] = {}
        self.told: dict[int, int] = {}
        self.n_messages = self.n_wishes = self.batch = 0
        self.now = 0
        self.pending: dict[int, Wish | None] = {}

    def _plan(self, settings: RankSettings) -> RankPlan:
        """From the first wishes and the first messages."""
        lexicon, idf = Lexicon(), Idf(np.array(self.stream.idf))
        lexicon.intern_all(WORDS)
        rows = next((s.wishes for s in self.stream.steps if s.wishes), [])
        wishes = [Wish(i, words, x, y, k, alpha) for i, (words, (x, y), k, alpha) in enumerate(rows)]
        posts = next((s.posts for s in self.stream.steps if s.posts), [])
        messages = [Message(i, _tokens(words), Box(*sides), float(i)) for i, (words, sides, _) in enumerate(posts)]
        return made(
            settings,
            WishColumns.from_values(wishes, lexicon, idf),
            PostColumns.from_values(messages, lexicon, idf),
            idf,
        )

    def run(self) -> None:
        for step in self.stream.steps:
            if step.posts is not None:
                self._batch(step.posts)
            elif step.wishes is not None:
                for words, (x, y), k, alpha in step.wishes:
                    self._put(Wish(self.n_wishes, words, x, y, k, alpha))
                    self.n_wishes += 1
            elif step.unwish is not None and self.wishes:
                self._unwish(step.unwish)
        self._batch([])

    def _put(self, wish: Wish) -> None:
        self.pending[wish.id] = wish

    def _unwish(self, number: int) -> None:
        """Gone, or, every other time, replaced."""
        wish = sorted(self.wishes)[number % len(self.wishes)]
        if number % 2:
            self.pending[wish] = None
        else:
            old = self.wishes[wish]
            self.pending[wish] = Wish(old.id, old.words[::-1], old.y, old.x, old.k + 1, old.alpha)

    def _batch(self, rows: list) -> None:
        messages = []
        for words, sides, gap in rows:
            self.now += gap
            messages.append(Message(self.n_messages + len(messages), _tokens(words), Box(*sides), float(self.now)))
        self._lose()
        self.cluster.decide(self.batch, self.pending, messages)
        self._lose()
        parts, sent = self.cluster.run(self.batch)
        if self.chance.random() < 0.3:  # a try whose answer is lost, and perhaps all who gave it
            self._lose()
            parts, sent = self.cluster.run(self.batch)
        assert max(sent.looked_at) <= len(messages)
        self._compare(parts, self._expected(messages))
        self.batch += 1
        self.n_messages += len(messages)

    def _lose(self) -> None:
        if self.chance.random() < 0.2:
            self.cluster.lose(self.chance.randrange(len(self.cluster.shards)))
        elif self.chance.random() < 0.1:
            self.cluster.restart()

    def _expected(self, messages: list[Message]) -> dict[tuple[int, int], set]:
        """(wish, message that brought it): changes."""
        expected: dict[tuple[int, int], set] = {}
        for identity, wish in self.pending.items():
            if identity in self.wishes:
                self.reference.unrank(identity)
                del self.wishes[identity]
                self.held.pop(identity)
            if wish is not None:
                self.wishes[identity] = wish
                self.reference.rank(wish)
                self.held[identity], self.told[identity] = set(), 0
                first = self.reference.ranking(identity)
                if first:
                    expected[identity, FIRST_RESULT] = {("entered", m) for m in first}
        self.pending = {}
        for message in messages:
            for identity, what, other in self.reference.arrive(message):
                expected.setdefault((identity, message.id), set()).add((what, other))
        return expected

    def _compare(self, parts: list, expected: dict[tuple[int, int], set]) -> None:
        book = self.cluster.machine.book(self.batch)
        found: dict[tuple[int, int], set] = {}
        for told in parts:
            ids = book.ids(told.wish).to_pylist()
            columns = (told.seq, told.entered, told.message, told.because)
            for identity, seq, entered, message, because in zip(ids, *(c.tolist() for c in columns), strict=True):
                assert seq == self.told[identity] + 1  # no change is lost or told twice
                self.told[identity] = seq
                change = ("entered" if entered else "left", message)
                assert change not in found.setdefault((identity, because), set())
                found[identity, because].add(change)
                held = self.held[identity]
                (held.add if entered else held.remove)(message)
        assert found == expected
        for identity in self.wishes:
            assert self.held[identity] == set(self.reference.ranking(identity))


def _tokens(words: tuple[str, ...]) -> tuple[Token, ...]:
    return tuple(Token(word, i) for i, word in enumerate(words))


@every_distribution
@settings(max_examples=max(4, settings().max_examples // 8))  # each writes hundreds of files
@given(stream=flat_streams, shards=st.sampled_from([1, 2, 5]), seed=st.integers(0, 99))
def test_rankings_and_changes_are_the_reference_s(distribution: str, stream: Stream, shards: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Play(Path(folder), stream, distribution, shards, seed).run()


def _long_stream(seed: int, window: Window) -> Stream:
    """Enough messages for full rankings, so that prefixes are short and thresholds fall when messages expire."""
    chance = Random(seed)
    weights = [9, 5, 3, 2, 1, 1]

    def some(most: int) -> tuple[str, ...]:
        return tuple(chance.choices(WORDS, weights=weights, k=chance.randint(1, most)))

    def place() -> tuple[float, float]:
        return float(chance.randint(0, 8)), float(chance.randint(0, 8))

    wishes = [(some(4), place(), chance.choice([1, 1, 2]), chance.choice([0.0, 0.2, 0.5, 1.0])) for _ in range(20)]
    rows: list[Any] = []
    for _ in range(150):
        x, y = place()
        rows.append((some(3), (x, y, x, y), chance.choice([0, 1])))
    steps = [Step(posts=rows[first : first + 10]) for first in range(0, len(rows), 10)]
    return Stream(SQUARE, window, (0.5, 1.0, 1.3, 2.0, 3.0, 3.7), [steps[0], Step(wishes=wishes), *steps[1:]])


@every_distribution
@pytest.mark.parametrize("window", [Window(count=25), Window(seconds=12.0)])
def test_thresholds_that_fall_and_prefixes_that_grow(distribution: str, window: Window, tmp_path: Path) -> None:
    play = Play(tmp_path, _long_stream(1, window), distribution, 4, 1)
    play.run()
    assert max(play.told.values()) > 5


def test_prefixes_are_kept_by_fewer_shards_than_keywords(tmp_path: Path) -> None:
    """Skype table 5 on a small scale."""
    copies = {}
    for distribution in ("hash", "keyword", "prefix"):
        play = Play(tmp_path / distribution, _long_stream(2, Window(count=60)), distribution, 4, 7)
        play.run()
        copies[distribution] = sum(len(shard.sifting.sieve) for shard in play.cluster.shards)
    assert copies["hash"] == 0 < copies["prefix"] < copies["keyword"]


@pytest.mark.parametrize(
    ("options", "why"),
    [({"distribution": "random"}, "distribution 'random' given"), ({"shards": 0}, "0 shards"), ({"shards": 65}, "65")],
)
def test_bad_settings_get_a_clear_error(options: dict[str, Any], why: str) -> None:
    with pytest.raises(NearcastError, match=why):
        RankSettings(Window(count=3), **options)


def test_segments_that_left_the_window_are_not_kept_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Play, "_lose", lambda _: None)  # a machine that begins anew has nothing to forget
    play = Play(tmp_path, _long_stream(3, Window(count=25)), "hash", 2, 3)
    play.run()
    assert play.batch > 10
    assert len(play.cluster.machine._segments) <= 5  # the window's, that of the batch, and what left with it


@pytest.mark.parametrize("steps", [[FIRST_RESULT], [70, 71, 75], [FIRST_RESULT, 2**40, 2**40 + 9_999], []])
def test_changes_are_numbered_by_wish_step_and_score(steps: list[int]) -> None:
    chance = np.random.default_rng(3)
    n = 400 * bool(steps)
    because = chance.choice(np.array([*steps, 0], np.int64)[: max(1, len(steps))], n)
    slot, entered = chance.integers(0, 12, n).astype(np.int32), chance.random(n) < 0.5
    changes = Changes(np.zeros(n, np.int32), slot, chance.permutation(n), entered, chance.integers(0, 3, n) / 2)
    wanted = np.lexsort((-changes.seq, -changes.score, entered, because, slot))
    assert told_order(changes, because).tolist() == wanted.tolist()
