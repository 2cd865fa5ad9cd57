"""Random journeys for the laws of moving: messages, moves and time, each step compared with the reference."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from nearcast import moving, reference
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.expression import Clause, Expression
from nearcast.geo import Box, Region, Space, earth
from nearcast.lexicon import Lexicon
from nearcast.model import Message, Subscription
from nearcast.moving import Changes
from nearcast.text import Token
from tests.worlds import SQUARE, WORDS, expressions, places, regions, texts

FOREVER = 1000


class Step(NamedTuple):
    """One of: messages as (tokens, place, life), a time to pass, new subscriptions, one that ends, moves."""

    posts: list[tuple[tuple[Token, ...], Box, int]] | None = None
    pause: int | None = None
    wishes: list[tuple[Expression, Region]] | None = None
    unwish: int | None = None
    moves: list[tuple[int, Region]] | None = None


class Journey(NamedTuple):
    space: Space
    most: int | None
    steps: list[Step]


_lattice = st.integers(0, 8).map(float)
_small = st.tuples(_lattice, _lattice, st.sampled_from([0, 0, 1, 2, 4])).map(
    lambda b: Box(b[0], b[1], min(b[0] + b[2], 8.0), min(b[1] + b[2], 8.0))
)
_plain = st.sets(st.sampled_from(WORDS), min_size=1, max_size=3).map(
    lambda words: Expression("", (Clause(frozenset(words), frozenset(), frozenset(), frozenset()),))
)
_lives = st.sampled_from([-1, 0, 1, 2, 3, 10, FOREVER])


def _steps(wanted: Any, where: Any, posted: Any) -> st.SearchStrategy[list[Step]]:
    posts = st.lists(st.tuples(texts, posted, _lives), min_size=1, max_size=6)
    wishes = st.lists(st.tuples(wanted, where), min_size=1, max_size=5)
    moves = st.lists(st.tuples(st.integers(0, 12), where), min_size=1, max_size=5).map(lambda m: Step(moves=m))
    arrivals = posts.map(lambda rows: Step(posts=rows))
    step = st.one_of(
        arrivals,
        moves,
        moves,
        st.sampled_from([0, 1, 2, 5]).map(lambda seconds: Step(pause=seconds)),
        wishes.map(lambda rows: Step(wishes=rows)),
        st.integers(0, 30).map(lambda number: Step(unwish=number)),
    )
    return st.builds(lambda first, rest: [Step(wishes=first), *rest], wishes, st.lists(step, min_size=3, max_size=10))


_most = st.sampled_from([None, None, None, 1, 2, 5])
flat_journeys = st.builds(Journey, st.just(SQUARE), _most, _steps(_plain, _small, _small))
any_journeys = st.booleans().flatmap(
    lambda on_earth: st.builds(
        Journey,
        st.just(earth if on_earth else SQUARE),
        _most,
        _steps(expressions, regions(on_earth), places(on_earth)),
    )
)


class Play:
    """A mover and the reference, side by side through a journey."""

    def __init__(self, name: str, journey: Journey, **options: Any) -> None:
        self.journey = journey
        self.lexicon = Lexicon()
        self.lexicon.intern_all(WORDS)
        self.mover = moving.create(name, journey.space, most=journey.most, **options)
        self.reference = reference.Current(journey.space, most=journey.most)
        self.slots: dict[int, int] = {}  # wish to slot
        self.wishes: dict[int, Subscription] = {}
        self.held: dict[int, set[int]] = {}  # by wish, what the changes add up to
        self.n_wishes = self.n_messages = self.now = 0

    def run(self) -> None:
        for step in self.journey.steps:
            if step.posts is not None:
                self._post(step.posts)
            elif step.pause is not None:
                self.now += step.pause
                self._compare(self.mover.advance(float(self.now)), self.reference.advance(float(self.now)))
            elif step.wishes is not None:
                self._follow(step.wishes)
            elif step.unwish is not None:
                self._unfollow(step.unwish)
            elif step.moves is not None and self.wishes:
                self._move(step.moves)
            self.check_sets()

    def _post(self, rows: list) -> None:
        messages = [Message(self.n_messages + i, tokens, place) for i, (tokens, place, _) in enumerate(rows)]
        ends = [float(self.now + life) if life < FOREVER else np.inf for _, _, life in rows]
        self.n_messages += len(rows)
        batch = MessageBatch.from_values(messages, self.lexicon, space=self.journey.space)
        expected = self.reference.arrive(zip(messages, ends, strict=True), float(self.now))
        self._compare(self.mover.arrive(batch, ends, float(self.now)), expected)
        assert self.mover.report().late == self.reference.late

    def _follow(self, rows: list) -> None:
        space = self.journey.space
        wishes = [Subscription(self.n_wishes + i, e, space.check_region(r)) for i, (e, r) in enumerate(rows)]
        self.n_wishes += len(wishes)
        slots = self.mover.follow(self._columns(wishes))
        for wish, slot in zip(wishes, slots.tolist(), strict=True):
            assert slot not in self.slots.values()
            self.slots[wish.id], self.wishes[wish.id] = slot, wish
            self.reference.subscribe(wish)
            self.held[wish.id] = set(self.mover.current(slot).tolist())

    def _unfollow(self, number: int) -> None:
        if self.wishes:
            wish = sorted(self.wishes)[number % len(self.wishes)]
            self.reference.unsubscribe(wish)
            self.mover.unfollow([self.slots.pop(wish)])
            del self.wishes[wish], self.held[wish]

    def _move(self, rows: list) -> None:
        """Those that are one box and become one move; the others are exchanged, all in the same step."""
        space, ids = self.journey.space, sorted(self.wishes)
        regions = {ids[number % len(ids)]: space.check_region(region) for number, region in rows}
        boxes, others = {}, []
        for wish, region in regions.items():
            parts = space.region_boxes(region)
            before = self.wishes[wish]
            was_one = isinstance(before.region, Box) and len(space.region_boxes(before.region)) == 1
            self.wishes[wish] = Subscription(wish, before.expression, region)
            if was_one and isinstance(region, Box) and len(parts) == 1:
                boxes[wish] = parts[0]
            else:
                others.append(wish)
        sides = np.array([(b.west, b.south, b.east, b.north) for b in boxes.values()], float).reshape(-1, 4)
        changes = [self.mover.move([self.slots[wish] for wish in boxes], sides)]
        slots = [self.slots[wish] for wish in others]
        changes.append(self.mover.exchange(slots, self._columns([self.wishes[wish] for wish in others])))
        self._compare(Changes.joined(changes), self.reference.move(regions))

    def _columns(self, wishes: list[Subscription]) -> SubscriptionColumns:
        return SubscriptionColumns.from_values(wishes, self.lexicon, space=self.journey.space)

    def _compare(self, changes: Changes, expected: set) -> None:
        """Exactly the reference's changes, each once; they add up."""
        wish_of = {slot: wish for wish, slot in self.slots.items()}
        found = set()
        for slot, seq, entered in zip(*(column.tolist() for column in changes), strict=True):
            change = (wish_of[slot], "+" if entered else "-", seq)
            assert change not in found
            found.add(change)
            (self.held[wish_of[slot]].add if entered else self.held[wish_of[slot]].remove)(seq)
        assert found == expected

    def check_sets(self) -> None:
        assert self.mover.report().live == len(self.wishes)
        for wish, slot in self.slots.items():
            expected = self.reference.current(wish)
            assert self.held[wish] == expected
            assert self.mover.current(slot).tolist() == sorted(expected)
