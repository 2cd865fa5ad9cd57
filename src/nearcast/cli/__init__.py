"""The `nearcast` command: one file per verb group. Verbs import what they need when they run."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from nearcast.cli import bench, bench_service, generate, index, live_demo, match, move, rank, remote, serve, spark
from nearcast.errors import NearcastError

app = typer.Typer(
    name="nearcast",
    help="Location-aware publish/subscribe: who wants which message, by words and place.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("match")(match.match)
app.command("rank")(rank.rank)
app.command("move")(move.move)
app.command("demo")(live_demo.demo)
app.command("serve")(serve.serve)
for verb in (remote.subscribe, remote.publish, remote.tail, remote.replay, remote.explain):
    app.command(verb.__name__)(verb)
app.add_typer(serve.keys, name="key")
app.add_typer(generate.app, name="generate")
app.add_typer(index.app, name="index")
bench.app.command("service")(bench_service.service)
app.add_typer(bench.app, name="bench")
app.add_typer(spark.app, name="spark")


def main() -> None:
    """Errors that nearcast raises on purpose are one line on standard error and exit code 2."""
    try:
        app()
    except NearcastError as error:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
