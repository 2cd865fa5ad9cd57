"""Verbs that talk to a server: subscribe, publish, tail, replay, explain."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # heavy: loaded when a command runs
    from nearcast.client import Client, Event
    from nearcast.geo import Region

Server = Annotated[str, typer.Option(envvar="NEARCAST_SERVER", help="Address of the server.")]
Key = Annotated[str | None, typer.Option(envvar="NEARCAST_KEY", help="API key.")]
Lon = Annotated[float, typer.Option(help="Longitude in degrees.")]
Lat = Annotated[float, typer.Option(help="Latitude in degrees.")]
HERE = "http://127.0.0.1:8080"
LINES = 10_000
"""Messages in one request."""


def subscribe(
    subscriber: Annotated[str, typer.Argument(help="Who receives.")],
    expression: Annotated[str, typer.Argument(help="For example: 'ramen AND (tonkotsu OR miso) NOT instant'.")],
    region: Annotated[str | None, typer.Option(help="GeoJSON or WKT.")] = None,
    circle: Annotated[tuple[float, float, float] | None, typer.Option(help="Longitude, latitude, metres.")] = None,
    box: Annotated[tuple[float, float, float, float] | None, typer.Option(help="West, south, east, north.")] = None,
    id: Annotated[str | None, typer.Option(help="Exchanges the subscription with this id.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Only tell what it would have matched in the log.")] = False,
    server: Server = HERE,
    key: Key = None,
) -> None:
    """Leave a standing wish; prints its id."""
    within = _region(region, circle, box)
    with _client(server, key) as client:
        if dry_run:
            run = client.dry_run(expression, within)
            typer.echo(f"would have matched {run.matched:,} of {run.scanned:,} messages")
            for event in run.examples:
                typer.echo(_shown(event))
        else:
            typer.echo(client.subscribe(subscriber, expression, within, id=id))


def publish(
    text: Annotated[str | None, typer.Argument(help="What the message says.")] = None,
    lon: Lon = 0.0,
    lat: Lat = 0.0,
    id: Annotated[str, typer.Option(help="Of the message.")] = "cli",
    file: Annotated[Path | None, typer.Option(help="NDJSON instead of a text; - is standard input.")] = None,
    server: Server = HERE,
    key: Key = None,
) -> None:
    """Post one message, or those of a file. Exit code 3: some were rejected."""
    from nearcast.errors import NearcastError

    if (text is None) == (file is None):
        raise NearcastError("either a text or --file needed")
    rejected = 0
    with _client(server, key) as client:
        if text is not None:
            told = client.publish([{"id": id, "text": text, "lon": lon, "lat": lat}])
            typer.echo(f"message {told.first_seq}: {told.deliveries:,} deliveries")
        elif file is not None:
            rejected = _publish_file(client, file)
    if rejected:
        raise typer.Exit(3)


def _publish_file(client: Client, file: Path) -> int:
    """How many lines were rejected."""
    from itertools import islice

    from nearcast.client import ServerError

    accepted = rejected = deliveries = 0
    with sys.stdin.buffer if str(file) == "-" else file.open("rb") as lines:
        while part := list(islice(lines, LINES)):
            try:
                told = client.publish_lines(b"".join(part))
            except ServerError as error:
                if error.status != 422:  # 422: no line of this part could be used
                    raise
                typer.echo(str(error), err=True)
                rejected += sum(1 for line in part if line.strip())
                continue
            accepted, rejected = accepted + told.accepted, rejected + told.rejected
            deliveries += told.deliveries or 0
            for row in told.rejections:
                typer.echo(f"rejected: {row['reason']}", err=True)
    typer.echo(f"{accepted:,} messages, {deliveries:,} deliveries, {rejected:,} rejected", err=True)
    return rejected


def tail(
    subscriber: Annotated[str, typer.Argument(help="Whose events.")],
    after: Annotated[int | None, typer.Option(min=0, help="Behind this number; from the cursor or now on.")] = None,
    most: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One GeoJSON Feature a line.")] = False,
    server: Server = HERE,
    key: Key = None,
) -> None:
    """Follow a subscriber's events as they come."""
    with _client(server, key) as client:
        for number, event in enumerate(client.events(subscriber, after=after), 1):
            typer.echo(_shown(event, as_json))
            if number == most:
                return


def replay(
    subscriber: Annotated[str, typer.Argument(help="Whose events.")],
    after: Annotated[int | None, typer.Option(min=0, help="Behind this number.")] = None,
    since: Annotated[float | None, typer.Option(help="Accepted at this time (seconds since 1970) or later.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One GeoJSON Feature a line.")] = False,
    server: Server = HERE,
    key: Key = None,
) -> None:
    """Past events, from the log; behind the cursor unless told otherwise."""
    with _client(server, key) as client:
        for event in client.replay(subscriber, after=after, since=since):
            typer.echo(_shown(event, as_json))


def explain(
    subscription: Annotated[str, typer.Argument(help="Id of the subscription.")],
    text: Annotated[str, typer.Argument(help="What a message might say.")],
    lon: Lon = 0.0,
    lat: Lat = 0.0,
    server: Server = HERE,
    key: Key = None,
) -> None:
    """Would this message match, and what decides?"""
    with _client(server, key) as client:
        typer.echo(client.explain(subscription, text, (lon, lat)).text)


def _client(server: str, key: str | None) -> Client:
    from nearcast.client import Client

    return Client(server, key=key)


def _region(
    region: str | None, circle: tuple[float, float, float] | None, box: tuple[float, float, float, float] | None
) -> Region:
    from nearcast.errors import NearcastError
    from nearcast.geo import Box, Circle, parse_region

    if sum(given is not None for given in (region, circle, box)) != 1:
        raise NearcastError("one of --region, --circle and --box needed")
    if circle is not None:
        return Circle(*circle)
    return Box(*box) if box is not None else parse_region(region or "")


def _shown(event: Event, as_json: bool = False) -> str:
    if as_json:
        return json.dumps(event.feature, ensure_ascii=False)
    subscriptions, sign = ",".join(event.subscriptions), {"enter": "+ ", "leave": "- "}.get(event.operation, "")
    if event.operation == "current":
        return f"{event.seq}  {subscriptions}  holds {len(event.feature['features'])} messages"
    words = event.text if event.text is not None else " ".join(event.feature["properties"]["terms"])
    return f"{event.seq}  {subscriptions}  {sign}{words}"
