"""`nearcast serve` and `nearcast key`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

STORE = "sqlite:///nearcast.db"
Store = Annotated[
    str, typer.Option(envvar="NEARCAST_STORE", help="sqlite:///path, postgresql://user@host/database or memory:")
]

keys = typer.Typer(help="API keys, in the store of a server that is not running.", no_args_is_help=True)


def serve(
    store: Store = STORE,
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine need a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080,
    analyzer: Annotated[str | None, typer.Option(help="How text becomes words, for a new store.")] = None,
    keep_days: Annotated[float | None, typer.Option(min=0, help="Days that messages are kept.")] = None,
    keep_gb: Annotated[float | None, typer.Option(min=0, help="Gigabytes of messages that are kept.")] = None,
    tls_certificate: Annotated[str | None, typer.Option(help="PEM file; with it the server speaks HTTPS.")] = None,
    tls_key: Annotated[str | None, typer.Option(help="PEM file of the certificate's private key.")] = None,
) -> None:
    """Serve HTTP, SSE and WebSocket until told to stop; everything is kept in the store."""
    from nearcast.kernels import jit
    from nearcast.service.pages import has_map
    from nearcast.service.server import make_server, warm_up
    from nearcast.service.settings import Settings

    settings = Settings(
        store,
        analyzer,
        None if keep_days is None else keep_days * 86_400,
        None if keep_gb is None else int(keep_gb * 1e9),
    )
    server = make_server(settings, host, port, certificate=tls_certificate, private_key=tls_key)
    if jit.is_cold():
        typer.echo("compiling kernels, once for this version …", err=True)
    warm_up()
    shown = f"{'https' if tls_certificate else 'http'}://{host}:{port}"
    page = f"map at {shown}/map/, " if has_map() else "no map page here (make web builds it), "
    typer.echo(f"nearcast serves {shown}: {page}API at {shown}/docs, store {store.split('@')[-1]}", err=True)
    server.run()


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[list[str], typer.Option(help="publish, subscribe, read or admin; may be given again.")],
    tenant: Annotated[str, typer.Option(help="Whose messages and subscriptions.")] = "",
    max_subscriptions: Annotated[int | None, typer.Option(min=1)] = None,
    messages_per_second: Annotated[int | None, typer.Option(min=1)] = None,
    store: Store = STORE,
) -> None:
    """Make a key and print it, once."""
    from nearcast.service.routes.system import check_scopes
    from nearcast.store import open_store

    given = {"subscriptions": max_subscriptions, "messages_per_second": messages_per_second}
    quotas = {quota: most for quota, most in given.items() if most is not None}
    check_scopes(scope, quotas)
    opened = open_store(store)
    try:
        typer.echo(opened.api_keys.create(tenant, name, frozenset(scope), quotas, time.time()))
    finally:
        opened.close()


@keys.command("list")
def list_keys(store: Store = STORE) -> None:
    """Digest, tenant, name and scopes of every key."""
    from nearcast.store import open_store

    opened = open_store(store)
    try:
        for key in opened.api_keys.all():
            typer.echo(f"{key.digest}  {key.tenant or '-'}  {key.name}  {','.join(sorted(key.scopes))}")
    finally:
        opened.close()


@keys.command()
def revoke(digest: Annotated[str, typer.Argument(help="As `list` shows it.")], store: Store = STORE) -> None:
    """Take a key back."""
    from nearcast.errors import NearcastError
    from nearcast.store import open_store

    opened = open_store(store)
    try:
        if not opened.api_keys.revoke(digest):
            raise NearcastError(f"key {digest!r} given; no such one in the store")
    finally:
        opened.close()
