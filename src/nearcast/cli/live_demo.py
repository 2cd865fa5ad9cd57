"""`nearcast demo`: a server with a few hundred thousand wishes, a live feed, and the map page to watch it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli import demo as terminal_demo
from nearcast.cli.serving import fill, free_port, say, serving

if TYPE_CHECKING:  # heavy: loaded when the demo runs
    from nearcast.client import Client

ME = "me"
TICK = 0.25  # seconds between two requests of the feed
UNATTENDED = 20.0  # seconds, where nobody would stop it


def demo(
    subscriptions: Annotated[int | None, typer.Option(min=1, help="Wishes to generate [200,000].")] = None,
    rate: Annotated[float, typer.Option(min=1, help="Messages a second.")] = 300.0,
    seconds: Annotated[float | None, typer.Option(min=1, help="End after so long [when stopped; 20 in CI].")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8080,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal worlds.")] = 1,
    terminal: Annotated[bool, typer.Option("--terminal", help="In this terminal, without a server.")] = False,
    messages: Annotated[int, typer.Option(help="With --terminal: how many to publish.", min=1)] = 5_000,
    index: Annotated[str | None, typer.Option(help="With --terminal: the index to match with.")] = None,
    picture: Annotated[Path | None, typer.Option(help="With --terminal: also save what is printed, as SVG.")] = None,
) -> None:
    """Serve a generated world with a live feed, and tell where to watch it."""
    if terminal:
        terminal_demo.demo(subscriptions or 100_000, messages, seed, index, picture)
        return
    with TemporaryDirectory(prefix="nearcast-demo-") as folder:
        store = f"sqlite:///{folder}/demo.db"
        fill(store, subscriptions or 200_000, seed)
        with serving(store, free_port(port), "--keep-gb", "1") as (address, _):
            _tell(address)
            _feed(address, rate, _length(seconds), seed)


def _length(seconds: float | None) -> float:
    """Until somebody stops it; where nobody can, for a while."""
    is_watched = sys.stdout.isatty() and not os.environ.get("CI")
    return seconds if seconds is not None else float("inf") if is_watched else UNATTENDED


def _tell(address: str) -> None:
    from nearcast.service.pages import has_map

    if has_map():
        typer.echo(f"\n  Watch it:  {address}/map/\n")
    else:
        typer.echo("\n  The map page is not built (it needs Node 20 or newer: make web); the service runs without it.")
    typer.echo(f"  API:       {address}/docs\n  A stream:  curl -N '{address}/v1/events?subscriber={ME}'")
    if shutil.which("java") or os.environ.get("JAVA_HOME"):
        typer.echo("  On Spark:  make spark-demo (the same world as tables and streams; Java is here)")
    typer.echo("")


def _feed(address: str, rate: float, seconds: float, seed: int) -> None:
    """Publish until time is over or somebody stops it; then what came of it."""
    from nearcast.client import Client
    from nearcast.errors import NearcastError

    feed = _Feed(rate, seed)
    with Client(address) as client:
        leave_wishes(client)
        try:
            feed.run(client, seconds)
        except KeyboardInterrupt:
            typer.echo("")
        mine = sum(1 for _ in client.replay(ME, after=0))
        best = client.ranking(f"{ME}/best")
    typer.echo(f"{feed.summary()}; {mine:,} of them for {ME}; the best now:")
    for place, ranked in enumerate(best, 1):
        typer.echo(f"  {place}. {ranked.score:.3f}  {ranked.feature['properties']['text']}")
    if not (feed.deliveries and mine):
        raise NearcastError("no message matched: something is wrong")


def leave_wishes(client: Client) -> None:
    """A few for the page's own subscriber, so that there is something to see at once."""
    from nearcast.geo import box, circle

    client.subscribe(ME, "coffee OR ramen OR pizza", box(-12, 35, 32, 60), id=f"{ME}/europe")
    client.subscribe(ME, "concert OR jazz OR festival", circle(139.7, 35.7, metres=600_000), id=f"{ME}/tokyo")
    client.follow(f"{ME}/moving", "free OR tonight", circle(-74, 40.7, metres=800_000), subscriber=ME)
    client.rank(ME, "free coffee tonight", (2.35, 48.86), k=5, alpha=0.6, id=f"{ME}/best")


class _Feed:
    """Messages of the generated world, as many a second as told, through the public API."""

    def __init__(self, rate: float, seed: int) -> None:
        from nearcast.workloads import CityWorld

        self._rate = rate
        self._records: Iterator[dict[str, Any]] = CityWorld(seed).messages(1 << 40, start=time.time(), per_second=rate)
        self.published = self.deliveries = 0
        self._seconds = 0.0

    def run(self, client: Client, seconds: float) -> None:
        started = time.monotonic()
        shown = 0.0
        while (now := time.monotonic() - started) < seconds:
            due = int(now * self._rate) - self.published
            if due > 0:
                told = client.publish(list(islice(self._records, due)))
                self.published += told.accepted
                self.deliveries += told.deliveries or 0
            self._seconds = time.monotonic() - started
            if now - shown >= 1.0:
                shown = now
                say(self.summary(), end="\r")
            time.sleep(max(0.0, TICK - (time.monotonic() - started - now)))

    def summary(self) -> str:
        each = self.published / max(self._seconds, 1e-9)
        return f"{self.published:,} messages ({each:,.0f} a second), {self.deliveries:,} deliveries"
