"""Webhooks: register, list, see what could not be delivered, send it again."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from typing import Annotated
from urllib.parse import urlsplit

import httpx
from fastapi import APIRouter, Path

from nearcast.errors import RowError
from nearcast.service.access import Caller
from nearcast.service.context import Calling, Service, Serving
from nearcast.service.faults import NotFoundError
from nearcast.service.kafka import SCHEME, topic_of
from nearcast.service.routes.models import CreatedWebhook, Letter, NewWebhook, Redriven, WebhookShown
from nearcast.service.webhooks import SECRET_PREFIX, new_secret
from nearcast.store.access import Webhook

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])

Identity = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]
SECRET_BYTES = range(24, 65)  # as Standard Webhooks has it


@router.post("", response_model=CreatedWebhook, status_code=201)
async def create(webhook: NewWebhook, service: Serving, caller: Calling) -> CreatedWebhook:
    """Post a subscriber's deliveries to an address or a Kafka topic, from now on. Needs `admin`: the server itself
    will call it."""
    caller.need("admin")
    _check_url(webhook.url)
    secret = webhook.secret or new_secret(secrets.token_bytes(32))
    _check_secret(secret)
    made = Webhook(
        caller.tenant, secrets.token_hex(8), webhook.subscriber, webhook.url, secret, None, service.engine.clock()
    )
    await service.couriers.put(made)
    return CreatedWebhook(id=made.id, secret=secret)


@router.get("", response_model=list[WebhookShown])
async def webhooks(service: Serving, caller: Calling) -> list[WebhookShown]:
    """All of the tenant, without their secrets."""
    caller.need("admin")
    found = await asyncio.to_thread(service.store.webhooks.all)
    return [
        WebhookShown(id=hook.id, subscriber=str(hook.subscriber), url=hook.url, disabled=hook.disabled)
        for hook in found
        if hook.tenant == caller.tenant
    ]


@router.delete("/{id}", status_code=204)
async def delete(id: Identity, service: Serving, caller: Calling) -> None:
    await service.couriers.remove(await _known(id, service, caller))


@router.post("/{id}/enable", status_code=204)
async def enable(id: Identity, service: Serving, caller: Calling) -> None:
    """After 410: go on where it was disabled."""
    await service.couriers.enable(await _known(id, service, caller))


@router.get("/{id}/dead-letters", response_model=list[Letter])
async def dead_letters(id: Identity, service: Serving, caller: Calling) -> list[Letter]:
    """Messages that the endpoint did not take in all attempts."""
    hook = await _known(id, service, caller)
    found = await asyncio.to_thread(service.store.webhooks.dead_letters, hook.tenant, hook.id)
    return [Letter(**letter._asdict()) for letter in found]


@router.post("/{id}/redrive", response_model=Redriven)
async def redrive(id: Identity, service: Serving, caller: Calling) -> Redriven:
    """Send its dead letters once more; those taken are forgotten."""
    taken, left = await service.couriers.redrive(await _known(id, service, caller))
    return Redriven(taken=taken, left=left)


async def _known(identity: str, service: Service, caller: Caller) -> Webhook:
    caller.need("admin")
    for hook in await asyncio.to_thread(service.store.webhooks.all):
        if (hook.tenant, hook.id) == (caller.tenant, identity):
            return hook
    raise NotFoundError(f"webhook {identity!r} given; no such one")


def _check_url(url: str) -> None:
    if url.startswith(f"{SCHEME}://"):
        topic_of(url)
        return
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        good = False
    if not good:
        raise RowError(f"url: {url[:60]!r} given; an http or https address, or kafka://broker/topic, needed")


def _check_secret(secret: str) -> None:
    try:
        size = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        size = -1
    if not secret.startswith(SECRET_PREFIX) or size not in SECRET_BYTES:
        raise RowError("secret: whsec_ and the base64 of 24 to 64 bytes needed")
