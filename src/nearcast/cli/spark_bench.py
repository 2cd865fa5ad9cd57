"""`nearcast spark bench`: what a message costs on Spark, in one process, and in joins in SQL."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer


def bench(
    subscriptions: Annotated[str, typer.Option(help="How many to generate; several with commas.")] = "100000",
    messages: Annotated[int, typer.Option(min=10, help="How many to generate.")] = 100_000,
    rounds: Annotated[int, typer.Option(min=1, help="The median of so many counts.")] = 3,
    warm: Annotated[int, typer.Option(min=0, help="Rounds before, untimed: Java compiles what runs often.")] = 3,
    limit: Annotated[float, typer.Option(min=0, help="Seconds after which a contestant is stopped.")] = 120.0,
    joins: Annotated[bool, typer.Option(help="Also joins in SQL; with millions Java's memory may not do.")] = True,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[1]",
    folder: Annotated[Path | None, typer.Option(help="Where worlds are kept for the next time.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the figures, to make a page of.")] = None,
    only_make: Annotated[
        bool, typer.Option("--only-make", help="Make the worlds in the folder, measure nothing.")
    ] = False,
) -> None:
    """Compare `match` on Spark with the embedded engine and joins in SQL; answers are compared first."""
    from nearcast.cli.spark import spark_package

    spark_package()
    from nearcast.spark.bench.report import saved, session_of
    from nearcast.spark.bench.run import Effort, measure
    from nearcast.spark.bench.world import world

    with TemporaryDirectory(prefix="nearcast-bench-") as temporary:
        place = folder or Path(temporary)
        worlds = [world(place, n, messages) for n in sorted(map(int, subscriptions.split(",")))]
        if only_make:
            return
        keep = (lambda report: saved(report, out)) if out is not None else (lambda _: None)
        effort = Effort(rounds, warm, limit, joins)
        report = measure(master, worlds, effort, work=Path(temporary), tell=keep)
    typer.echo(session_of(report))


def bench_page(
    figures: Annotated[list[Path], typer.Argument(help="Files that `bench --out` wrote, fewest cores first.")],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("docs/results/spark.md"),
) -> None:
    """Make the page of results."""
    from nearcast.spark.bench.report import page

    out.write_text(page(figures))
