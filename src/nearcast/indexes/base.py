"""The protocol of an index, and the part that all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast import snapshot
from nearcast.columns import MessageBatch, Pairs, SubscriptionColumns
from nearcast.indexes.report import IndexReport
from nearcast.indexes.table import CountType, EntryTable
from nearcast.kernels.layout import CANDIDATES, COUNTERS, NODES, Entries, Found, Rows

FIRST_ROOM = 4096


class Index(Protocol):
    """What the hub calls. Every index gives exactly the reference's pairs."""

    def insert(self, columns: SubscriptionColumns) -> NDArray[np.int32]: ...
    def remove(self, slots: ArrayLike) -> None: ...
    def match(self, batch: MessageBatch) -> Pairs: ...
    def report(self) -> IndexReport: ...
    def save(self, path: Path) -> None: ...


class EntryIndex(ABC):
    """An index over entries. Subclasses find candidates; the table holds the truth and settles pairs.

    `history` is a sample of past messages for cost models; indexes without one ignore it.
    """

    name: ClassVar[str]
    counts: ClassVar[CountType] = np.int32  # of the terms of a clause

    def __init__(self, *, history: MessageBatch | None = None) -> None:
        self.history = history
        self.table = EntryTable(self.counts)
        self._counters = np.zeros(len(COUNTERS), dtype=np.int64)
        self._n_rows = 0
        self._n_found = 0
        self._room = FIRST_ROOM

    # -- what an index adds -------------------------------------------------------------------------

    @abstractmethod
    def _add(self, entries: NDArray[np.int64]) -> None:
        """Take new entries (already in the table) into the structure; the first call may build in bulk."""

    @abstractmethod
    def _drop(self, entries: NDArray[np.int64]) -> None:
        """Forget entries (still in the table); their numbers may be used again by the next insert."""

    @abstractmethod
    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(row, entry) pairs that are exact on box and required terms, each pair once."""

    def _bytes(self) -> dict[str, int]:
        """Size of the structure by part."""
        return {}

    def _details(self) -> dict[str, Any]:
        return {}

    def _state(self) -> dict[str, NDArray[Any]]:
        """Arrays that `_restore` makes the structure from."""
        return {}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The structure from its arrays (mapped copy-on-write). The table is there already."""
        assert not arrays

    def _options(self) -> dict[str, Any]:
        """Constructor options, as JSON values."""
        return {}

    # -- the protocol -------------------------------------------------------------------------------

    def insert(self, columns: SubscriptionColumns) -> NDArray[np.int32]:
        """Take subscriptions in; the slot of each, in order. A fresh index gives 0, 1, 2, …"""
        added = self.table.append(columns)
        if len(added.entries):
            self._add(added.entries)
        return added.slots

    def remove(self, slots: ArrayLike) -> None:
        """Forget the subscriptions in these slots."""
        chosen = np.atleast_1d(np.asarray(slots, dtype=np.int32))
        entries = self.table.entries_of(chosen)
        if len(entries):
            self._drop(entries)
            self.table.release(chosen, entries)

    def relocate(self, entries: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
        """Put entries, each given once, into other boxes."""
        if len(entries):
            self._drop(entries)
            self.table.relocate(entries, boxes)
            self._add(entries)

    def match(self, batch: MessageBatch) -> Pairs:
        """Who wants which message of the batch."""
        rows, entries = self._probe(batch.rows)
        self._n_rows += len(batch.boxes)
        self._n_found += len(rows)
        return self.table.settle(batch, rows, entries)

    def report(self) -> IndexReport:
        return IndexReport(
            name=self.name,
            live=self.table.n_live,
            entries=self.table.n_entries,
            bytes=self.table.nbytes() | self._bytes(),
            messages=self._n_rows,
            candidates=int(self._counters[CANDIDATES]),
            nodes=int(self._counters[NODES]),
            found=self._n_found,
            details=self._details(),
        )

    def save(self, path: Path) -> None:
        """Write a snapshot: one folder of flat files."""
        arrays = {f"table.{name}": array for name, array in self.table.state().items()}
        arrays |= {f"index.{name}": array for name, array in self._state().items()}
        snapshot.save(path, arrays, {"index": self.name, "options": self._options()})

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> Self:
        """From the arrays of a snapshot; see `indexes.load`."""
        index = cls(**options)
        index.table = EntryTable.restored(_part(arrays, "table."), cls.counts)
        index._restore(_part(arrays, "index."))
        return index

    # -- help for subclasses ------------------------------------------------------------------------

    @property
    def entries(self) -> Entries:
        return self.table.entries

    def _collect(
        self, n_rows: int, probe: Callable[[int, Found, NDArray[np.int64]], tuple[int, int]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Call probe(first row, room, counters) until all rows are done, enlarging the room as needed."""
        parts: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        first = 0
        while first < n_rows:
            found = Found(np.empty(self._room, dtype=np.int32), np.empty(self._room, dtype=np.int32))
            following, n_found = probe(first, found, self._counters)
            parts.append((found.rows[:n_found], found.entries[:n_found]))
            if following < n_rows:
                self._room *= 2
            first = following
        if len(parts) == 1:
            return parts[0]
        empty = np.zeros(0, dtype=np.int32)
        return (
            np.concatenate([empty, *(rows for rows, _ in parts)]),
            np.concatenate([empty, *(entries for _, entries in parts)]),
        )


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
