"""`nearcast spark rank` and `rank-bench`: rankings over a stream of files or Kafka, and what distributions cost."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from nearcast.errors import NearcastError

if TYPE_CHECKING:  # heavy: loaded when a command runs
    from nearcast.spark import RankReport, Sink
    from nearcast.spark.bench.ranks import LiveResult
    from nearcast.spark.bench.trial import TrialResult

Checkpoint = Annotated[Path, typer.Option(help="Folder for progress and truth, the same at every start.")]


def rank(
    wishes: Annotated[str, typer.Option("--wishes", "-w", help="Rows of id, text, lon, lat, k, alpha.")],
    messages: Annotated[
        str, typer.Option("--messages", "-m", help="Folder whose files are the stream, or kafka://HOST:PORT/TOPIC.")
    ],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for the changes, or kafka://HOST:PORT/TOPIC.")],
    checkpoint: Checkpoint,
    count: Annotated[int | None, typer.Option(help="The window is the last so many messages.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Or: the window is so many seconds of ts.")] = None,
    distribution: Annotated[
        str, typer.Option(help="hash, location, keyword, prefix, spatial-first or keyword-first.")
    ] = "hash",
    shards: Annotated[int | None, typer.Option(min=1, help="Of the wishes.", show_default="tasks at a time")] = None,
    sample: Annotated[str | None, typer.Option(help="Messages that words are weighed and cuts are made by.")] = None,
    changes: Annotated[
        str | None, typer.Option(help="Folder or topic of changes of wishes (operation put or remove).")
    ] = None,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    once: Annotated[bool, typer.Option(help="End when everything that is there is done.")] = False,
) -> None:
    """Keep the k best recent messages of every wish on Spark; write who enters and who leaves.

    OUT gets folders of Parquet, one a batch, each change once: wish_id, edition, seq, operation, message_id, score,
    because_of; a topic gets them as JSON, with the wish as key, and rejected rows go to TOPIC.rejected. Without
    --count and --seconds the window is the last 10,000 messages.
    """
    from nearcast.cli.spark import started_session
    from nearcast.cli.spark_stream import needs_kafka, source
    from nearcast.files import MESSAGES, RANKED_WISHES
    from nearcast.ranking import Window

    window = Window(10_000) if count is None and seconds is None else Window(count, seconds)
    spark = started_session(master, kafka=needs_kafka(messages, changes, out))
    from nearcast.spark import ONCE, rank_stream, read, run_wish_changes

    trigger: Any = ONCE if once else {"processingTime": "1 second"}
    if changes is not None:
        coming = source(spark, changes, RANKED_WISHES, None)
        told = run_wish_changes(coming, checkpoint, checkpoint / "changes", trigger=trigger)
        if once:
            told.awaitTermination()
    query = rank_stream(
        source(spark, messages, MESSAGES, None),
        read(spark, wishes, RANKED_WISHES),
        _sink(out),
        checkpoint,
        window=window,
        distribution=distribution,
        shards=shards,
        sample=read(spark, sample, MESSAGES) if sample else None,
        trigger=trigger,
        on_batch=_say,
    )
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()


def _sink(out: str) -> Sink:
    from nearcast.cli.spark_stream import needs_kafka, topic_of
    from nearcast.spark import BY_WISH, FileSink, KafkaSink

    if not needs_kafka(out):
        return FileSink(Path(out))
    servers, topic = topic_of(out)
    return KafkaSink(servers, topic, f"{topic}.rejected", BY_WISH)


def _say(report: RankReport) -> None:
    dropped = f", {report.late:,} late" * bool(report.late) + f", {report.rejected:,} rejected" * bool(report.rejected)
    typer.echo(
        f"batch {report.batch}: {report.messages:,} messages{dropped}, {report.wishes:,} wishes in"
        f" {report.replication:.2f} copies, {report.sent:.2f} shards a message, {report.seconds:.1f} s",
        err=True,
    )


def rank_bench(
    wishes: Annotated[int, typer.Option(min=1)] = 20_000,
    window: Annotated[int, typer.Option(min=1, help="Messages, of simulated shards.")] = 20_000,
    data: Annotated[str, typer.Option(help="tweets, gn, yelp, …")] = "tweets",
    batch: Annotated[int, typer.Option(min=1, help="Messages at a time, of simulated shards.")] = 1_000,
    shards: Annotated[str, typer.Option(help="Numbers of simulated shards, by commas; none: leave them out.")] = (
        "4,8,16,32"
    ),
    distributions: Annotated[str, typer.Option(help="By commas.")] = "hash,location,keyword,prefix",
    keywords: Annotated[str, typer.Option(help="Fewest and most of a wish.")] = "1,5",
    cores: Annotated[str, typer.Option(help="Of real Sparks, by commas; none: leave them out.")] = "1,2",
    live: Annotated[str, typer.Option(help="Distributions on a real Spark, by commas.")] = "hash",
    live_window: Annotated[int, typer.Option(min=1, help="Messages, on a real Spark.")] = 100_000,
    live_batch: Annotated[int, typer.Option(min=1, help="Messages of a micro-batch.")] = 10_000,
    live_batches: Annotated[int, typer.Option(min=1, help="Micro-batches that are measured.")] = 4,
    live_warm: Annotated[int, typer.Option(min=0, help="Micro-batches before them: Java gets faster.")] = 4,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures there.")] = None,
) -> None:
    """Compare distributions over simulated shards (copies, messages sent, balance, refills), and a real Spark with
    the embedded ranker on the same cores."""
    try:
        from nearcast.spark.bench.ranks import measure
        from nearcast.spark.bench.trial import TrialSpec, compare
    except ImportError as error:
        raise NearcastError(f"Spark is not installed ({error}); `pip install 'nearcast[spark]'` does it") from None
    low, high = (int(n) for n in keywords.split(","))

    def tell(what: str) -> None:
        typer.echo(f"{what} …", err=True)

    simulated = TrialSpec(data, wishes, window, batch, keywords=(low, high))
    cases = [(name, int(n)) for n in _parts(shards) for name in _parts(distributions)]
    results = compare(simulated, cases, tell) if cases else []
    if results:
        Console().print(_table(results))
    real = TrialSpec(data, wishes, live_window, live_batch, live_batches, live_warm, keywords=(low, high))
    lives: list[LiveResult] = []
    if _parts(cores):
        with TemporaryDirectory(prefix="nearcast-rank-bench-") as work:
            lives = list(measure(real, [int(n) for n in _parts(cores)], _parts(live), Path(work), tell))
        Console().print(_live_table(lives))
    if json_file is not None:
        values = {"format": "nearcast-rank-shards", "spec": asdict(simulated), "results": [asdict(r) for r in results]}
        values |= {"live_spec": asdict(real), "live": [asdict(r) for r in lives]}
        json_file.write_text(json.dumps(values, indent=1) + "\n")


def _parts(given: str) -> list[str]:
    return [part for part in given.split(",") if part]


def _live_table(results: list[LiveResult]) -> Table:
    table = Table()
    for name in ("ranker", "cores", "messages/s", "s a batch", "changes"):
        table.add_column(name, justify="left" if name == "ranker" else "right")
    for r in results:
        table.add_row(r.name, str(r.cores), f"{r.per_s:,.0f}", f"{r.seconds:.2f}", f"{r.changes:,}")
    return table


def _table(results: list[TrialResult]) -> Table:
    table = Table()
    for name in ("distribution", "shards", "copies", "sent", "candidates", "balance", "refills", "µs", "µs parallel"):
        table.add_column(name, justify="left" if name == "distribution" else "right")
    for r in results:
        figures = [r.replication, r.sent, r.candidates, r.balance, r.refills, r.us, r.us_parallel]
        table.add_row(r.distribution, str(r.shards), *(f"{figure:.2f}" for figure in figures))
    return table
