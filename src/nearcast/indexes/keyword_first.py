"""`keyword-first`: inverted lists over terms, then the place is verified (KDD'13 2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.base import EntryIndex
from nearcast.indexes.lists import GrowingLists
from nearcast.indexes.pool import enlarged
from nearcast.indexes.token_order import TokenOrder
from nearcast.kernels import keyword_first as kernels
from nearcast.kernels.layout import Rows
from nearcast.kernels.sieve import SIEVE

METHODS = ("key", "counting")


class KeywordFirst(EntryIndex):
    """KDD'13 leaves the lists to existing techniques, "e.g. using inverted lists" of Yan and Garcia-Molina.

    lists: `key` lists an entry under its least frequent term alone and looks the others up in the message;
    `counting` lists it under all its terms and counts how many the message has, so that the place is verified
    of those alone that satisfy the textual constraint.
    """

    name = "keyword-first"

    def __init__(self, *, history: MessageBatch | None = None, lists: str = "key") -> None:
        super().__init__(history=history)
        if lists not in METHODS:
            raise CatalogueError(f"{self.name}: lists={lists!r} given; there are {', '.join(METHODS)}")
        self.method = lists
        self.lists = GrowingLists()
        self.order = TokenOrder(self.name, "idf", 1, history)
        self._left = np.zeros(0, dtype=np.int32)  # by entry: number of terms, counted down and up in a row
        self._guards = np.zeros(0, dtype=np.int32)  # by entry: its second rarest term; the key if it has no other

    def _postings(self, entries: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(terms, entries): the lists these entries are in."""
        if self.method == "key":
            words = self.order.words(self.entries)
            return words.terms[words.term_from[entries]].astype(np.int64), entries
        counts, starts = self.entries.term_count[entries], self.entries.term_from[entries]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        terms = self.entries.terms[np.repeat(starts, counts) + within]
        return terms.astype(np.int64), np.repeat(entries, counts)

    def _add(self, entries: NDArray[np.int64]) -> None:
        if self.method == "key":
            self.order.put(self.entries, entries)
            words = self.order.words(self.entries)
            second = words.term_from[entries] + (words.term_count[entries] > 1)
            self._guards = enlarged(self._guards, len(words.boxes))
            self._guards[entries] = words.terms[second]
        else:
            self._left = enlarged(self._left, len(self.entries.boxes))
            self._left[entries] = self.entries.term_count[entries]
        terms, members = self._postings(entries)
        self.lists.make_room(int(terms.max()) + 1)
        self.lists.append(terms, members)

    def _drop(self, entries: NDArray[np.int64]) -> None:
        terms, members = self._postings(entries)
        self.lists.drop(terms, members, len(self.entries.boxes))
        if self.method == "key":
            self.order.forget(self.entries, entries)

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        lists, entries = self.lists.arrays, self.entries
        if self.method == "key":
            guards, sieve = self._guards, np.zeros(SIEVE, dtype=np.bool_)
            return self._collect(
                len(rows.boxes),
                lambda first, found, counters: kernels.probe_keys(
                    lists, guards, entries, sieve, rows, first, found, counters
                ),
            )
        left = self._left
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: kernels.probe_counting(lists, left, entries, rows, first, found, counters),
        )

    def _bytes(self) -> dict[str, int]:
        sizes = {"lists": self.lists.nbytes}
        if self.method == "key":
            return sizes | self.order.nbytes() | {"guards": self._guards.nbytes}
        return sizes | {"left": self._left.nbytes}

    def _details(self) -> dict[str, Any]:
        lengths = self.lists.arrays.length
        return {
            "method": self.method,
            "lists_in_use": int(np.count_nonzero(lengths)),
            "longest_list": int(lengths.max(initial=0)),
        }

    def _options(self) -> dict[str, Any]:
        return {"lists": self.method}

    def _state(self) -> dict[str, NDArray[Any]]:
        arrays = {f"lists.{name}": array for name, array in self.lists.state().items()}
        arrays["guards"] = self._guards
        return arrays | {f"order.{name}": array for name, array in self.order.state().items()}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.lists = GrowingLists.restored({n[6:]: a for n, a in arrays.items() if n.startswith("lists.")})
        self._guards, self._left = arrays["guards"], self.entries.term_count.copy()
        self.order.restore({n[6:]: a for n, a in arrays.items() if n.startswith("order.")})
