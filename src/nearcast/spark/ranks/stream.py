"""`rank_stream`: the k best recent messages of every wish, kept by Structured Streaming (Skype section 7).

A batch is decided on the driver (its order, its numbers, which wishes come and go), sifted by shards, settled by
owners. All of that is tied to Spark's checkpoint by the batch's number: done again, it gives the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nearcast import snapshot
from nearcast.errors import NearcastError
from nearcast.files import MESSAGES, RANKED_WISHES
from nearcast.geo import Space, earth
from nearcast.idf import Idf
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Wish
from nearcast.ranking import PostColumns, Window, WishColumns
from nearcast.spark.build import id_kind, parallelism
from nearcast.spark.edge import Refused
from nearcast.spark.ranks.intake import Inbox, read_wishes
from nearcast.spark.ranks.plan import RankPlan, RankSettings, made
from nearcast.spark.ranks.posts import PostReader
from nearcast.spark.ranks.sequencer import Sequencer
from nearcast.spark.ranks.tasks import settled, write_settled
from nearcast.spark.ranks.truth import BASE_EVERY, Truth
from nearcast.spark.read import columns_of
from nearcast.spark.sinks import PartSink, Sink
from nearcast.spark.storage import REJECTED, bounds_of, load_lexicon, save_lexicon

FOLDER = "rankings"


@dataclass(frozen=True, slots=True)
class RankReport:
    """What became of a batch."""

    batch: int
    messages: int
    late: int
    rejected: int
    wishes: int
    looked_at: list[int]  # messages, by shard: their mean over `messages` is what a message is sent to
    sifted: list[int]  # wishes that sieves hold, by shard
    refills: int
    rebuilt: int
    seconds: float

    @property
    def replication(self) -> float:
        """How often a wish is held by a shard that looks at messages for it."""
        return sum(self.sifted) / self.wishes if self.wishes and any(self.sifted) else 1.0

    @property
    def sent(self) -> float:
        """Shards that a message is sent to."""
        return sum(self.looked_at) / self.messages if self.messages else 0.0


def rank_stream(
    messages: DataFrame,
    wishes: DataFrame,
    sink: Sink,
    checkpoint: str | Path,
    *,
    window: Window,
    distribution: str = "hash",
    shards: int | None = None,
    sample: DataFrame | None = None,
    space: Space = earth,
    analyzer: str = "unicode",
    trigger: Mapping[str, Any] | None = None,
    on_batch: Callable[[RankReport], None] | None = None,
) -> StreamingQuery:
    """Start a query that keeps a ranking for every wish and writes who enters and who leaves.

    `wishes` (id, text, lon, lat, k, alpha) are read once; changes come through `run_wish_changes`. Words weigh by
    how rare they are in `sample`, a table of messages from which the cuts are made, too; without one all words
    weigh the same. The sink gets wish_id, edition (of the wish), seq (1, 2, … of an edition), operation (enter
    or leave), message_id, score, because_of (the message that brought it; none for what a new wish finds). Everything
    is kept under `checkpoint`, which all machines must reach under this path.
    """
    if not messages.isStreaming:
        raise NearcastError("a table of messages given; a stream needed (spark.readStream, read_stream, read_kafka)")
    folder = Path(str(checkpoint).removeprefix("file:")).absolute()
    settings = RankSettings(
        window,
        distribution,
        shards or parallelism(messages.sparkSession),
        bounds_of(space),
        analyzer,
        id_kind(wishes),
        id_kind(messages),
    )
    _check_begun(folder / FOLDER, settings)
    driver = _Driver(folder / FOLDER, settings, wishes, sample, sink, on_batch)
    writer = messages.writeStream.foreachBatch(driver.run).option("checkpointLocation", str(folder))
    return (writer.trigger(**trigger) if trigger else writer).start()


def run_wish_changes(
    changes: DataFrame,
    checkpoint_of_rankings: str | Path,
    checkpoint: str | Path,
    *,
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a query that hands changes of wishes (operation put or remove, and the columns of a wish) to the
    rankings that keep their truth under `checkpoint_of_rankings`; their next batch takes them up."""
    inbox = Inbox(Path(str(checkpoint_of_rankings).removeprefix("file:")).absolute() / FOLDER)
    folder = Path(str(checkpoint).removeprefix("file:")).absolute()

    def put(rows: DataFrame, batch: int) -> None:
        inbox.put(rows, f"{folder.name}-{batch:08d}")

    writer = changes.writeStream.foreachBatch(put).option("checkpointLocation", str(folder))
    return (writer.trigger(**trigger) if trigger else writer).start()


@dataclass(slots=True)
class _Driver:
    """Takes batch after batch through decide, sift, settle, write."""

    folder: Path
    settings: RankSettings
    wishes: DataFrame
    sample: DataFrame | None
    sink: Sink
    on_batch: Callable[[RankReport], None] | None
    _sequencer: Sequencer | None = field(default=None, init=False)
    _reader: PostReader | None = field(default=None, init=False)

    def run(self, rows: DataFrame, batch: int) -> None:
        begun = time.perf_counter()
        truth = Truth(self.folder)
        if truth.outcome(batch) is not None:  # Spark's commit was lost, ours was not
            return
        bad, late = self._decided(truth, rows, batch)
        spark = rows.sparkSession
        self._hand_over(spark, bad, batch)
        report = _report(truth, self.settings, batch, late, len(bad), time.perf_counter() - begun)
        truth.finish(batch, asdict(report))
        truth.forget_intake(batch)
        _clean(truth, batch)
        if self.on_batch is not None:
            self.on_batch(report)

    def _hand_over(self, spark: SparkSession, bad: list[Refused], batch: int) -> None:
        sink = self.sink
        if isinstance(sink, PartSink) and (parts := sink.parts(batch)) is not None:
            write_settled(spark, self.folder, self.settings, batch, parts)
            sink.close(_rejected(spark, bad) if bad else None, batch)
        else:
            sink.write(settled(spark, self.folder, self.settings, batch), _rejected(spark, bad), batch)

    def _decided(self, truth: Truth, rows: DataFrame, batch: int) -> tuple[list[Refused], int]:
        """Rows that were rejected, and how many messages were late: as the first try has written it down."""
        first, refused = self._prepare(truth)
        assert self._sequencer is not None
        assert self._reader is not None
        if not self._sequencer.is_decided(batch):
            posts, bad = self._reader.read(columns_of(rows, MESSAGES, "messages").toArrow().to_batches())
            names, coming, wrong = Inbox(self.folder).waiting(self.settings, self._sequencer.taken)
            self._sequencer.decide(batch, first | coming, posts, names, bad + refused + wrong)
        told = truth.intake(batch)
        return [Refused(*row) for row in told["rejected"]], told["late"]

    def _prepare(self, truth: Truth) -> tuple[dict[Id, Wish | None], list[Refused]]:
        """Plan and numbers, made or found again; the wishes of the table at the very first batch."""
        if self._sequencer is not None:
            return {}, []
        first: dict[Id, Wish | None] = {}
        bad: list[Refused] = []
        if not (self.folder / "plan").exists() or not truth.numbers("segments"):
            first, bad = read_wishes(columns_of(self.wishes, RANKED_WISHES, "wishes"), self.settings)
        if not (self.folder / "plan").exists():
            _make_plan(self.folder, self.settings, [w for w in first.values() if w is not None], self.sample)
        plan = RankPlan.load(self.folder / "plan")
        words = load_lexicon(self.folder).to_arrow()["word"].to_pylist()
        self._sequencer = Sequencer(truth, plan, words)
        self._reader = PostReader(self.settings, self._sequencer.lexicon, plan.idf)
        return first, bad


def _check_begun(folder: Path, settings: RankSettings) -> None:
    if (folder / "plan").exists() and (begun := RankPlan.load(folder / "plan").settings) != settings:
        raise NearcastError(f"{folder} was begun with {begun}; {settings} given")


def _make_plan(folder: Path, settings: RankSettings, wishes: list[Wish], sample: DataFrame | None) -> None:
    lexicon, idf = Lexicon(settings.analyzer), Idf()
    posts: PostColumns | None = None
    if sample is not None:
        rows = columns_of(sample, MESSAGES, "sample").toArrow().to_batches()
        counted = PostReader(settings, lexicon, idf).read(rows)[0].columns
        lexicon.count(counted.terms, len(counted))
        idf = Idf(lexicon.idf(), float(np.log1p(max(1, lexicon.messages))))
        posts = PostReader(settings, lexicon, idf).read(rows)[0].columns
    columns = WishColumns.from_values(wishes, lexicon, idf)
    posts = posts if posts is not None and len(posts) else _as_posts(columns)
    folder.mkdir(parents=True, exist_ok=True)
    save_lexicon(folder, lexicon)
    made(settings, columns, posts, idf).save(folder / "plan")


def _as_posts(wishes: WishColumns) -> PostColumns:
    """Without a sample: as if messages were like wishes."""
    boxes = np.concatenate([wishes.points, wishes.points], axis=1)
    return PostColumns(boxes, np.full(len(wishes), np.nan), wishes.term_from, wishes.terms, wishes.weights)


def _rejected(spark: SparkSession, bad: list[Refused]) -> DataFrame:
    """A table of Arrow, so that it takes no job to see whether there are any."""
    return spark.createDataFrame(pa.Table.from_pylist([row._asdict() for row in bad], REJECTED))


def _report(truth: Truth, settings: RankSettings, batch: int, late: int, rejected: int, seconds: float) -> RankReport:
    segment = snapshot.meta_of(truth.segment(batch))
    messages = segment["last"] - segment["first"]
    told = [truth.told(batch, shard) or {} for shard in range(settings.shards)]
    return RankReport(
        batch,
        messages,
        late,
        rejected,
        sum(each["live"] for each in told),
        [each["looked_at"] for each in told] if settings.is_sifted else [messages] * settings.shards,
        [each["sifted"] for each in told],
        sum(each["refills"] for each in told),
        sum(each["rebuilt"] for each in told),
        seconds,
    )


def _clean(truth: Truth, batch: int) -> None:
    """What no repetition can need any more."""
    if batch % BASE_EVERY == 0:
        truth.forget("states", batch)
    oldest = (truth.told(batch, 0) or {})["oldest"]
    kept = (n for n in truth.numbers("segments") if n == batch or snapshot.meta_of(truth.segment(n))["last"] > oldest)
    truth.forget("segments", next(kept))
