"""What each distribution costs, with shards simulated one after the other (Skype 8.2: table 5, figures 21 to 26).

The window is full before anything is measured, and every distribution must tell as many changes as the embedded
ranker does. Shards are timed one by one, so that figures for 32 of them need no 32 cores: a batch takes as long as
its slowest sieve and its slowest owner. Spark's own cost is measured apart (`nearcast.spark.bench.ranks`).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast import ranking
from nearcast.bench.ranking import TICK, World, make_world, part_of
from nearcast.bench.spec import Spec
from nearcast.bench.workload import Workloads
from nearcast.errors import NearcastError
from nearcast.ranking import Window
from nearcast.spark.ranks.cluster import Cluster, shared_out
from nearcast.spark.ranks.plan import RankSettings, made
from nearcast.spark.ranks.sieve import Found
from nearcast.spark.ranks.truth import Segment, WishChange
from nearcast.spark.storage import bounds_of


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """`batches` of `batch` messages are measured, after `warm` that are not."""

    data: str = "tweets"
    wishes: int = 20_000
    window: int = 20_000
    batch: int = 1_000
    batches: int = 2
    warm: int = 1
    k: int = 20
    keywords: tuple[int, int] = (1, 5)
    seed: int = 1


@dataclass(frozen=True, slots=True)
class TrialResult:
    distribution: str
    shards: int
    replication: float  # copies of a wish in sieves (1: only the owner looks at messages)
    sent: float  # shards that look at a message
    candidates: float  # per message, from sieves to owners
    balance: float  # time of the slowest shard over the mean
    refills: float  # per message
    us: float  # per message, all shards together
    us_parallel: float  # per message, if each shard had a core
    changes: int


def world_of(spec: TrialSpec) -> World:
    """That of the bench of rankers, with enough messages for whole batches."""
    asked = Spec(
        data=spec.data,
        subscriptions=spec.wishes,
        messages=(spec.warm + spec.batches) * spec.batch + 2 * TICK,
        window=spec.window,
        keywords=spec.keywords,
        k=spec.k,
    )
    return make_world(Workloads(spec.seed), asked)


def compare(
    spec: TrialSpec, cases: Sequence[tuple[str, int]], tell: Callable[[str], None] = lambda _: None
) -> list[TrialResult]:
    """One case (distribution, shards) after the other on the same stream."""
    world = world_of(spec)
    expected = _embedded(spec, world)
    results = []
    for distribution, shards in cases:
        tell(f"{distribution} {shards}")
        with tempfile.TemporaryDirectory() as folder:
            result = _Trial(spec, world, Path(folder), distribution, shards).run()
        if result.changes != expected:
            raise NearcastError(f"{distribution}, {shards} shards: {result.changes} changes, {expected} needed")
        results.append(result)
    return results


def _embedded(spec: TrialSpec, world: World) -> int:
    ranker = ranking.create(ranking.DEFAULT, Window(count=spec.window), world.space)
    ranker.load(part_of(world.posts, 0, spec.window))
    ranker.subscribe(world.wishes)
    total = 0
    for number, (first, last) in enumerate(_batches(spec)):
        n = len(ranker.arrive(part_of(world.posts, first, last)).seq)
        total += n if number >= spec.warm else 0
    return total


class _Trial:
    def __init__(self, spec: TrialSpec, world: World, folder: Path, distribution: str, shards: int) -> None:
        self._spec, self._world = spec, world
        self._settings = RankSettings(
            Window(count=spec.window),
            distribution,
            shards,
            bounds_of(world.space),
            wish_ids="long",
            message_ids="long",
        )
        window = part_of(world.posts, 0, spec.window)
        self._cluster = Cluster(folder, made(self._settings, world.wishes, window, world.idf))
        self._write(0, 0, spec.window)
        n = len(world.wishes)
        change = WishChange(0, world.wishes, pa.array(np.arange(n)), np.zeros(0, np.int64))
        change.save(self._cluster.truth.wishes(1), "long")

    def _write(self, batch: int, first: int, last: int) -> None:
        segment = Segment(first, part_of(self._world.posts, first, last), pa.array(np.arange(first, last)))
        segment.save(self._cluster.truth.segment(batch), "long")

    def run(self) -> TrialResult:
        spec, shards = self._spec, self._cluster.shards
        for shard in shards:
            shard.settle(0, Found.none())
        measured: list[_Batch] = []
        refills = 0
        for number, (first, last) in enumerate(_batches(spec)):
            self._write(number + 1, first, last)
            if number == spec.warm:
                refills = sum(shard.owner.report().refills for shard in shards)
            batch = self._batch(number + 1)
            if number >= spec.warm:
                measured.append(batch)
        refills = sum(shard.owner.report().refills for shard in shards) - refills
        each = 1.0 / (spec.batch * spec.batches)
        by_shard = np.sum([batch.seconds for batch in measured], axis=0)
        copies = (
            sum(len(shard.sifting.sieve) for shard in shards) if self._settings.is_sifted else len(self._world.wishes)
        )
        return TrialResult(
            self._settings.distribution,
            len(shards),
            copies / len(self._world.wishes),
            sum(sum(batch.looked_at) for batch in measured) * each,
            sum(batch.candidates for batch in measured) * each,
            float(by_shard.max() / by_shard.mean()),
            refills * each,
            float(by_shard.sum()) * each * 1e6,
            sum(batch.longest for batch in measured) * each * 1e6,
            sum(batch.changes for batch in measured),
        )

    def _batch(self, batch: int) -> _Batch:
        shards = self._cluster.shards
        sifting, looked_at = np.zeros(len(shards)), [self._spec.batch] * len(shards)
        found = [Found.none() for _ in shards]
        if self._settings.is_sifted:
            for number, shard in enumerate(shards):
                (found[number], looked_at[number]), sifting[number] = _timed(shard.probe, batch)
            found = shared_out(found, len(shards))
        settling, changes = np.zeros(len(shards)), 0
        for number, shard in enumerate(shards):
            told, settling[number] = _timed(shard.settle, batch, found[number])
            changes += len(told.seq)
        candidates = sum(len(each.rows) for each in found)
        longest = float(sifting.max() + settling.max())
        return _Batch(sifting + settling, longest, looked_at, candidates, changes)


class _Batch(NamedTuple):
    seconds: Any  # by shard
    longest: float
    looked_at: list[int]
    candidates: int
    changes: int


def _timed(run: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    started = time.process_time()
    answer = run(*arguments)
    return answer, time.process_time() - started


def _batches(spec: TrialSpec) -> list[tuple[int, int]]:
    starts = spec.window + spec.batch * np.arange(spec.warm + spec.batches)
    return [(int(first), int(first) + spec.batch) for first in starts]
