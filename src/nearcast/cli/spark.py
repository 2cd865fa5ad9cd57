"""`nearcast spark`: the same matching on Spark, for tables that outgrow one process."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli import spark_bench, spark_demo, spark_rank, spark_stream
from nearcast.cli.match import SOME_REJECTED
from nearcast.errors import NearcastError

if TYPE_CHECKING:  # heavy: loaded when a command runs
    from pyspark.sql import DataFrame, SparkSession

    from nearcast.spark import Built, MessageFiles

WORKERS, SPARK = "workers", "spark"

app = typer.Typer(help="Match, plan and look at tables on Spark.", no_args_is_help=True)

Subscriptions = Annotated[
    str, typer.Option("--subscriptions", "-s", help="File or folder: Parquet, CSV or NDJSON, by its ending.")
]
Messages = Annotated[str, typer.Option("--messages", "-m", help="The same.")]
Master = Annotated[str, typer.Option(help="Where Spark runs, e.g. local[4] or spark://host:7077.")]
Layout = Annotated[str, typer.Option(help="auto, replicated, hash, location, keyword, prefix, spatial-first, …")]
Shards = Annotated[int | None, typer.Option(min=1, help="Of sharded layouts.", show_default="tasks at a time")]
Storage = Annotated[
    Path | None, typer.Option(help="Folder that driver and workers share.", show_default="temporary, on one machine")
]
Readers = Annotated[
    str, typer.Option(help="Who reads the messages: workers (of Parquet files, unless rows must be routed) or spark.")
]
AnalyzerName = Annotated[str, typer.Option(help="How text becomes words: unicode, or a language such as english.")]
FITTING = 4096

app.command("demo")(spark_demo.demo)
app.command("bench")(spark_bench.bench)
app.command("bench-page")(spark_bench.bench_page)
app.command("stream")(spark_stream.stream)
app.command("rank")(spark_rank.rank)
app.command("rank-bench")(spark_rank.rank_bench)


@app.command()
def match(
    subscriptions: Subscriptions,
    messages: Messages,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pairs.")],
    master: Master = "local[*]",
    layout: Layout = "auto",
    shards: Shards = None,
    storage: Storage = None,
    analyzer: AnalyzerName = "unicode",
    readers: Readers = WORKERS,
    out_format: Annotated[str, typer.Option("--format", help="parquet, csv or json.")] = "parquet",
) -> None:
    """Find which message goes to which subscription.

    OUT gets message_id and subscription_id; rows that cannot be used go, with the reason, to OUT.rejected.
    Exit code: 0 all rows served, 3 some rejected, 2 nothing done.
    """
    side = out.with_name(f"{out.name}.rejected")
    for folder in (out, side):
        if folder.exists():
            raise NearcastError(f"{folder}: is there already; a new folder needed")
    spark = started_session(master)
    from nearcast.spark import outcome, pairs_of, rejected_of
    from nearcast.spark.match import count_of
    from nearcast.spark.progress import progress

    started = time.perf_counter()
    posted = _posted(spark, messages, readers)
    made = _built(spark, subscriptions, posted, layout, shards, storage, analyzer)
    typer.echo(str(made.report), err=True)
    typer.echo(_told(posted, made), err=True)
    with progress(spark, "match"):
        found = outcome(posted, made).persist(_on_disk())
        pairs_of(found).write.format(out_format).options(header=True).save(str(out))
        bad = rejected_of(found).unionByName(made.rejected(spark))
        n_bad = rejected_of(found).count() + made.manifest.rejected
        n_pairs = found.agg(count_of()).collect()[0][0]
        if n_bad:
            bad.write.json(str(side))
    typer.echo(f"pairs: {n_pairs:,} in {time.perf_counter() - started:.1f} s", err=True)
    if n_bad:
        typer.echo(f"{n_bad:,} rejected, see {side}", err=True)
        raise typer.Exit(SOME_REJECTED)


@app.command()
def plan(
    subscriptions: Subscriptions,
    messages: Messages,
    master: Master = "local[*]",
    layout: Layout = "auto",
    shards: Shards = None,
    storage: Storage = None,
    analyzer: AnalyzerName = "unicode",
    machine_mb: Annotated[
        int, typer.Option(min=0, help="Size of an index that every machine can hold; 0 compares sharded layouts.")
    ] = FITTING,
) -> None:
    """Build the shards, and say what each layout would cost and why one was chosen."""
    spark = started_session(master)
    posted = _read(spark, messages, "messages")
    made = _built(spark, subscriptions, posted, layout, shards, storage, analyzer, replicate_up_to=machine_mb << 20)
    typer.echo(str(made.report))
    if storage is None:
        shutil.rmtree(made.folder, ignore_errors=True)
    else:
        typer.echo(f"built in {made.folder}")


@app.command()
def stats(
    messages: Messages,
    master: Master = "local[*]",
    analyzer: AnalyzerName = "unicode",
    top: Annotated[int, typer.Option(min=1, help="Words and pairs to show.")] = 10,
) -> None:
    """Rows, rejected rows with reasons, the most frequent words, where they are, and which come together."""
    spark = started_session(master)
    from pyspark.sql import functions as F  # noqa: N812

    from nearcast.spark import steps
    from nearcast.spark.progress import progress

    with progress(spark, "stats"):
        rows = steps.cleaned(_read(spark, messages, "messages"), analyzer=analyzer).persist(_on_disk())
        words = steps.with_words(rows)
        counted = [
            ("frequency", steps.frequencies(words)),
            ("in one cell", steps.cell_frequencies(words)),
            ("together", steps.heavy_pairs(words)),
            ("rejected", steps.rejected(rows).groupBy("reason").agg(F.count("*").alias("frequency"))),
        ]
        n, bad = words.count(), steps.rejected(rows).count()
        shown = [(name, _top(frame, top)) for name, frame in counted]
    typer.echo(f"messages: {n:,}, rejected: {bad:,}")
    for name, lines in shown:
        for line in lines:
            typer.echo(f"{name:<12} {line}")


def _top(frame: DataFrame, n: int) -> list[str]:
    names = [name for name in frame.columns if name != "frequency"]
    rows = frame.orderBy(frame["frequency"].desc(), *names).limit(n).collect()
    return [f"{row['frequency']:>9,}  {' '.join(str(row[name]) for name in names)}" for row in rows]


def started_session(master: str, *, kafka: bool = False) -> SparkSession:
    package = spark_package()
    typer.echo("starting Spark …", err=True)
    spark: SparkSession = package.session(master, settings=package.kafka_settings() if kafka else {})
    return spark


def spark_package() -> Any:
    """`nearcast.spark`, or an error that says how to have it."""
    try:
        import nearcast.spark
    except ImportError as error:
        raise NearcastError(f"Spark is not installed ({error}); `pip install 'nearcast[spark]'` does it") from None
    return nearcast.spark


def _read(spark: SparkSession, path: str, role: str) -> DataFrame:
    from nearcast.files import MESSAGES, SUBSCRIPTIONS
    from nearcast.spark import read

    return read(spark, path, MESSAGES if role == "messages" else SUBSCRIPTIONS)


def _posted(spark: SparkSession, path: str, readers: str) -> DataFrame | MessageFiles:
    """Files that workers read, where they can and may; else a table."""
    from nearcast.spark import files
    from nearcast.spark.read import kind_of

    if readers not in (WORKERS, SPARK):
        raise NearcastError(f"readers {readers!r} given; {WORKERS} or {SPARK} needed")
    return files(path) if readers == WORKERS and kind_of(path) == "parquet" else _read(spark, path, "messages")


def _told(posted: DataFrame | MessageFiles, made: Built) -> str:
    from nearcast.spark import MessageFiles
    from nearcast.spark.match import workers_read

    if not isinstance(posted, MessageFiles):
        return "messages: read by Spark"
    layout = made.report.chosen.layout
    who = "the workers" if workers_read(posted, made) else f"Spark, for {layout} sends rows to shards"
    return f"{posted}, read by {who}"


def _built(
    spark: SparkSession,
    subscriptions: str,
    posted: DataFrame | MessageFiles,
    layout: str,
    shards: int | None,
    storage: Path | None,
    analyzer: str,
    **options: Any,
) -> Built:
    from nearcast.spark import build
    from nearcast.spark.progress import progress

    wishes = _read(spark, subscriptions, "subscriptions")
    with progress(spark, "build"):
        return build(wishes, storage, layout=layout, shards=shards, messages=posted, analyzer=analyzer, **options)


def _on_disk() -> Any:
    from pyspark import StorageLevel

    return StorageLevel.DISK_ONLY
