"""`nearcast spark stream`: messages from a folder or Kafka as they come, against subscriptions that may change."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.errors import NearcastError

if TYPE_CHECKING:  # heavy: loaded when the command runs
    from pyspark.sql import DataFrame, SparkSession

    from nearcast.spark import BatchReport, Versions

KAFKA = "kafka://"


def stream(
    subscriptions: Annotated[
        str, typer.Option("--subscriptions", "-s", help="File or folder to start from; not read again on a restart.")
    ],
    messages: Annotated[
        str, typer.Option("--messages", "-m", help="Folder of NDJSON files, or kafka://HOST:PORT/TOPIC.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for pairs, batch by batch.")],
    changes: Annotated[
        str | None, typer.Option(help="Folder or topic of changes: operation (put, remove), id, …")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(help="Folder for versions and checkpoints; keep it to go on later.", show_default="OUT.work"),
    ] = None,
    late_after: Annotated[
        float | None, typer.Option(min=0, help="Seconds behind the latest time after which a message is late.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Take what is there, then stop.")] = False,
    every: Annotated[str, typer.Option(help="Time between batches.")] = "1 second",
    master: Annotated[str, typer.Option(help="Where Spark runs; the second number is tries of a task.")] = "local[*,4]",
    analyzer: Annotated[str, typer.Option(help="How text becomes words.")] = "unicode",
) -> None:
    """Match messages as they come. Started again with the same folders, it goes on where it stopped."""
    from nearcast.cli.spark import started_session

    spark = started_session(master, kafka=needs_kafka(messages, changes))
    from nearcast.files import MESSAGES
    from nearcast.spark import ONCE, FileSink, run_changes, run_stream
    from nearcast.spark.versions import CHANGES

    folder = work or out.with_name(f"{out.name}.work")
    trigger: dict[str, Any] = ONCE if once else {"processingTime": every}
    versions = _versions(spark, subscriptions, folder, analyzer)
    if changes is not None:
        following = run_changes(source(spark, changes, CHANGES), versions, folder / "changes", trigger=trigger)
        if once:
            following.awaitTermination()
    posted = source(spark, messages, MESSAGES)
    query = run_stream(
        posted, versions, FileSink(out), folder / "messages", late_after=late_after, trigger=trigger, on_batch=_say
    )
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()


def _versions(spark: SparkSession, subscriptions: str, folder: Path, analyzer: str) -> Versions:
    """Those of an earlier run, else a first one."""
    from nearcast.errors import SnapshotError
    from nearcast.files import SUBSCRIPTIONS
    from nearcast.spark import Versions, build, read

    versions = Versions(folder / "versions")
    try:
        versions.current()
    except SnapshotError:
        wishes = read(spark, subscriptions, SUBSCRIPTIONS)
        made = build(wishes, versions.storage, layout="replicated", analyzer=analyzer, counts_events=False)
        typer.echo(f"{made.manifest.subscriptions:,} subscriptions, {made.manifest.rejected:,} rejected", err=True)
        versions.publish(made.folder)
    return versions


def needs_kafka(*places: str | None) -> bool:
    return any((place or "").startswith(KAFKA) for place in places)


def topic_of(place: str) -> tuple[str, str]:
    """Servers and topic of kafka://HOST:PORT/TOPIC."""
    servers, _, topic = place.removeprefix(KAFKA).partition("/")
    if not (servers and topic):
        raise NearcastError(f"{place}: kafka://HOST:PORT/TOPIC needed")
    return servers, topic


def source(spark: SparkSession, place: str, role: Any, kind: str | None = "json") -> DataFrame:
    """A topic, or the files of a folder; without a kind their endings say what they are."""
    from nearcast.spark import read_kafka, read_stream

    if not needs_kafka(place):
        return read_stream(spark, place, role, kind)
    return read_kafka(spark, *topic_of(place))


def _say(report: BatchReport) -> None:
    clock = time.strftime("%H:%M:%S")
    typer.echo(
        f"{clock} batch {report.batch}: {report.messages:,} messages, {report.pairs:,} pairs, "
        f"{report.rejected:,} rejected, {report.late:,} late, version {report.version}",
        err=True,
    )
