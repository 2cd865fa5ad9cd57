"""Subscriptions: one by one, and in bulk."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from nearcast.hub import Hub
from nearcast.model import Subscription
from nearcast.service.access import Caller
from nearcast.service.context import Calling, Serving, body_of
from nearcast.service.faults import ConflictError
from nearcast.service.intake import NDJSON, Refused
from nearcast.service.routes.messages import BODY, shown
from nearcast.service.routes.models import ID, Imported, NewSubscription, Subscribed, Subscriptions, WishFor
from nearcast.service.wire import subscription_record
from nearcast.text import analyzer

router = APIRouter(prefix="/v1", tags=["subscriptions"])

Identity = Annotated[str, Path(min_length=1, max_length=500)]


@router.post("/subscriptions", response_model=Subscribed, status_code=201)
async def create(wish: NewSubscription, service: Serving, caller: Calling) -> dict[str, Any]:
    """A new subscription; its id is made up unless given. 409 if the id is taken."""
    identity = wish.id or secrets.token_hex(8)
    record = wish.model_dump(exclude_none=True) | {"id": identity}
    return (await _put(record, service, caller, replace=False))[0]


@router.put("/subscriptions/{id:path}", response_model=Subscribed)
async def put(id: Identity, wish: WishFor, service: Serving, caller: Calling, response: Response) -> dict[str, Any]:
    """Exactly this subscription, new (201) or instead of the one with this id (200)."""
    record, is_new = await _put(wish.model_dump(exclude_none=True) | {"id": id}, service, caller, replace=True)
    response.status_code = 201 if is_new else 200
    return record


async def _put(
    record: dict[str, Any], service: Serving, caller: Caller, *, replace: bool
) -> tuple[dict[str, Any], bool]:
    caller.need("subscribe")
    wish = (await service.intake(caller.tenant)).subscription(record)

    def register(hub: Hub) -> tuple[dict[str, Any], bool]:
        is_new = wish.id not in hub
        if not is_new and not replace:
            raise ConflictError(f"subscription {wish.id!r} exists; PUT exchanges it")
        caller.room_for(int(is_new), len(hub))
        hub.subscribe_all([wish], replace=True)
        return subscription_record(wish, analyzer(hub.lexicon.analyzer)), is_new

    return await service.engine.call(caller.tenant, register)


@router.get("/subscriptions", response_model=Subscriptions)
async def of_subscriber(service: Serving, caller: Calling, subscriber: Annotated[ID, Query()]) -> dict[str, Any]:
    """All of one subscriber."""
    caller.need("read")
    return await service.engine.call(
        caller.tenant, lambda hub: {"subscriptions": [_record(hub, wish) for wish in hub.subscriptions_of(subscriber)]}
    )


@router.get("/subscriptions/{id:path}", response_model=Subscribed)
async def get(id: Identity, service: Serving, caller: Calling) -> dict[str, Any]:
    caller.need("read")
    return await service.engine.call(caller.tenant, lambda hub: _record(hub, hub.subscription(id)))


@router.delete("/subscriptions/{id:path}", status_code=204)
async def delete(id: Identity, service: Serving, caller: Calling) -> None:
    caller.need("subscribe")
    await service.engine.call(caller.tenant, lambda hub: hub.unsubscribe(id))


@router.post("/import/subscriptions", response_model=Imported, openapi_extra=BODY)
async def take_in(request: Request, service: Serving, caller: Calling, replace: bool = False) -> Imported:
    """Many at once, NDJSON or Arrow, in one transaction. Rows that cannot be used are told, the others are served."""
    caller.need("subscribe")
    body = await body_of(request, service)
    intake = await service.intake(caller.tenant)
    media_type = request.headers.get("content-type", NDJSON)
    wishes, refused = await asyncio.to_thread(intake.subscriptions, body, media_type)
    taken, more = await service.engine.call(caller.tenant, lambda hub: _registered(hub, wishes, replace, caller))
    refused += more
    service.metrics.rejected.labels("subscription").inc(len(refused))
    return Imported(accepted=taken, rejected=len(refused), rejections=shown(refused))


def _registered(hub: Hub, wishes: list[Subscription], replace: bool, caller: Caller) -> tuple[int, list[Refused]]:
    """Of an id that is given twice the first is taken. Rejections here name the id: lines are not known any more."""
    chosen: dict[Any, Subscription] = {}
    refused: list[Refused] = []
    for wish in wishes:
        if wish.id in chosen:
            refused.append(Refused(0, f"subscription {wish.id!r} is given twice; the first was taken"))
        elif wish.id in hub and not replace:
            refused.append(Refused(0, f"subscription {wish.id!r} exists; replace=true exchanges it"))
        else:
            chosen[wish.id] = wish
    caller.room_for(sum(identity not in hub for identity in chosen), len(hub))
    hub.subscribe_all(list(chosen.values()), replace=replace)
    return len(chosen), refused


@router.get("/export/subscriptions", response_class=StreamingResponse)
async def give_out(service: Serving, caller: Calling) -> StreamingResponse:
    """All subscriptions as NDJSON, as import reads them."""
    caller.need("read")
    hub = await service.hub(caller.tenant)
    wishes = await service.engine.call(caller.tenant, lambda held: held.subscriptions())

    def lines() -> Iterator[str]:
        for wish in wishes:
            yield json.dumps(_record(hub, wish), ensure_ascii=False) + "\n"

    return StreamingResponse(lines(), media_type=NDJSON)


def _record(hub: Hub, wish: Subscription) -> dict[str, Any]:
    return subscription_record(wish, analyzer(hub.lexicon.analyzer))
