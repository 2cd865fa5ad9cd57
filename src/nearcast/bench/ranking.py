"""Rankers on one stream: all must tell the same changes; arrival and expiry are timed apart.

Wishes as in Skype section 8.1.1: words and place of a message, alpha even in [0, 1]. The window slides by ticks of
about `TICK` messages: first those that leave it expire, then the new ones arrive. It is full from the beginning:
messages are loaded, wishes get their first results once for each way of refilling, and every ranker goes on from
there in a process of its own, which has all of that memory without a copy.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from nearcast import ranking
from nearcast.bench.measure import quiet
from nearcast.bench.results import IndexResult
from nearcast.bench.spec import BenchError, Spec
from nearcast.bench.told import Told, check_same, checksum
from nearcast.bench.workload import Workloads, world_bounds
from nearcast.geo import Plane, plane
from nearcast.idf import Idf
from nearcast.ranking import PostColumns, Ranker, Spread, Window, WishColumns
from nearcast.ranking.report import RankReport
from nearcast.workloads import subscriptions

TICK = 1_000
_PHASE = 4  # busy ticks, then as many quiet ones
_SMALL = 50  # wishes and messages of a rehearsal, which compiles


class World(NamedTuple):
    spec: Spec
    space: Plane
    wishes: WishColumns
    posts: PostColumns  # ts is the number of the tick
    row_from: np.ndarray[Any, np.dtype[np.int64]]  # [ticks + 1]  rows of each tick
    ticks: int  # of the window
    idf: Idf


@dataclass(slots=True)
class _Spent:
    """Seconds of the processor, and by the wall."""

    cpu: float = 0.0
    wall: float = 0.0

    def __enter__(self) -> None:
        self.cpu -= time.process_time()
        self.wall -= time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.cpu += time.process_time()
        self.wall += time.perf_counter()


def make_world(workloads: Workloads, spec: Spec) -> World:
    """Messages of the window, those that warm up, and the measured ones; wishes drawn from others."""
    row_from, ticks = _tick_rows(spec)
    samples = workloads.samples(spec, int(row_from[-1]))
    wanted = subscriptions(
        samples.sources,
        spec.subscriptions,
        workloads.seed,
        keywords=spec.keywords,
        area=None,
        zipf=spec.keyword_zipf,
    )
    n_terms = int(max(samples.measured.terms.max(initial=0), wanted.terms.max(initial=0))) + 1
    frequencies = np.maximum(np.bincount(samples.measured.terms, minlength=n_terms), 1)
    idf = Idf(np.log1p(len(samples.measured) / frequencies))
    alpha = np.random.default_rng(workloads.seed).random(spec.subscriptions)
    k = np.full(spec.subscriptions, spec.k, np.int32)
    wishes = WishColumns.from_flat(wanted.boxes[:, :2], k, alpha, wanted.term_from, wanted.terms, idf)
    ts = np.repeat(np.arange(len(row_from) - 1, dtype=np.float64), np.diff(row_from))
    posts = PostColumns.from_batch(samples.measured, idf, ts)
    return World(spec, plane(*world_bounds(samples)), wishes, posts, row_from, ticks, idf)


def _tick_rows(spec: Spec) -> tuple[np.ndarray[Any, np.dtype[np.int64]], int]:
    """Rows of each tick, and ticks of the window. With a burst of b a busy tick has b times the rows of a quiet one."""
    size = min(TICK, max(1, spec.window // 10))
    ticks = max(1, round(spec.window / size))
    n = ticks + -(-(spec.warm + spec.messages) // size)
    busy = np.arange(n) // _PHASE % 2 == 0
    rows = np.where(busy, spec.burst, 1.0) * size * 2 / (1 + spec.burst)
    return np.concatenate([[0], np.cumsum(np.maximum(1, np.round(rows)))]).astype(np.int64), ticks


def measure(world: World, names: list[str], workloads: Workloads) -> Iterator[IndexResult]:
    """One ranker after the other; a difference between their answers ends the run."""
    small = make_world(workloads, world.spec.changed("", subscriptions=_SMALL, window=_SMALL, messages=_SMALL, warm=0))
    filled: dict[str, list[Ranker]] = {}
    first: Told | None = None
    for name in names:
        _run(small, name, _filled(small, name))
        refill = _created(world, name).refill_name
        if refill not in filled:
            filled[refill] = _filled(world, name)
        told = _apart(world, name, filled[refill])
        first = first or told
        check_same(first, told)
        yield told.result


def _created(world: World, name: str) -> Ranker:
    ranker = ranking.create(name, Window(seconds=float(world.ticks)), world.space)
    assert isinstance(ranker, Ranker)
    return ranker


def _filled(world: World, name: str) -> list[Ranker]:
    """Rankers without structure that have the window and the first results of their share of the wishes."""
    refill, n = _created(world, name).refill_name, world.spec.threads

    def fill(i: int) -> Ranker:
        part = ranking.create("scan", Window(seconds=float(world.ticks)), world.space, refill=refill)
        assert isinstance(part, Ranker)
        part.load(part_of(world.posts, 0, int(world.row_from[world.ticks])))
        part.subscribe(world.wishes.cut(np.arange(len(world.wishes)) % n == i))
        return part

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(fill, range(n)))


def _apart(world: World, name: str, filled: list[Ranker]) -> Told:
    """Run in a process of its own, so that what was filled serves the next one as well."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(_run(world, name, filled)))
    process.start()
    sender.close()
    try:
        told: Told = receiver.recv()
    except EOFError:
        raise BenchError(f"{name}: its process ended without a result") from None
    finally:
        process.join()
    return told


def _run(world: World, name: str, filled: list[Ranker]) -> Told:
    parts = [_created(world, name) for _ in filled]
    laid, expiry, arrival = _Spent(), _Spent(), _Spent()
    with laid:
        for part, one in zip(parts, filled, strict=True):
            part.take_over(one)
    ranker = parts[0] if len(parts) == 1 else Spread(parts)
    warm = world.ticks + int(
        np.searchsorted(world.row_from[world.ticks :] - world.row_from[world.ticks], world.spec.warm)
    )
    before, told, n_changes = ranker.report(), 0, 0
    with quiet():
        for tick in range(world.ticks, len(world.row_from) - 1):
            if tick == warm:
                before, expiry, arrival, n_changes = ranker.report(), _Spent(), _Spent(), 0
            columns = part_of(world.posts, int(world.row_from[tick]), int(world.row_from[tick + 1]))
            with expiry:
                left = ranker.advance(float(tick))
            with arrival:
                came = ranker.arrive(columns)
            n_changes += len(left.seq) + len(came.seq)
            told = (told * 31 + checksum(left) * 7 + checksum(came)) % 2**64
    n = int(world.row_from[-1] - world.row_from[warm])
    return Told(_result(name, before, ranker.report(), n, n_changes, laid, expiry, arrival), told)


def _result(
    name: str,
    before: RankReport,
    after: RankReport,
    n: int,
    changes: int,
    laid: _Spent,
    expiry: _Spent,
    arrival: _Spent,
) -> IndexResult:
    def per(what: str) -> float:
        return float(getattr(after, what) - getattr(before, what)) / n

    us, wall = (expiry.cpu + arrival.cpu) / n * 1e6, (expiry.wall + arrival.wall) / n * 1e6
    return IndexResult(
        name,
        "measured",
        messages=n,
        us=us,
        us_wall=wall,
        per_s=1e6 / wall,
        build_s=laid.cpu,
        bytes=after.bytes,
        bytes_per_subscription=after.bytes_total / max(1, after.live),
        candidates=per("candidates"),
        nodes=per("nodes"),
        matches=changes / n,
        figures={
            "arrival µs": arrival.cpu / n * 1e6,
            "expiry µs": expiry.cpu / n * 1e6,
            "candidates": per("candidates"),
            "nodes": per("nodes"),
            "postings": per("postings"),
            "into buffers": per("inserted"),
            "buffers touched": per("touched"),
            "refills": per("refills"),
            "read by refills": per("scanned"),
            "changes": changes / n,
            "buffer length": after.buffered,
            "bytes a wish": (after.bytes_total - after.bytes["window"]) / max(1, after.live),
        },
    )


def part_of(posts: PostColumns, first: int, last: int) -> PostColumns:
    starts = posts.term_from[first : last + 1]
    terms = slice(int(starts[0]), int(starts[-1]))
    return PostColumns(
        posts.boxes[first:last], posts.ts[first:last], starts - starts[0], posts.terms[terms], posts.weights[terms]
    )
