"""Movers compared on one world: all must tell the same changes; processor time per arrival, per end and per move.

The world of VLDBJ'17 section 5.2.1: subscriptions have the words of messages and squares around objects that drive on
roads; in every timestamp new messages arrive, which live for ten timestamps, and a share of the objects moves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast import moving
from nearcast.bench.spec import BenchError
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.geo import plane
from nearcast.moving import Changes, Mover, MoveReport
from nearcast.workloads import STYLES, messages, subscriptions
from nearcast.workloads.roads import find_roads
from nearcast.workloads.traffic import Moves, Traffic, squares

LIFE = 10  # timestamps
FIRST_MEASURED = 3  # timestamp; those before show the movers how fast everything moves
_MOST_SOURCES = 500_000
_GOLDEN, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class MoveSpec:
    """One contest; the fields of VLDBJ'17 Table 3. `messages` live when measuring begins: a tenth arrives in every
    timestamp, unless `arrivals` says how many."""

    data: str = "tweets"
    roads: str = "oldenburg"
    subscriptions: int = 20_000
    messages: int = 20_000
    arrivals: int | None = None
    mobility: float = 0.2
    speed: float = 1.0  # times medium
    area: float = 1e-4  # of the space
    keywords: tuple[int, int] = (1, 5)
    timestamps: int = 3
    batch: int = 10_000  # messages and moves of one step
    seed: int = 1

    def __post_init__(self) -> None:
        if self.data not in STYLES:
            raise BenchError(f"data {self.data!r} given; there are {', '.join(STYLES)}")
        if min(self.subscriptions, self.messages, self.timestamps, self.batch) < 1:
            raise BenchError("subscriptions, messages, timestamps and batch must be at least 1")

    @property
    def rate(self) -> int:
        return max(1, self.messages // LIFE) if self.arrivals is None else self.arrivals


@dataclass(frozen=True, slots=True)
class MoveResult:
    """Times are the runner's, in processor microseconds; counters and bytes are the mover's own words."""

    mover: str
    arrival_us: float  # per message: matched, stored
    end_us: float  # per message: matched once more, forgotten
    move_us: float  # per move
    sum_s: float  # of one timestamp: its arrivals, ends and moves
    build_s: float  # subscriptions and the first messages
    changes: float  # per move
    candidates: float  # messages looked at, per move
    nodes: float  # lists or nodes, per move
    bytes: int
    details: dict[str, Any]
    ratio: float = 1.0  # the first mover's sum divided by this one's


class _World(NamedTuple):
    wishes: SubscriptionColumns
    first: MessageBatch  # live before measuring begins
    later: list[MessageBatch]  # by timestamp
    moves: list[Moves]  # by timestamp


def compare(spec: MoveSpec, names: Sequence[str], tell: Callable[[str], None] = lambda _: None) -> list[MoveResult]:
    """Measure one mover after the other; a difference between their changes ends the run."""
    world, results = _world(spec), []
    small = replace(spec, subscriptions=200, messages=200, arrivals=None, timestamps=1)
    little = _world(small)
    answer: int | None = None
    for name in names:
        tell(name)
        _run(name, small, little)  # compiles
        result, told = _run(name, spec, world)
        if answer is not None and told != answer:
            raise BenchError(f"{names[0]} and {name} tell different changes; the run ends here")
        answer = told
        results.append(result)
    return [replace(r, ratio=results[0].sum_s / max(r.sum_s, 1e-9)) for r in results]


def write(path: Path, spec: MoveSpec, results: Sequence[MoveResult]) -> None:
    values = {"format": "nearcast-bench-move", "spec": asdict(spec), "results": [asdict(r) for r in results]}
    path.write_text(json.dumps(values, indent=1, default=str) + "\n")


def _world(spec: MoveSpec) -> _World:
    style = STYLES[spec.data]
    n_steps = spec.timestamps + FIRST_MEASURED - 1
    n_later = spec.rate * n_steps
    batch = messages(spec.messages + n_later, spec.seed, style)
    sources = messages(min(spec.subscriptions, _MOST_SOURCES), spec.seed + 1, style)
    wanted = subscriptions(sources, spec.subscriptions, spec.seed, keywords=spec.keywords, area=None)
    traffic = Traffic(find_roads(spec.roads), spec.subscriptions, spec.seed, speed=spec.speed, mobility=spec.mobility)
    boxes = squares(traffic.places, spec.area)
    cuts = [spec.messages + number * spec.rate for number in range(n_steps + 1)]
    return _World(
        SubscriptionColumns.from_flat(boxes, wanted.term_from, wanted.terms),
        _part(batch, 0, spec.messages),
        [_part(batch, first, last) for first, last in pairwise(cuts)],
        [traffic.step() for _ in range(n_steps)],
    )


def _run(name: str, spec: MoveSpec, world: _World) -> tuple[MoveResult, int]:
    mover = moving.create(name, plane(-1, -1, 2, 2))
    clock = _Clock()
    slots = mover.follow(world.wishes)
    _first_messages(mover, spec, world.first)
    build, before = clock.lap(), mover.report()
    spent, told = {"arrive": 0.0, "end": 0.0, "move": 0.0}, 0
    for timestamp, (batch, moves) in enumerate(zip(world.later, world.moves, strict=True), 1):
        if timestamp == FIRST_MEASURED:
            spent, before = dict.fromkeys(spent, 0.0), mover.report()
        clock.lap()
        changes = [mover.advance(float(timestamp))]
        spent["end"] += clock.lap()
        for first in range(0, len(batch), spec.batch):
            part = _part(batch, first, first + spec.batch)
            clock.lap()
            changes.append(mover.arrive(part, np.full(len(part), float(timestamp + LIFE)), float(timestamp)))
            spent["arrive"] += clock.lap()
        for who, boxes in _moves(spec, moves):
            clock.lap()
            changes.append(mover.move(slots[who], boxes))
            spent["move"] += clock.lap()
        told = (told * 31 + _checksum(Changes.joined(changes))) % 2**64
    return _result(name, spec, mover, before, build, spent), told


def _result(
    name: str, spec: MoveSpec, mover: Mover, before: MoveReport, build: float, spent: dict[str, float]
) -> MoveResult:
    after = mover.report()
    n_moves, n_ends = max(1, after.moves - before.moves), max(1, after.expired - before.expired)
    n_arrivals = max(1, after.arrived - before.arrived)
    return MoveResult(
        name,
        1e6 * spent["arrive"] / n_arrivals,
        1e6 * spent["end"] / n_ends,
        1e6 * spent["move"] / n_moves,
        sum(spent.values()) / spec.timestamps,
        build,
        (after.moved_changes - before.moved_changes) / n_moves,
        (after.candidates - before.candidates) / n_moves,
        (after.nodes - before.nodes) / n_moves,
        after.bytes_total,
        after.details,
    )


def _first_messages(mover: Mover, spec: MoveSpec, batch: MessageBatch) -> None:
    """A tenth of them ends with each of the next ten timestamps."""
    size = -(-len(batch) // LIFE)
    for number in range(LIFE):
        for first in range(number * size, min(len(batch), (number + 1) * size), spec.batch):
            part = _part(batch, first, min(first + spec.batch, (number + 1) * size, len(batch)))
            mover.arrive(part, np.full(len(part), float(number + 1)), 0.0)


def _moves(spec: MoveSpec, moves: Moves) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    for first in range(0, len(moves.who), spec.batch):
        part = slice(first, first + spec.batch)
        yield moves.who[part], squares(moves.places[part], spec.area)


def _part(batch: MessageBatch, first: int, last: int) -> MessageBatch:
    last = min(last, len(batch))
    low, high = batch.term_from[first], batch.term_from[last]
    starts = np.ascontiguousarray(batch.term_from[first : last + 1] - low)
    return MessageBatch.from_flat(batch.boxes[first:last].copy(), starts, batch.terms[low:high].copy())


def _checksum(changes: Changes) -> int:
    """Does not depend on the order within a timestamp."""
    slot, seq = changes.slot.astype(np.uint64), changes.seq.astype(np.uint64)
    mixed = ((slot + np.uint64(1)) * _GOLDEN) ^ ((seq + np.uint64(1)) * _OTHER) ^ changes.entered.astype(np.uint64)
    spread = (mixed ^ (mixed >> np.uint64(31))) * _OTHER
    return int(np.bitwise_xor.reduce(spread)) if len(spread) else 0


class _Clock:
    """Processor time between laps."""

    def __init__(self) -> None:
        self._at = time.process_time()

    def lap(self) -> float:
        before, self._at = self._at, time.process_time()
        return self._at - before
