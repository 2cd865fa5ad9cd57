"""What the shards of one machine share: the plan, the wishes, and the window's messages, mapped once."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.spark.ranks.ids import looked_up
from nearcast.spark.ranks.plan import RankPlan
from nearcast.spark.ranks.truth import Segment, ShardState, Truth, WishBook, WishChange


class Machine:
    """Reads the truth. Threads of several shards may ask at once."""

    def __init__(self, folder: Path) -> None:
        self.truth = Truth(folder)
        self.plan = RankPlan.load(self.truth.folder / "plan")
        self._lock = Lock()
        self._book = WishBook()
        self._segments: dict[int, Segment] = {}

    def segment(self, batch: int) -> Segment:
        with self._lock:
            if batch not in self._segments:
                self._segments[batch] = Segment.load(self.truth.segment(batch))
            return self._segments[batch]

    def book(self, batch: int) -> WishBook:
        """All wishes, those of this batch included."""
        with self._lock:
            self._book.follow(self.truth, batch)
            return self._book

    def coming(self, batch: int) -> WishChange | None:
        path = self.truth.wishes(batch)
        return WishChange.load(path) if path.exists() else None

    def window(self, batch: int) -> list[Segment]:
        """Segments that may hold messages of the window as it is before this batch, the oldest first."""
        numbers = [number for number in self.truth.numbers("segments") if number < batch]
        needed: list[Segment] = []
        newest = -np.inf
        for number in reversed(numbers):
            segment = self.segment(number)
            newest = max(newest, float(segment.columns.ts.max(initial=-np.inf))) if len(segment) else newest
            if needed and self._is_before(segment, numbers[-1], newest):
                break
            needed.insert(0, segment)
        return needed

    def _is_before(self, segment: Segment, last: int, newest: float) -> bool:
        window = self.plan.settings.window
        if window.count is not None:
            return segment.last <= self.segment(last).last - window.count
        assert window.seconds is not None
        return bool(segment.columns.ts.max(initial=-np.inf) <= newest - window.seconds)

    def message_ids(self, numbers: NDArray[np.int64]) -> pa.Array:
        """Of messages in the window, or that left it with the batch at hand; null for a negative number."""
        with self._lock:
            segments = sorted(self._segments.values(), key=lambda segment: segment.first)
        firsts = np.array([segment.first for segment in segments], np.int64)
        return looked_up([segment.ids for segment in segments], firsts, numbers)

    def forget(self, before: int) -> None:
        """Segments whose messages are all older than this number."""
        with self._lock:
            gone = [batch for batch, segment in self._segments.items() if segment.last <= before]
            for batch in gone:
                del self._segments[batch]

    def states(self, shard: int, after: int, batch: int) -> list[tuple[ShardState, dict[str, Any]]]:
        """What a shard wrote after one batch and up to another; from its last whole state on, if `after` is before."""
        numbers = [n for n in self.truth.numbers("states") if after < n <= batch]
        found: list[tuple[ShardState, dict[str, Any]]] = []
        for number in reversed(numbers):
            path = self.truth.state(number, shard)
            if path.exists():
                found.insert(0, ShardState.load(path))
                if found[0][1]["whole"] and after < 0:
                    break
        return found
