"""`nearcast generate`: a believable world of subscriptions and messages to play with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

STANDARD = Path("-")

app = typer.Typer(help="Write generated subscriptions or messages around the world's cities.", no_args_is_help=True)

Count = Annotated[int, typer.Argument(min=0, help="How many records.", metavar="N")]
Out = Annotated[Path, typer.Option("--out", "-o", help="NDJSON, CSV or Parquet; - is NDJSON on standard output.")]
Seed = Annotated[int, typer.Option(min=0, help="Equal seeds give equal records.")]


@app.command()
def subscriptions(n: Count, out: Out = STANDARD, seed: Seed = 0) -> None:
    """Wishes near cities: an expression and a circle or a box."""
    from nearcast.files import write_records
    from nearcast.workloads import CityWorld

    place = ("lon", "lat", "radius_m", "west", "south", "east", "north")
    write_records(out, CityWorld(seed).subscriptions(n), ("id", "expression", *place))


@app.command()
def messages(n: Count, out: Out = STANDARD, seed: Seed = 0) -> None:
    """Short texts near cities, two a second."""
    from nearcast.files import write_records
    from nearcast.workloads import CityWorld

    write_records(out, CityWorld(seed).messages(n), ("id", "text", "lon", "lat", "ts"))
