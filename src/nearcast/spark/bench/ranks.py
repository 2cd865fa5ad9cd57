"""Rankings on a real Spark beside the embedded ranker, on the same cores in the same run.

The window is full and all wishes are there before anything is measured: the first micro-batch fills the window, the
second brings the wishes, and those after `warm` more are counted. Both tell the same number of changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast import ranking
from nearcast.bench.ranking import World, part_of
from nearcast.errors import NearcastError
from nearcast.files import MESSAGES, RANKED_WISHES
from nearcast.geo import plane
from nearcast.ranking import PostColumns, Ranker, Spread, Window, WishColumns
from nearcast.spark.bench.trial import TrialSpec, world_of
from nearcast.spark.ranks import host
from nearcast.spark.ranks.intake import CHANGES, wishes_of
from nearcast.spark.ranks.plan import RankPlan, RankSettings
from nearcast.spark.ranks.posts import PostReader
from nearcast.spark.ranks.stream import FOLDER, RankReport, rank_stream, run_wish_changes
from nearcast.spark.read import read, read_stream
from nearcast.spark.session import session
from nearcast.spark.sinks import FileSink
from nearcast.spark.storage import bounds_of, load_lexicon
from nearcast.spark.stream import ONCE
from nearcast.workloads import words

EMBEDDED, RANKING_ALONE = "embedded, from rows", "embedded, ranking alone"
_SAMPLE = 5_000  # messages that words are weighed by
_FILLED = 2  # micro-batches before the window is full and the wishes are there


@dataclass(frozen=True, slots=True)
class LiveResult:
    """Of the measured micro-batches together."""

    name: str
    cores: int
    per_s: float  # messages, by the wall
    seconds: float  # of a micro-batch, mean
    changes: int


def measure(
    spec: TrialSpec,
    masters: list[int],
    distributions: list[str],
    work: Path,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[LiveResult]:
    """For each number of cores: the distributions on Spark, then the embedded ranker with as many threads."""
    files = Files.made(spec, work)
    for cores in masters:
        spark = session(f"local[{cores}]", settings={"spark.driver.memory": "2g"})
        try:
            found = []
            for name in distributions:
                tell(f"{name}, local[{cores}]")
                found.append(on_spark(spark, spec, files, name, cores, work / f"{name}-{cores}"))
        finally:
            spark.stop()
        tell(f"embedded, {cores} threads")
        found += embedded(spec, files, cores, work / f"{distributions[0]}-{cores}" / "checkpoint" / FOLDER)
        if len({result.changes for result in found}) != 1:
            raise NearcastError(f"different changes: { {result.name: result.changes for result in found} }")
        yield from found


@dataclass(frozen=True, slots=True)
class Files:
    """The world as tables: each file of `posts` is a micro-batch."""

    posts: Path
    wishes: Path
    sample: Path
    bounds: tuple[float, float, float, float]

    @classmethod
    def made(cls, spec: TrialSpec, folder: Path) -> Files:
        total = (_FILLED - 1 + spec.warm + spec.batches) * spec.batch
        world = world_of(replace(spec, warm=_FILLED - 1 + spec.warm))
        bounds = bounds_of(world.space)
        assert bounds is not None
        files = cls(folder / "posts", folder / "wishes.parquet", folder / "sample.parquet", bounds)
        files.posts.mkdir(parents=True)
        pq.write_table(_wishes(world), files.wishes)
        pq.write_table(_posts(world, 0, min(_SAMPLE, spec.window)), files.sample)
        ends = [0, spec.window, *range(spec.window + spec.batch, spec.window + total + 1, spec.batch)]
        for number, (first, last) in enumerate(pairwise(ends)):
            pq.write_table(_posts(world, first, last), files.posts / f"{number:04d}.parquet")
        return files


def _posts(world: World, first: int, last: int) -> pa.Table:
    cut = part_of(world.posts, first, last)
    return pa.table(
        {
            "id": pa.array(np.arange(first, last)),
            "text": _texts(cut.terms, cut.term_from),
            "lon": pa.array(cut.boxes[:, 0]),
            "lat": pa.array(cut.boxes[:, 1]),
        }
    )


def _wishes(world: World) -> pa.Table:
    wishes = world.wishes
    return pa.table(
        {
            "id": pa.array(np.arange(len(wishes))),
            "text": _texts(wishes.terms, wishes.term_from),
            "lon": pa.array(wishes.points[:, 0]),
            "lat": pa.array(wishes.points[:, 1]),
            "k": pa.array(wishes.k),
            "alpha": pa.array(wishes.alpha),
        }
    )


def _texts(terms: Any, term_from: Any) -> pa.Array:
    said = np.array(words(terms.tolist()), dtype=object)
    return pa.array([" ".join(row) for row in np.split(said, term_from[1:-1])], pa.string())


def on_spark(spark: Any, spec: TrialSpec, files: Files, name: str, cores: int, folder: Path) -> LiveResult:
    """Through the public functions, into files."""
    for place in ("posts", "changes"):
        (folder / place).mkdir(parents=True)
    (folder / "changes" / "0.parquet").hardlink_to(files.wishes)
    batches = sorted(files.posts.iterdir())
    reports: list[RankReport] = []

    def run(given: list[Path]) -> list[float]:
        """Seconds of each micro-batch."""
        for file in given:
            (folder / "posts" / file.name).hardlink_to(file)
        query = rank_stream(
            read_stream(spark, str(folder / "posts"), MESSAGES, "parquet", maxFilesPerTrigger=1),
            read(spark, str(files.wishes), RANKED_WISHES).limit(0),
            FileSink(folder / "out"),
            folder / "checkpoint",
            window=Window(count=spec.window),
            distribution=name,
            shards=cores,
            sample=read(spark, str(files.sample), MESSAGES),
            space=plane(*files.bounds),
            trigger=ONCE,
            on_batch=reports.append,
        )
        query.awaitTermination()
        told = [progress for progress in query.recentProgress if progress["numInputRows"]]
        return [progress["durationMs"]["triggerExecution"] / 1e3 for progress in told]

    try:
        run(batches[: _FILLED - 1])
        coming = read_stream(spark, str(folder / "changes"), CHANGES, "parquet")
        run_wish_changes(coming, folder / "checkpoint", folder / "taken", trigger=ONCE).awaitTermination()
        seconds = run(batches[_FILLED - 1 :])[-spec.batches :]
    finally:
        host.stop(folder / "checkpoint" / FOLDER)
    measured = [report.batch for report in reports if report.messages == spec.batch][-spec.batches :]
    return _result(name, cores, spec, sum(seconds), sum(_n_rows(folder / "out" / f"batch={n}") for n in measured))


def _n_rows(folder: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in folder.glob("*.parquet"))


def _result(name: str, cores: int, spec: TrialSpec, seconds: float, changes: int) -> LiveResult:
    return LiveResult(name, cores, spec.batch * spec.batches / seconds, seconds / spec.batches, changes)


def embedded(spec: TrialSpec, files: Files, threads: int, planned: Path) -> list[LiveResult]:
    """With the words and weights of the plan that Spark made. Rows are read by the same rules."""
    plan, lexicon = RankPlan.load(planned / "plan"), load_lexicon(planned)
    settings = RankSettings(Window(count=spec.window), bounds=files.bounds, wish_ids="long", message_ids="long")
    reader = PostReader(settings, lexicon, plan.idf)

    def posts(file: Path) -> PostColumns:
        return reader.read(pq.read_table(file).to_batches())[0].columns

    ranker = Spread([_ranker(settings) for _ in range(threads)])
    first, *batches = sorted(files.posts.iterdir())
    for part in ranker.parts:
        part.load(posts(first))
    wishes, _ = wishes_of(pq.read_table(files.wishes).to_batches(), RANKED_WISHES, settings)
    ranker.subscribe(WishColumns.from_values([w for w in wishes.values() if w is not None], lexicon, plan.idf))
    read_s, rank_s, changes = [], [], []
    for file in batches:
        begun = time.perf_counter()
        columns = posts(file)
        ready = time.perf_counter()
        changes.append(len(ranker.arrive(columns).seq))
        read_s.append(ready - begun)
        rank_s.append(time.perf_counter() - ready)
    n = -spec.batches
    ranked, told = sum(rank_s[n:]), sum(changes[n:])
    whole = sum(read_s[n:]) + ranked
    return [_result(EMBEDDED, threads, spec, whole, told), _result(RANKING_ALONE, threads, spec, ranked, told)]


def _ranker(settings: RankSettings) -> Ranker:
    ranker = ranking.create(ranking.DEFAULT, settings.window, settings.space)
    assert isinstance(ranker, Ranker)
    return ranker
