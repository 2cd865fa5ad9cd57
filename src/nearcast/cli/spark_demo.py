"""`nearcast spark demo`: generated cities, end to end: statistics, plans, matches."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

DEMO_SUBSCRIPTIONS, DEMO_MESSAGES = 20_000, 50_000


def demo(
    subscriptions: Annotated[int, typer.Option(min=1, help="How many to generate.")] = DEMO_SUBSCRIPTIONS,
    messages: Annotated[int, typer.Option(min=1, help="How many to generate.")] = DEMO_MESSAGES,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal records.")] = 0,
) -> None:
    """Generate a world, look at its words, compare the layouts, match, and show who gets the most."""
    from nearcast.cli.generate import messages as write_messages
    from nearcast.cli.generate import subscriptions as write_subscriptions
    from nearcast.cli.spark import started_session

    with TemporaryDirectory(prefix="nearcast-demo-") as folder:
        wishes, posts = Path(folder) / "wishes.parquet", Path(folder) / "posts.parquet"
        typer.echo(f"generating {subscriptions:,} subscriptions and {messages:,} messages …", err=True)
        write_subscriptions(subscriptions, wishes, seed)
        write_messages(messages, posts, seed)
        _show(started_session(master), str(wishes), str(posts), Path(folder))


def _show(spark: object, wishes: str, posts: str, folder: Path) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812

    from nearcast.files import MESSAGES, SUBSCRIPTIONS
    from nearcast.spark import build, match, read, steps
    from nearcast.spark.progress import progress

    assert isinstance(spark, SparkSession)
    wanted, posted = read(spark, wishes, SUBSCRIPTIONS), read(spark, posts, MESSAGES)
    with progress(spark, "statistics"):
        words = steps.with_words(steps.cleaned(posted))
        frequent = steps.frequencies(words).orderBy(F.desc("frequency"), "word").limit(5).collect()
    typer.echo("most frequent: " + ", ".join(f"{row['word']} {row['frequency']:,}" for row in frequent))
    with progress(spark, "plan"):
        compared = build(wanted, folder / "compared", shards=4, messages=posted, replicate_up_to=0)
        chosen = build(wanted, folder / "chosen", messages=posted)
    typer.echo(f"\nIf the subscriptions did not fit on a machine:\n{compared.report}\n\nThey do:\n{chosen.report}\n")
    with progress(spark, "match"):
        pairs = match(posted, chosen).cache()
        n = pairs.count()
        best = pairs.groupBy("subscription_id").count().orderBy(F.desc("count"), "subscription_id").limit(5).collect()
    typer.echo(f"{n:,} pairs; the most go to " + ", ".join(f"{row[0]} ({row[1]:,})" for row in best))
    again = match(posted, compared).exceptAll(pairs).count()
    typer.echo(f"the sharded layout finds the same: {'yes' if not again else f'no, {again:,} others'}")
