"""What a stream of rankings keeps on storage. Everything else can be made from it.

FOLDER/plan            settings, the cuts, how rare each term is
FOLDER/words/N         words that batch N brought, in order of their terms
FOLDER/wishes/N        wishes that come, and numbers of those that go, before the messages of batch N
FOLDER/intake/N.json   what came with batch N and is no part of it: late messages, rows that were rejected
FOLDER/segments/N      the messages of batch N, in order: columns that every shard of a machine maps; with it, all
                       of the above holds for ever
FOLDER/states/N/S      what batch N changed in shard S: thresholds, who sifts for whom, changes told so far
FOLDER/batches/N.json  the outcome, written last: a batch without it is done again

A ranking depends on the wish and on the window alone, so neither buffers nor thresholds are truth: a shard that is
lost is made from wishes, segments and the last states, and goes on with the same answers.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast import snapshot
from nearcast.columns.seal import take_runs
from nearcast.ranking import PostColumns, WishColumns
from nearcast.spark.ranks.ids import looked_up
from nearcast.spark.storage import IdKind, ids_from_arrays, ids_to_arrays

BASE_EVERY = 32
"""Every so many batches a shard writes its whole state instead of what changed."""


class Truth:
    """Paths and files; who writes what when is said by those who call."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def segment(self, batch: int) -> Path:
        return self.folder / "segments" / f"{batch:08d}"

    def wishes(self, batch: int) -> Path:
        return self.folder / "wishes" / f"{batch:08d}"

    def state(self, batch: int, shard: int) -> Path:
        return self.folder / "states" / f"{batch:08d}" / f"{shard:03d}"

    def told(self, batch: int, shard: int) -> dict[str, Any] | None:
        """What a shard says of a batch beside its state; None: it has not done it."""
        path = self.state(batch, shard)
        return snapshot.meta_of(path) if path.exists() else None

    def outcome(self, batch: int) -> dict[str, Any] | None:
        path = self._outcome(batch)
        return dict(json.loads(path.read_text())) if path.exists() else None

    def finish(self, batch: int, told: dict[str, Any]) -> None:
        _write_json(self._outcome(batch), told)

    def take_in(self, batch: int, told: dict[str, Any]) -> None:
        _write_json(self._intake(batch), told)

    def intake(self, batch: int) -> dict[str, Any]:
        return dict(json.loads(self._intake(batch).read_text()))

    def forget_intake(self, batch: int) -> None:
        self._intake(batch).unlink(missing_ok=True)

    def numbers(self, kind: str) -> list[int]:
        """Batches that have a folder of this kind (segments, wishes, states, words)."""
        folder = self.folder / kind
        return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit()) if folder.exists() else []

    def forget(self, kind: str, before: int) -> None:
        for number in self.numbers(kind):
            if number < before:
                discard(self.folder / kind / f"{number:08d}")

    def sweep(self) -> None:
        """Remove what a driver that died left half done; before anything is written."""
        for kind in ("words", "wishes", "segments", "states"):
            for part in (self.folder / kind).glob(".*"):
                shutil.rmtree(part, ignore_errors=True)

    def _outcome(self, batch: int) -> Path:
        return self.folder / "batches" / f"{batch:08d}.json"

    def _intake(self, batch: int) -> Path:
        return self.folder / "intake" / f"{batch:08d}.json"


def discard(path: Path) -> None:
    """Whole or gone, for everybody who looks, and whenever we die."""
    if path.exists():
        aside = path.with_name(f".{path.name}.gone")
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(path, aside)
        shutil.rmtree(aside, ignore_errors=True)


def _write_json(path: Path, told: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}")
    part.write_text(json.dumps(told))
    os.replace(part, path)


@dataclass(frozen=True, slots=True)
class Segment:
    """Messages of one batch, mapped. The first one has the number `first` in the whole stream."""

    first: int
    columns: PostColumns
    ids: pa.Array

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def last(self) -> int:
        return self.first + len(self)

    def save(self, path: Path, kind: IdKind) -> None:
        arrays = {name: getattr(self.columns, name) for name in _POSTS} | ids_to_arrays(self.ids, kind)
        snapshot.save(path, arrays, {"first": self.first, "last": self.last})

    @classmethod
    def load(cls, path: Path) -> Segment:
        arrays, meta = snapshot.load(path)
        return cls(int(meta["first"]), PostColumns(*(arrays[name] for name in _POSTS)), ids_from_arrays(arrays))


_POSTS = ("boxes", "ts", "term_from", "terms", "weights")
_WISHES = ("points", "k", "alpha", "term_from", "terms", "weights")


@dataclass(frozen=True, slots=True)
class WishChange:
    """Wishes that come (numbers from `first` on) and go, at one batch."""

    first: int
    columns: WishColumns
    ids: pa.Array
    gone: NDArray[np.int64]
    sources: tuple[str, ...] = ()  # files that they came from

    def save(self, path: Path, kind: IdKind) -> None:
        arrays = {name: getattr(self.columns, name) for name in _WISHES} | ids_to_arrays(self.ids, kind)
        snapshot.save(path, arrays | {"gone": self.gone}, {"first": self.first, "sources": list(self.sources)})

    @classmethod
    def load(cls, path: Path) -> WishChange:
        arrays, meta = snapshot.load(path)
        columns = WishColumns(*(arrays[name] for name in _WISHES))
        return cls(int(meta["first"]), columns, ids_from_arrays(arrays), arrays["gone"], tuple(meta["sources"]))


class WishBook:
    """All wishes by number. Numbers are given once, so a newer book answers for older batches too."""

    def __init__(self) -> None:
        self._batches: list[int] = []
        self._parts: list[WishChange] = []
        self._firsts: list[int] = []

    def follow(self, truth: Truth, batch: int) -> None:
        """Take in what came up to and with this batch."""
        last = self._batches[-1] if self._batches else -1
        for number in truth.numbers("wishes") if batch > last else []:
            if last < number <= batch:
                part = WishChange.load(truth.wishes(number))
                self._parts.append(part)
                self._firsts.append(part.first)
                self._batches.append(number)

    def live(self, batch: int) -> NDArray[np.int64]:
        """Numbers of the wishes that are there after the changes of this batch."""
        parts = [part for part, number in zip(self._parts, self._batches, strict=True) if number <= batch]
        alive = np.ones(parts[-1].first + len(parts[-1].columns) if parts else 0, np.bool_)
        for part in parts:
            alive[part.gone] = False
        return np.flatnonzero(alive).astype(np.int64)

    def take(self, numbers: NDArray[np.int64]) -> WishColumns:
        """The wishes of these ascending numbers."""
        return joined_wishes([taken(part.columns, rows) for part, rows in self._rows(numbers)])

    def ids(self, numbers: NDArray[np.int64]) -> pa.Array:
        """In the order of the numbers."""
        return looked_up([part.ids for part in self._parts], np.array(self._firsts, np.int64), numbers)

    def _rows(self, numbers: NDArray[np.int64]) -> list[tuple[WishChange, NDArray[np.int64]]]:
        part = np.searchsorted(np.array(self._firsts, np.int64), numbers, side="right") - 1
        # Parts without wishes share their first number with the next one, which `right` finds.
        return [(self._parts[p], numbers[part == p] - self._firsts[p]) for p in np.unique(part).tolist()]


def taken(columns: WishColumns, rows: NDArray[np.int64]) -> WishColumns:
    term_from, terms = take_runs(columns.term_from, columns.terms, rows)
    weights = columns.weights[run_positions(columns.term_from, rows)]
    return WishColumns(columns.points[rows], columns.k[rows], columns.alpha[rows], term_from, terms, weights)


def joined_wishes(parts: Sequence[WishColumns]) -> WishColumns:
    if len(parts) == 1:
        return parts[0]
    starts = [np.zeros(1, np.int64)]
    for part in parts:
        starts.append(part.term_from[1:] + starts[-1][-1])
    return WishColumns(
        np.concatenate([np.zeros((0, 2)), *(p.points for p in parts)]),
        np.concatenate([np.zeros(0, np.int32), *(p.k for p in parts)]),
        np.concatenate([np.zeros(0), *(p.alpha for p in parts)]),
        np.concatenate(starts),
        np.concatenate([np.zeros(0, np.int32), *(p.terms for p in parts)]),
        np.concatenate([np.zeros(0), *(p.weights for p in parts)]),
    )


def run_positions(run_from: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the values of the chosen runs stand, one run after the other."""
    counts = np.diff(run_from)[rows]
    starts = np.concatenate([[0], np.cumsum(counts)])
    return np.asarray(np.arange(starts[-1]) + np.repeat(run_from[rows] - starts[:-1], counts), np.int64)


@dataclass(frozen=True, slots=True)
class ShardState:
    """By wish, as of the end of a batch: what a sieve needs to know, and how many changes were told."""

    wish: NDArray[np.int64]
    theta: NDArray[np.float64]
    kept: NDArray[np.uint64]  # shards that sift for it, as bits
    told: NDArray[np.int64]

    def save(self, path: Path, meta: dict[str, Any]) -> None:
        arrays = {"wish": self.wish, "theta": self.theta, "kept": self.kept, "told": self.told}
        snapshot.save(path, arrays, meta)

    @classmethod
    def load(cls, path: Path) -> tuple[ShardState, dict[str, Any]]:
        arrays, meta = snapshot.load(path)
        return cls(*(arrays[name] for name in ("wish", "theta", "kept", "told"))), meta
