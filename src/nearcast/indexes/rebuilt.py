"""Indexes that take changes in place and are built anew when much of them has gone stale."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.indexes.base import EntryIndex
from nearcast.indexes.report import IndexReport

SMALL = 64  # below this many removals nothing is rebuilt
LARGE = 1000  # a batch larger than this, and than what is there, is built in together with it


class RebuiltIndex(EntryIndex):
    """Bulk build when empty or when more comes than is there; else one by one.

    What removals leave behind (boxes too wide, tokens of nobody, empty nodes) goes when the removals since
    the last build outnumber the live entries, so that memory and work stay bounded and the cost is amortised.
    """

    def __init__(self, *, history: MessageBatch | None = None) -> None:
        super().__init__(history=history)
        self.held = 0  # entries in the structure
        self.stale = 0  # removals since the last build
        self.rebuilds = 0

    @abstractmethod
    def _build(self, entries: NDArray[np.int64]) -> None:
        """A new structure with exactly these entries (perhaps none)."""

    @abstractmethod
    def _insert(self, entries: NDArray[np.int64]) -> None: ...

    @abstractmethod
    def _delete(self, entries: NDArray[np.int64]) -> None: ...

    def _worn(self) -> bool:
        """Is there another reason to build anew?"""
        return False

    def _add(self, entries: NDArray[np.int64]) -> None:
        if self.held == 0:
            self._renew(entries)
        elif len(entries) > max(self.held, LARGE):
            self._renew(self.table.live_entries())
            self.rebuilds += 1
        else:
            self._insert(entries)
            self.held += len(entries)
            if self._worn():
                self._renew(self.table.live_entries())
                self.rebuilds += 1

    def _drop(self, entries: NDArray[np.int64]) -> None:
        self.held -= len(entries)
        self.stale += len(entries)
        if self.stale > max(self.held, SMALL):
            keep = np.ones(len(self.entries.term_count), dtype=np.bool_)
            keep[entries] = False
            live = self.table.live_entries()
            self._renew(live[keep[live]])
            self.rebuilds += 1
        else:
            self._delete(entries)

    def _renew(self, entries: NDArray[np.int64]) -> None:
        self._build(entries)
        self.held, self.stale = len(entries), 0

    def report(self) -> IndexReport:
        return replace(super().report(), rebuilds=self.rebuilds)

    def _state(self) -> dict[str, NDArray[Any]]:
        return {"counts": np.array([self.held, self.stale, self.rebuilds], dtype=np.int64)}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.held, self.stale, self.rebuilds = arrays["counts"].tolist()
