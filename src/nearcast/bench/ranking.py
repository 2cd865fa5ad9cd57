"""Rankers compared on one stream: all must tell the same changes; processor time per message after the window is full.

Wishes and messages as in Skype section 8.1.1: a wish has words and place of a message, alpha is even in [0, 1].
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearcast import ranking
from nearcast.bench.spec import BenchError
from nearcast.geo import plane
from nearcast.idf import Idf
from nearcast.ranking import Changes, PostColumns, Ranker, Window, WishColumns
from nearcast.workloads import STYLES, messages, subscriptions

_BATCH = 1_000
_MOST_SOURCES = 500_000
_GOLDEN, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class RankSpec:
    """One contest. The window holds `window` messages before `messages` more are measured."""

    data: str = "tweets"
    wishes: int = 20_000
    window: int = 20_000
    messages: int = 2_000
    k: int = 20
    keywords: tuple[int, int] = (1, 5)
    seed: int = 1

    def __post_init__(self) -> None:
        if self.data not in STYLES:
            raise BenchError(f"data {self.data!r} given; there are {', '.join(STYLES)}")
        if min(self.wishes, self.window, self.messages, self.k) < 1:
            raise BenchError("wishes, window, messages and k must be at least 1")


@dataclass(frozen=True, slots=True)
class RankResult:
    """Times are the runner's; counters and bytes are the ranker's own words, per measured message."""

    ranker: str
    us: float  # processor microseconds per message: arrival, expiry and refills
    fill_s: float  # processor seconds to fill the window
    changes: float
    candidates: float
    nodes: float
    inserted: float
    touched: float
    refills: float
    buffered: float  # mean length of a buffer
    bytes: int
    ratio: float = 1.0  # the first ranker's `us` divided by this one's


class _World(NamedTuple):
    wishes: WishColumns
    posts: PostColumns


def compare(spec: RankSpec, names: Sequence[str], tell: Callable[[str], None] = lambda _: None) -> list[RankResult]:
    """Measure one ranker after the other; a difference between their changes ends the run."""
    world, results = _world(spec), []
    answer: int | None = None
    for name in names:
        tell(name)
        _run(name, RankSpec(spec.data, 50, 50, 50, 2, spec.keywords, spec.seed), _world_small(spec))  # compiles
        result, told = _run(name, spec, world)
        if answer is not None and told != answer:
            raise BenchError(f"{names[0]} and {name} tell different changes; the run ends here")
        answer = told
        results.append(result)
    first = results[0].us if results else 0.0
    return [RankResult(**{**asdict(r), "ratio": first / max(r.us, 1e-9)}) for r in results]


def write(path: Path, spec: RankSpec, results: Sequence[RankResult]) -> None:
    values = {"format": "nearcast-bench-rank", "spec": asdict(spec), "results": [asdict(r) for r in results]}
    path.write_text(json.dumps(values, indent=1) + "\n")


def _world_small(spec: RankSpec) -> _World:
    return _world(RankSpec(spec.data, 50, 50, 50, 2, spec.keywords, spec.seed))


def _world(spec: RankSpec) -> _World:
    style = STYLES[spec.data]
    batch = messages(spec.window + spec.messages, spec.seed, style)
    sources = messages(min(spec.wishes, _MOST_SOURCES), spec.seed + 1, style)
    wanted = subscriptions(sources, spec.wishes, spec.seed, keywords=spec.keywords, area=None)
    n_terms = int(max(batch.terms.max(), wanted.terms.max())) + 1
    frequencies = np.maximum(np.bincount(batch.terms, minlength=n_terms), 1)
    idf = Idf(np.log1p(len(batch) / frequencies))
    alpha = np.random.default_rng(spec.seed).random(spec.wishes)
    k = np.full(spec.wishes, spec.k, np.int32)
    wishes = WishColumns.from_flat(wanted.boxes[:, :2], k, alpha, wanted.term_from, wanted.terms, idf)
    return _World(wishes, PostColumns.from_batch(batch, idf))


def _run(name: str, spec: RankSpec, world: _World) -> tuple[RankResult, int]:
    west, south, east, north = STYLES[spec.data].bounds
    ranker = ranking.create(name, Window(count=spec.window), plane(west, south, east, north))
    started = time.process_time()
    ranker.subscribe(world.wishes)
    _stream(ranker, world.posts, 0, spec.window)
    full, before = time.process_time(), ranker.report()
    n, told = _stream(ranker, world.posts, spec.window, spec.window + spec.messages)
    spent, after = time.process_time() - full, ranker.report()
    per = 1.0 / spec.messages
    result = RankResult(
        name,
        spent * per * 1e6,
        full - started,
        n * per,
        (after.candidates - before.candidates) * per,
        (after.nodes - before.nodes) * per,
        (after.inserted - before.inserted) * per,
        (after.touched - before.touched) * per,
        (after.refills - before.refills) * per,
        after.buffered,
        after.bytes_total,
    )
    return result, told


def _stream(ranker: Ranker, posts: PostColumns, first: int, last: int) -> tuple[int, int]:
    """How many changes there were, and a checksum of them that does not depend on their order within a batch."""
    n, told = 0, 0
    numbers = np.arange(len(posts))
    for start in range(first, last, _BATCH):
        stop = min(start + _BATCH, last)
        changes = ranker.arrive(posts.cut((numbers >= start) & (numbers < stop)))
        n += len(changes.seq)
        told = (told * 31 + _checksum(changes)) % 2**64
    return n, told


def _checksum(changes: Changes) -> int:
    slot, seq = changes.slot.astype(np.uint64), changes.seq.astype(np.uint64)
    mixed = ((slot + np.uint64(1)) * _GOLDEN) ^ ((seq + np.uint64(1)) * _OTHER) ^ changes.entered.astype(np.uint64)
    spread = (mixed ^ (mixed >> np.uint64(31))) * _OTHER
    return int(np.bitwise_xor.reduce(spread)) if len(spread) else 0
