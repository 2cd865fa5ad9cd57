"""Which shards an entry is kept in, and which a message row is sent to.

The one law: if an entry's box meets a row's box and the row has all required terms of the entry, then some
shard is in both answers. Everything else is cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns.seal import take_runs

Flags = NDArray[np.bool_]  # [rows, shards]
State = tuple[dict[str, Any], list[NDArray[Any]]]


class Entries(NamedTuple):
    """Entries of all subscriptions, with terms of the common lexicon."""

    boxes: NDArray[np.float64]  # [n, 4]
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [*]
    key: NDArray[np.int32]  # [n]  the rarest required term
    owner: NDArray[np.int64]  # [n]  number of the subscription

    def take(self, rows: NDArray[np.intp]) -> Entries:
        return Entries(self.boxes[rows], *take_runs(self.term_from, self.terms, rows), self.key[rows], self.owner[rows])


class Posts(NamedTuple):
    """Message rows: a box and distinct terms each."""

    boxes: NDArray[np.float64]  # [n, 4]
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [*]

    def take(self, rows: NDArray[np.intp]) -> Posts:
        return Posts(self.boxes[rows], *take_runs(self.term_from, self.terms, rows))


class Route(ABC):
    """One way to spread entries and rows over `shards` shards."""

    kind: ClassVar[str]
    shards: int

    @abstractmethod
    def entries(self, entries: Entries) -> Flags: ...

    @abstractmethod
    def posts(self, posts: Posts) -> Flags: ...

    @abstractmethod
    def state(self) -> State:
        """JSON values and arrays from which `restored` makes the same route."""


@dataclass(frozen=True)
class ByNumber(Route):
    """Each subscription in one shard, every row to all (Skype 7.3.1, hashing-based)."""

    kind: ClassVar[str] = "number"
    shards: int

    def entries(self, entries: Entries) -> Flags:
        return _one_each(entries.owner % self.shards, self.shards)

    def posts(self, posts: Posts) -> Flags:
        return np.ones((len(posts.boxes), self.shards), np.bool_)

    def state(self) -> State:
        return {"kind": self.kind, "shards": self.shards}, []


@dataclass(frozen=True, eq=False)
class ByPlace(Route):
    """Cells that tile the plane, closed in the west and south, open in the east and north.

    A point that two closed boxes share lies in exactly one cell, and both boxes touch it. The published
    method (Skype 7.3.2) sends every message to all cells, because any place may enter a top-k; a region that
    must be touched needs only the cells of the message's place.
    """

    kind: ClassVar[str] = "place"
    cells: NDArray[np.float64]  # [shards, 4]  west, south, east, north; infinite at the rim

    @property
    def shards(self) -> int:  # type: ignore[override]
        return len(self.cells)

    def entries(self, entries: Entries) -> Flags:
        return self._touched(entries.boxes)

    def posts(self, posts: Posts) -> Flags:
        return self._touched(posts.boxes)

    def _touched(self, boxes: NDArray[np.float64]) -> Flags:
        west, south, east, north = (boxes[:, i, None] for i in range(4))
        cell = self.cells.T
        return np.asarray((west < cell[2]) & (east >= cell[0]) & (south < cell[3]) & (north >= cell[1]))

    def state(self) -> State:
        return {"kind": self.kind}, [self.cells]


@dataclass(frozen=True, eq=False)
class ByTerm(Route):
    """Terms in groups; a row goes to the groups of its terms, an entry to those of its terms or of its key.

    All required terms must be there, so one of them decides: the loose prefix of Skype 7.3.4 is the rarest
    term alone. With `keys_only` false it is the keyword-based method of 7.3.3.
    """

    kind: ClassVar[str] = "term"
    shards: int
    group_of: NDArray[np.int16]  # [terms]  -1: no entry is found by this term
    keys_only: bool

    def entries(self, entries: Entries) -> Flags:
        if self.keys_only:
            return _one_each(self.group_of[entries.key], self.shards)
        return self._touched(entries.term_from, entries.terms)

    def posts(self, posts: Posts) -> Flags:
        return self._touched(posts.term_from, posts.terms)

    def _touched(self, term_from: NDArray[np.int64], terms: NDArray[np.int32]) -> Flags:
        flags = np.zeros((len(term_from) - 1, self.shards), np.bool_)
        group = self.group_of[terms]
        row = np.repeat(np.arange(len(flags)), np.diff(term_from))
        flags[row[group >= 0], group[group >= 0]] = True
        return flags

    def state(self) -> State:
        return {"kind": self.kind, "shards": self.shards, "keys_only": self.keys_only}, [self.group_of]


@dataclass(frozen=True, eq=False)
class Nested(Route):
    """Shard i of the outer route is divided by inner[i]: the two hybrids."""

    kind: ClassVar[str] = "nested"
    outer: Route
    inner: Sequence[Route]

    @property
    def shards(self) -> int:  # type: ignore[override]
        return sum(route.shards for route in self.inner)

    def entries(self, entries: Entries) -> Flags:
        outer = self.outer.entries(entries)
        return self._within(outer, [route.entries(entries) for route in self.inner])

    def posts(self, posts: Posts) -> Flags:
        outer = self.outer.posts(posts)
        return self._within(outer, [route.posts(posts) for route in self.inner])

    def _within(self, outer: Flags, inner: list[Flags]) -> Flags:
        return np.concatenate([outer[:, i, None] & flags for i, flags in enumerate(inner)], axis=1)

    def state(self) -> State:
        parts = [self.outer.state(), *(route.state() for route in self.inner)]
        meta = {"kind": self.kind, "parts": [[part, len(arrays)] for part, arrays in parts]}
        return meta, [array for _, arrays in parts for array in arrays]


def restored(meta: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> Route:
    """The route whose `state` this is."""
    if meta["kind"] == "number":
        return ByNumber(meta["shards"])
    if meta["kind"] == "place":
        return ByPlace(arrays[0])
    if meta["kind"] == "term":
        return ByTerm(meta["shards"], arrays[0], meta["keys_only"])
    parts, at = [], 0
    for part, count in meta["parts"]:
        parts.append(restored(part, arrays[at : at + count]))
        at += count
    return Nested(parts[0], parts[1:])


def any_of(flags: Flags, owner: NDArray[np.integer[Any]], count: int) -> Flags:
    """[count, shards] the shards of all rows of an owner together."""
    together = np.zeros((count, flags.shape[1]), np.bool_)
    row, shard = np.nonzero(flags)
    together[owner[row], shard] = True
    return together


def _one_each(shard: NDArray[np.integer[Any]], shards: int) -> Flags:
    flags = np.zeros((len(shard), shards), np.bool_)
    row = np.flatnonzero(shard >= 0)
    flags[row, shard[row]] = True
    return flags
