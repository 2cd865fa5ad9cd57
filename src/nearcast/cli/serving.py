"""A generated world in a store, and a server for it: what the demo and the bench of the service have in common."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import typer

FILL = 20_000  # wishes at a time
READY_WITHIN = 600.0


def fill(store: str, n: int, seed: int) -> None:
    from nearcast.hub import Hub
    from nearcast.records import read_subscription
    from nearcast.text import analyzer
    from nearcast.workloads import CityWorld

    analysis, records = analyzer(), CityWorld(seed).subscriptions(n)
    started = time.perf_counter()
    gc.disable()  # nothing becomes garbage, and looking for it among so many takes longer than the rest
    with Hub.open(store) as hub:
        while some := list(islice(records, FILL)):
            hub.subscribe_all([read_subscription(record, hub.space, analysis) for record in some])
            say(f"{len(hub):,} of {n:,} wishes around the world's cities", end="\r")
    gc.enable()
    say(f"{n:,} wishes around the world's cities, on disk after {time.perf_counter() - started:.0f} s")


def say(text: str, end: str = "\n") -> None:
    if end == "\n" or sys.stderr.isatty():
        typer.echo(text + end, err=True, nl=False)


def free_port(wanted: int) -> int:
    """The wanted one if nobody has it, else any."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port")


@contextmanager
def serving(store: str, port: int, *options: str) -> Iterator[tuple[str, int]]:
    """`nearcast serve` in a process of its own, until the block ends: its address and process id."""
    call = "from nearcast.cli import main; main()"
    words = ["serve", "--store", store, "--port", str(port), *options]
    server = subprocess.Popen([sys.executable, "-c", call, *words], stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(server, address)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait(60)


def _wait_until_ready(server: subprocess.Popen[bytes], address: str) -> None:
    import httpx

    from nearcast.errors import NearcastError

    for _ in range(int(READY_WITHIN / 0.2)):
        if server.poll() is not None:
            raise NearcastError(f"the server ended with code {server.returncode}")
        try:
            if httpx.get(f"{address}/readyz", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise NearcastError(f"{address} was not ready within {READY_WITHIN:.0f} s")
