"""Rankings of values: wishes and messages in, who entered and who left out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from nearcast.errors import NearcastError
from nearcast.geo import Space, earth
from nearcast.idf import Idf
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Message, Wish
from nearcast.ranking.base import Ranker
from nearcast.ranking.changes import Changes
from nearcast.ranking.columns import PostColumns, WishColumns
from nearcast.ranking.report import RankReport
from nearcast.ranking.spread import Spread
from nearcast.ranking.window import Window


class UnknownWishError(NearcastError):
    """A wish that nobody holds."""


@dataclass(frozen=True, slots=True)
class RankChange:
    """A message entered or left the best of a wish. `number` is its place in the batch that brought the change."""

    wish: Wish
    entered: bool
    message: Message
    score: float
    number: int


class Ranked(NamedTuple):
    message: Message
    score: float


class Board:
    """A ranker with the ids and texts of its wishes and of the window's messages.

    Words weigh by the recorded lexicon (a word that it lacks, as one that was seen once), or all the same.
    """

    def __init__(self, ranker: Ranker | Spread, recorded: Lexicon | None = None) -> None:
        self._ranker = ranker
        self._lexicon = Lexicon() if recorded is None else Lexicon.from_arrow(recorded.to_arrow())
        seen = 1 if recorded is None else max(recorded.messages, 1)
        self._idf = Idf() if recorded is None else Idf(recorded.idf(), math.log1p(seen))
        self._slots: dict[Id, int] = {}
        self._wishes: dict[int, Wish] = {}  # by slot
        self._of: dict[Id, dict[Id, None]] = {}  # ids by subscriber, in order
        self._messages: deque[tuple[Message, int | None]] = deque()  # with their numbers in the log, if there is one
        self._first = 0  # number of the first of them

    @classmethod
    def create(
        cls, window: Window, space: Space = earth, ranker: str | None = None, recorded: Lexicon | None = None
    ) -> Board:
        from nearcast import ranking

        return cls(ranking.create(ranker or ranking.DEFAULT, window, space), recorded)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, wish: Id) -> bool:
        return wish in self._slots

    @property
    def window(self) -> Window:
        return self._ranker.window

    @property
    def arrived(self) -> int:
        """Messages so far."""
        return self._ranker.arrived

    @property
    def now(self) -> float:
        return self._ranker.now

    @property
    def oldest_seq(self) -> int | None:
        """Number in the log of the first message that is in the window."""
        return self._messages[0][1] if self._messages else None

    def wishes(self, most: int) -> list[Wish]:
        """The first so many wishes."""
        return [self._wishes[slot] for slot in islice(self._slots.values(), most)]

    def wish(self, wish: Id) -> Wish:
        return self._wishes[self._slot(wish)]

    def wishes_of(self, subscriber: Id) -> list[Wish]:
        return [self.wish(identity) for identity in self._of.get(subscriber, ())]

    def check_new(self, wishes: Sequence[Wish]) -> None:
        """Raise if an id is in use or given twice."""
        ids = [wish.id for wish in wishes]
        known = [identity for identity in ids if identity in self._slots]
        if known or len(set(ids)) < len(ids):
            raise NearcastError(f"wish {known[0]!r} exists" if known else "the same wish id is given twice")

    def rank(self, wishes: Sequence[Wish]) -> None:
        """Take wishes in, all or none; ask `ranking` for their first results."""
        self.check_new(wishes)
        slots = self._ranker.subscribe(WishColumns.from_values(wishes, self._lexicon, self._idf))
        for wish, slot in zip(wishes, slots.tolist(), strict=True):
            self._slots[wish.id], self._wishes[slot] = slot, wish
            self._of.setdefault(wish.receiver, {})[wish.id] = None

    def unrank(self, wish: Id) -> None:
        slot = self._slot(wish)
        self._ranker.unsubscribe([slot])
        receiver = self._wishes[slot].receiver
        del self._slots[wish], self._wishes[slot], self._of[receiver][wish]
        if not self._of[receiver]:
            del self._of[receiver]

    def ranking(self, wish: Id) -> list[Ranked]:
        """The best messages now, best first."""
        best = self._ranker.ranking(self._slot(wish))
        return [Ranked(self._message(s), v) for s, v in zip(best.seq.tolist(), best.score.tolist(), strict=True)]

    def check(self, messages: Sequence[Message]) -> None:
        """Raise if a message cannot be ranked: a time window needs times."""
        without = next((m.id for m in messages if m.ts is None), None) if self.window.seconds is not None else None
        if without is not None:
            raise NearcastError(f"message {without!r} has no ts; a window of seconds needs the time of every message")

    def arrive(self, messages: Sequence[Message], first_seq: int | None = None) -> list[RankChange]:
        """Messages in order, in the log from `first_seq` on; what changed. Late ones are dropped and counted."""
        self.check(messages)
        numbers = [None if first_seq is None else first_seq + i for i in range(len(messages))]
        self._remember(messages, numbers)
        return self._told(self._ranker.arrive(PostColumns.from_values(messages, self._lexicon, self._idf)))

    def load(self, messages: Sequence[Message], seqs: Sequence[int]) -> None:
        """Messages of the past, which the log has under these numbers; nobody is told. Without a time, in a window of
        seconds, they are passed over."""
        timed = [i for i, m in enumerate(messages) if self.window.seconds is None or m.ts is not None]
        posted = [messages[i] for i in timed]
        self._remember(posted, [seqs[i] for i in timed])
        self._ranker.load(PostColumns.from_values(posted, self._lexicon, self._idf))
        self._forget()

    def _remember(self, messages: Sequence[Message], seqs: Sequence[int | None]) -> None:
        """Those that the window takes: all but the late ones."""
        now = self._ranker.now
        for message, seq in zip(messages, seqs, strict=True):
            if self.window.seconds is None or (message.ts is not None and message.ts >= now):
                self._messages.append((message, seq))
                now = now if message.ts is None else max(now, message.ts)

    def advance(self, now: float) -> list[RankChange]:
        """Time passes; what leaves the window leaves the rankings."""
        return self._told(self._ranker.advance(now))

    def report(self) -> RankReport:
        return self._ranker.report()

    def _told(self, changes: Changes) -> list[RankChange]:
        columns = (column.tolist() for column in changes)
        told = [
            RankChange(self._wishes[slot], entered, self._message(seq), score, step)
            for step, slot, seq, entered, score in zip(*columns, strict=True)
        ]
        self._forget()
        return told

    def _forget(self) -> None:
        """What left the window."""
        assert self._first + len(self._messages) == self._ranker.arrived
        while self._first < self._ranker.oldest:
            self._messages.popleft()
            self._first += 1

    def _message(self, seq: int) -> Message:
        return self._messages[seq - self._first][0]

    def _slot(self, wish: Id) -> int:
        if wish not in self._slots:
            raise UnknownWishError(f"wish {wish!r} given; no such one of {len(self)} is held")
        return self._slots[wish]
