"""Movers on one world: all must tell the same changes; arrivals, ends and moves are timed apart.

The world of VLDBJ'17 section 5.2.1: subscriptions have the words of messages, and squares around objects that drive
on roads. In every timestamp messages end, new ones arrive, which live for ten timestamps, and a share of the objects
moves.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast import moving
from nearcast.bench.measure import quiet
from nearcast.bench.results import IndexResult
from nearcast.bench.spec import Spec
from nearcast.bench.told import Told, check_same, checksum
from nearcast.bench.workload import Workloads, world_bounds
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.geo import Plane, plane
from nearcast.moving import Changes, Mover, MoveReport
from nearcast.workloads import subscriptions
from nearcast.workloads.roads import find_roads
from nearcast.workloads.sampling import Bounds
from nearcast.workloads.traffic import Moves, Traffic, squares

LIFE = 10  # timestamps
FIRST_MEASURED = 3  # timestamp; those before show the movers how fast everything moves
BATCH = 10_000  # messages or moves of one step
_SMALL = 200  # subscriptions and messages of a rehearsal, which compiles


class World(NamedTuple):
    spec: Spec
    space: Plane
    wishes: SubscriptionColumns
    first: MessageBatch  # live before the first timestamp
    later: list[MessageBatch]  # by timestamp
    moves: list[tuple[NDArray[np.int64], NDArray[np.float64]]]  # by timestamp: who, and the new boxes


@dataclass(slots=True)
class _Spent:
    """Seconds of the processor."""

    build: float = 0.0
    arrival: float = 0.0
    end: float = 0.0
    move: float = 0.0
    longest: float = 0.0  # of one step with moves

    @property
    def all(self) -> float:
        return self.arrival + self.end + self.move


def make_world(workloads: Workloads, spec: Spec) -> World:
    """Messages live at first and those of the timestamps; subscriptions with words drawn from others."""
    rate = spec.arrivals or max(1, spec.window // LIFE)
    n_steps = spec.timestamps + FIRST_MEASURED - 1
    samples = workloads.samples(spec, spec.window + rate * n_steps)
    wanted = subscriptions(
        samples.sources,
        spec.subscriptions,
        workloads.seed,
        keywords=spec.keywords,
        area=None,
        zipf=spec.keyword_zipf,
    )
    traffic = Traffic(
        find_roads(spec.roads), spec.subscriptions, workloads.seed, speed=spec.speed, mobility=spec.mobility
    )
    low, high = (float(np.log(end)) for end in spec.area)
    areas = np.exp(np.random.default_rng(workloads.seed).uniform(low, high, spec.subscriptions))
    bounds = world_bounds(samples)
    boxes = _scaled(squares(traffic.places, areas), bounds)
    cuts = [spec.window + number * rate for number in range(n_steps + 1)]
    return World(
        spec,
        plane(*_around(bounds)),
        SubscriptionColumns.from_flat(boxes, wanted.term_from, wanted.terms),
        part_of(samples.measured, 0, spec.window),
        [part_of(samples.measured, first, last) for first, last in pairwise(cuts)],
        [_new_boxes(traffic.step(), areas, bounds) for _ in range(n_steps)],
    )


def _new_boxes(
    moves: Moves, areas: NDArray[np.float64], bounds: Bounds
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return moves.who, _scaled(squares(moves.places, areas[moves.who]), bounds)


def _scaled(boxes: NDArray[np.float64], bounds: Bounds) -> NDArray[np.float64]:
    """From the unit square to the bounds of the messages."""
    low, extent = np.array(bounds[:2] * 2), np.array([bounds[2] - bounds[0], bounds[3] - bounds[1]] * 2)
    return np.ascontiguousarray(low + boxes * extent)


def _around(bounds: Bounds) -> Bounds:
    """Room for squares at the edge."""
    west, south, east, north = bounds
    return 2 * west - east, 2 * south - north, 2 * east - west, 2 * north - south


def measure(world: World, names: list[str], workloads: Workloads) -> Iterator[Told]:
    """One mover after the other; a difference between their answers ends the run."""
    small = make_world(workloads, world.spec.changed("", subscriptions=_SMALL, window=_SMALL, arrivals=0, timestamps=1))
    first: Told | None = None
    for name in names:
        _run(small, name)
        gc.collect()
        told = _run(world, name)
        first = first or told
        check_same(first, told)
        yield told


def _run(world: World, name: str) -> Told:
    mover, spent = moving.create(name, world.space), _Spent()
    clock = _Clock()
    slots = mover.follow(world.wishes)
    _first_messages(mover, world.first)
    spent.build, before, told = clock.lap(), mover.report(), 0
    with quiet():
        for timestamp, (batch, (who, boxes)) in enumerate(zip(world.later, world.moves, strict=True), 1):
            if timestamp == FIRST_MEASURED:
                spent, before = _Spent(spent.build), mover.report()
            changes = _timestamp(mover, float(timestamp), batch, slots[who], boxes, spent)
            told = (told * 31 + checksum(Changes.joined(changes))) % 2**64
    return Told(_result(name, world.spec, before, mover.report(), spent), told)


def _timestamp(
    mover: Mover,
    now: float,
    batch: MessageBatch,
    slots: NDArray[np.int32],
    boxes: NDArray[np.float64],
    spent: _Spent,
) -> list[Changes]:
    clock = _Clock()
    changes = [mover.advance(now)]
    spent.end += clock.lap()
    for first in range(0, len(batch), BATCH):
        part = part_of(batch, first, min(first + BATCH, len(batch)))
        clock.lap()
        changes.append(mover.arrive(part, np.full(len(part), now + LIFE), now))
        spent.arrival += clock.lap()
    for first in range(0, len(slots), BATCH):
        step = slice(first, first + BATCH)
        clock.lap()
        changes.append(mover.move(slots[step], boxes[step]))
        lap = clock.lap()
        spent.move, spent.longest = spent.move + lap, max(spent.longest, lap)
    return changes


def _first_messages(mover: Mover, batch: MessageBatch) -> None:
    """A tenth of them ends with each of the next ten timestamps."""
    size = -(-len(batch) // LIFE)
    for number in range(LIFE):
        end = min(len(batch), (number + 1) * size)
        for first in range(number * size, end, BATCH):
            part = part_of(batch, first, min(first + BATCH, end))
            mover.arrive(part, np.full(len(part), number + 1.0), 0.0)


def _result(name: str, spec: Spec, before: MoveReport, after: MoveReport, spent: _Spent) -> IndexResult:
    n_moves, n_ends = max(1, after.moves - before.moves), max(1, after.expired - before.expired)
    n_arrivals = max(1, after.arrived - before.arrived)
    us = 1e6 * spent.all / (n_moves + n_arrivals)
    return IndexResult(
        name,
        "measured",
        messages=n_arrivals,
        us=us,
        per_s=1e6 / us,
        build_s=spent.build,
        bytes=after.bytes,
        bytes_per_subscription=after.bytes_total / max(1, after.live),
        candidates=(after.candidates - before.candidates) / n_moves,
        nodes=(after.nodes - before.nodes) / n_moves,
        matches=(after.moved_changes - before.moved_changes) / n_moves,
        figures={
            "arrival µs": 1e6 * spent.arrival / n_arrivals,
            "end µs": 1e6 * spent.end / n_ends,
            "move µs": 1e6 * spent.move / n_moves,
            "moves/s": n_moves / max(spent.move, 1e-9),
            "timestamp s": spent.all / spec.timestamps,
            "changes a move": (after.moved_changes - before.moved_changes) / n_moves,
            "looked at a move": (after.candidates - before.candidates) / n_moves,
            "lists a move": (after.nodes - before.nodes) / n_moves,
            "build s": spent.build,
            "MB": after.bytes_total / 1e6,
        }
        | ({"updates saved": after.details["share saved"]} if "share saved" in after.details else {}),
    )


def part_of(batch: MessageBatch, first: int, last: int) -> MessageBatch:
    low, high = int(batch.term_from[first]), int(batch.term_from[last])
    starts = np.ascontiguousarray(batch.term_from[first : last + 1] - low)
    return MessageBatch.from_flat(batch.boxes[first:last].copy(), starts, batch.terms[low:high].copy())


class _Clock:
    """Processor time between laps."""

    def __init__(self) -> None:
        self._at = time.process_time()

    def lap(self) -> float:
        before, self._at = self._at, time.process_time()
        return self._at - before
