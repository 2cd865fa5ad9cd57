"""`nearcast bench service`: a server with a million subscriptions, measured from a second process on loopback."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.serving import fill, free_port, say, serving

if TYPE_CHECKING:
    from nearcast.service.measure import Delay, Memory, Throughput

BATCH = 2_000
BODIES = 60
RATE, AT_ONCE = 1_000, 10  # messages a second, and in one request, where delays are measured
FEW, PAUSE = 100, 0.05  # in one request, and seconds between requests, beside the reader that reads nothing
MB = 1e6
SHARES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "longest": 1.0}


def service(
    subscriptions: Annotated[int, typer.Option(min=1, help="Held by the server.")] = 1_000_000,
    seconds: Annotated[float, typer.Option(min=1, help="Of throughput and of delay, each.")] = 20.0,
    stuck_seconds: Annotated[float, typer.Option(min=1, help="Beside a reader that reads nothing.")] = 600.0,
    only: Annotated[str, typer.Option(help="throughput, delay, memory, with commas.")] = "throughput,delay,memory",
    folder: Annotated[Path, typer.Option(help="Where the store is; filled once for each size.")] = Path("build/bench"),
    markdown: Annotated[Path | None, typer.Option(help="Write the page here.")] = None,
    seed: Annotated[int, typer.Option(help="Decides all data.")] = 1,
) -> None:
    """Messages a second through NDJSON, time from publishing to a reader, memory beside a reader that is stuck."""
    from nearcast.service import measure
    from nearcast.workloads import CityWorld

    store = f"sqlite:///{_store(folder, subscriptions, seed)}"
    records = CityWorld(seed).messages(1 << 40)
    made = measure.bodies(records, BODIES, BATCH)
    lines: list[str] = []
    with serving(store, free_port(0), "--keep-gb", "2") as (address, pid):
        measure.throughput(address, pid, made[:2], 2.0)  # compiled, connected, warm
        if "throughput" in only:
            lines += _throughput(measure.throughput(address, pid, made, seconds))
        if "delay" in only:
            lines += _delay(measure.delay(address, records, RATE, AT_ONCE, seconds))
        if "memory" in only:
            small = measure.bodies(records, BODIES, FEW)
            lines += _memory(measure.stuck(address, pid, small, stuck_seconds, PAUSE))
    for line in lines:
        typer.echo(line)
    if markdown is not None:
        markdown.write_text(_page(subscriptions, lines))


def _store(folder: Path, n: int, seed: int) -> Path:
    """A store with so many subscriptions and no message; made when it is absent."""
    path = folder / f"service-{n}-{seed}.db"
    done = path.with_suffix(".done")
    if not done.exists():
        for old in folder.glob(f"{path.name}*"):
            old.unlink() if old.is_file() else None
        folder.mkdir(parents=True, exist_ok=True)
        fill(f"sqlite:///{path}", n, seed)
        done.touch()
    say(f"store {path}")
    return path


def _throughput(found: Throughput) -> list[str]:
    each = 1e6 / found.messages
    server, client = found.server_cpu * each, found.client_cpu * each
    return [
        f"- **{found.messages / found.seconds:,.0f} messages a second** accepted, on disk and matched, through NDJSON "
        f"batches of {BATCH:,} over 2 connections ({found.messages:,} messages in {found.seconds:.1f} s, "
        f"{found.deliveries / found.messages:.2f} deliveries each).",
        f"- Processor time: {server:.1f} µs a message in the server ({1e6 / server:,.0f} messages a second of one "
        f"core), {client:.1f} µs in the client.",
    ]


def _delay(found: Delay) -> list[str]:
    shown = ", ".join(f"{name} {1e3 * found.at(share):.1f} ms" for name, share in SHARES.items())
    return [
        f"- **From publishing to server-sent event: {shown}**, at {found.per_second:,.0f} messages a second in "
        f"requests of {AT_ONCE} ({len(found.seconds):,} events)."
    ]


def _memory(found: Memory) -> list[str]:
    seconds, megabytes = len(found.resident) - 1, [f"{size / MB:,.0f} MB" for size in found.resident]
    return [
        f"- **Memory beside a reader that reads nothing**: {megabytes[seconds // 10]} after a tenth of {seconds:,} s, "
        f"{megabytes[seconds // 2]} at half, {megabytes[-1]} at the end, {max(found.resident) / MB:,.0f} MB at most; "
        f"{found.messages:,} messages meanwhile, the reader sent back to the log {found.fallbacks:,} times."
    ]


def _page(subscriptions: int, lines: list[str]) -> str:
    from nearcast.bench.measure import machine

    day = datetime.now(UTC).strftime("%Y-%m-%d")
    told = machine()
    where = f"{told['cpu']}, Python {told['python']}, {day}"
    head = f"# The service, measured\n\n{subscriptions:,} subscriptions around the world's cities; {where}; "
    return head + "server and client on the same machine (`nearcast bench service`).\n\n" + "\n".join(lines) + "\n"
