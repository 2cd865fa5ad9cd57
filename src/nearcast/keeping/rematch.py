"""The log matched again: replay without stored deliveries (DESIGN 6).

Matching is deterministic, so a delivery need not be stored: the messages after a position, matched against a
few subscriptions as each was valid at the time, give what was delivered then, and what a new wish would have got.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nearcast import indexes
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.columns.encoder import TextEncoder
from nearcast.geo import Space
from nearcast.lexicon import Lexicon
from nearcast.model import Message, Subscription
from nearcast.store.codec import message_from
from nearcast.store.log import Log, Logged
from nearcast.text import analyzer

CHUNK = 1000
"""Messages that are read and matched at a time: some milliseconds of work."""


class Valid(NamedTuple):
    """A subscription and the messages it was there for: from_seq <= seq < to_seq."""

    wish: Subscription
    number: int = 0
    from_seq: int = 0
    to_seq: int | None = None

    def covers(self, seq: int, ts: float | None) -> bool:
        in_time = self.from_seq <= seq and (self.to_seq is None or seq < self.to_seq)
        return in_time and not self.wish.has_expired(ts)


class Found(NamedTuple):
    """A message and those of the subscriptions that it matched."""

    seq: int
    time: float
    message: Message
    wanted: tuple[Valid, ...]


class Chunk(NamedTuple):
    """What a part of the log gave. Everything up to `position` is done; `position == up_to` is the end."""

    found: list[Found]
    position: int
    scanned: int


class Rematch:
    """Some subscriptions, ready to be matched with any part of a tenant's log."""

    def __init__(self, log: Log, tenant: str, wanted: Sequence[Valid], space: Space, analysis: str) -> None:
        self._log, self._tenant, self._wanted, self._space = log, tenant, wanted, space
        self._analyzer = analyzer(analysis)
        self._lexicon = Lexicon(analysis)
        columns = SubscriptionColumns.from_values([valid.wish for valid in wanted], self._lexicon, space=space)
        self._index = indexes.build(indexes.DEFAULT, columns)  # slot i is wanted[i]
        self._encoder = TextEncoder(self._lexicon, space)

    def chunk(self, after: int, up_to: int, limit: int = CHUNK) -> Chunk:
        """Match the next `limit` messages with after < seq <= up_to."""
        if not self._wanted:
            return Chunk([], up_to, 0)
        logged = self._log.read(self._tenant, after, up_to, limit)
        position = up_to if len(logged) < limit else logged[-1].seq
        return Chunk(self._found(logged), position, len(logged))

    def chunks(self, after: int, up_to: int) -> Iterator[Chunk]:
        while after < up_to:
            chunk = self.chunk(after, up_to)
            yield chunk
            after = chunk.position

    def _found(self, logged: list[Logged]) -> list[Found]:
        batch, kept = self._batch(logged)
        pairs = self._index.match(batch).by_message()
        wanted: dict[int, list[Valid]] = {}
        for number, slot in zip(pairs.message.tolist(), pairs.slot.tolist(), strict=True):
            wanted.setdefault(kept[number], []).append(self._wanted[slot])
        return [found for row, valid in wanted.items() if (found := self._judged(logged[row], valid)).wanted]

    def _judged(self, logged: Logged, wanted: list[Valid]) -> Found:
        message = message_from(logged.body, self._analyzer)
        covered = tuple(valid for valid in wanted if valid.covers(logged.seq, message.ts))
        return Found(logged.seq, logged.time, message, covered)

    def _batch(self, logged: list[Logged]) -> tuple[MessageBatch, list[int]]:
        """The messages as columns, and which row of `logged` each is. Texts take the compiled way."""
        values = [json.loads(entry.body) for entry in logged]
        if not all("text" in value for value in values):
            messages = [message_from(entry.body, self._analyzer) for entry in logged]
            return MessageBatch.from_values(messages, self._lexicon, space=self._space), list(range(len(logged)))
        places = np.array([_sides(value) for value in values], dtype=np.float64).reshape(-1, 4)
        batch, kept, rejected = self._encoder.encode([value["text"] for value in values], places)
        assert not rejected, f"accepted before, rejected now: {rejected[0].reason}"
        return batch, kept.tolist()


def _sides(value: dict[str, Any]) -> list[float]:
    at: list[float] = value["at"]
    return at if len(at) == 4 else at * 2
