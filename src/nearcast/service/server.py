"""`nearcast serve`: the application on a socket, until it is told to stop."""

from __future__ import annotations

import ipaddress
import socket
import sys

import uvicorn
from fastapi import FastAPI

from nearcast.geo import circle
from nearcast.hub import Hub
from nearcast.service.app import create_app
from nearcast.service.settings import Settings
from nearcast.store import StoreError, open_store

GRACE = 20
"""Seconds that requests in flight have when the server is told to stop."""


SWITCH = 0.0025
"""Seconds after which a thread lets another one run: reading, logging and the readers' events take turns in between."""


class Server(uvicorn.Server):
    """Tells streams to end before it waits for connections; they would stay open for ever."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self.app = app

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        sys.setswitchinterval(SWITCH)
        super().run(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.state.service.live.close()
        await super().shutdown(sockets)


def make_server(
    settings: Settings, host: str, port: int, *, certificate: str | None = None, private_key: str | None = None
) -> Server:
    """Ready to `run()`."""
    _check_address(settings, host)
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        ws="websockets-sansio",
    )
    return Server(config, app)


def warm_up() -> None:
    """Compile, or load, what the first requests would otherwise wait for: all kinds, a message, a move, a replay."""
    with Hub.open("memory:") as hub:
        hub.subscribe("a", '"b c" -d', within=circle(0, 0, metres=1))
        hub.rank("a", "b", near=(0, 0), k=1)
        hub.follow("f", "b", within=circle(0, 0, metres=1))
        for _ in range(2):
            hub.publish("b c", at=(0, 0))
        hub.move("f", circle(1, 1, metres=1))
        hub.unfollow("f")
        assert len(list(hub.replay("a", after=0))) == 2


def _check_address(settings: Settings, host: str) -> None:
    """Without a key in the store everybody may do all: then only this machine may ask."""
    if is_loopback(host):
        return
    store = open_store(settings.store)
    try:
        if not store.api_keys.all():
            raise StoreError(
                f"host {host} is open to other machines and the store has no key: nearcast key create first"
            )
    finally:
        store.close()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
