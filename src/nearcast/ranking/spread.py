"""Wishes spread over several rankers, one thread each: a wish is in one of them, and all of them see all messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast.errors import CatalogueError
from nearcast.ranking.base import Ranker
from nearcast.ranking.changes import Changes, Ranking
from nearcast.ranking.columns import PostColumns, WishColumns
from nearcast.ranking.report import RankReport
from nearcast.ranking.window import Window

T = TypeVar("T")
SUMS = ("live", "candidates", "nodes", "postings", "inserted", "touched", "refills", "scanned", "trimmed")


class Spread:
    """Answers as one ranker would. Slot s is slot s // n of part s % n.

    The kernels let go of the interpreter, so that the parts run at once. Each part has a window of its own.
    """

    def __init__(self, parts: Sequence[Ranker]) -> None:
        if not parts:
            raise CatalogueError("no rankers given; at least one needed")
        self.parts = list(parts)
        self._pool = ThreadPoolExecutor(len(self.parts), thread_name_prefix="nearcast-rank")
        self._next = 0

    def _each(self, work: Callable[[Ranker], T]) -> list[T]:
        return list(self._pool.map(work, self.parts))

    @property
    def name(self) -> str:
        return self.parts[0].name

    @property
    def window(self) -> Window:
        return self.parts[0].window

    @property
    def arrived(self) -> int:
        return self.parts[0].arrived

    @property
    def oldest(self) -> int:
        return self.parts[0].oldest

    @property
    def now(self) -> float:
        return self.parts[0].now

    def subscribe(self, columns: WishColumns) -> NDArray[np.int32]:
        """Take wishes in, in turn; the slot of each."""
        n = len(self.parts)
        number = (np.arange(len(columns)) + self._next) % n
        self._next = (self._next + len(columns)) % n
        shares = [columns.cut(number == i) for i in range(n)]
        taken = list(self._pool.map(lambda i: self.parts[i].subscribe(shares[i]), range(n)))
        slots = np.zeros(len(columns), np.int32)
        for i, local in enumerate(taken):
            slots[number == i] = local * n + i
        return slots

    def unsubscribe(self, slots: ArrayLike) -> None:
        """Forget the wishes in these slots."""
        chosen, n = np.atleast_1d(np.asarray(slots, dtype=np.int32)), len(self.parts)
        for i, part in enumerate(self.parts):
            part.table.check(chosen[chosen % n == i] // n)
        for i, part in enumerate(self.parts):
            part.unsubscribe(chosen[chosen % n == i] // n)

    def ranking(self, slot: int) -> Ranking:
        """The current best of a wish."""
        return self.parts[slot % len(self.parts)].ranking(slot // len(self.parts))

    def load(self, columns: PostColumns) -> None:
        """Messages that arrived in the past."""
        self._each(lambda part: part.load(columns))

    def seal_from(self, messages: int) -> None:
        for part in self.parts:
            part.seal_from(messages)

    def arrive(self, columns: PostColumns) -> Changes:
        """Messages in order of arrival; all changes, step by step."""
        return self._merged(self._each(lambda part: part.arrive(columns)))

    def advance(self, now: float) -> Changes:
        """Time passes without a message."""
        return self._merged(self._each(lambda part: part.advance(now)))

    def _merged(self, changes: list[Changes]) -> Changes:
        n = len(self.parts)
        told = Changes.joined([one._replace(slot=one.slot * n + i) for i, one in enumerate(changes)])
        order = np.argsort(told.step, kind="stable")
        return Changes(told.step[order], told.slot[order], told.seq[order], told.entered[order], told.score[order])

    def report(self) -> RankReport:
        """Sums of what the parts have of their own; the window is counted as often as it is kept."""
        reports = [part.report() for part in self.parts]
        sums = {
            field.name: sum(getattr(r, field.name) for r in reports)
            for field in fields(RankReport)
            if field.name in SUMS
        }
        kinds = {kind: sum(r.bytes.get(kind, 0) for r in reports) for kind in reports[0].bytes}
        buffered = sum(r.buffered * r.live for r in reports) / max(1, sums["live"])
        return replace(
            reports[0], **sums, bytes=kinds, buffered=buffered, details={"parts": [r.details for r in reports]}
        )
