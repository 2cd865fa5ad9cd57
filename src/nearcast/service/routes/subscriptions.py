"""Subscriptions: one by one, and in bulk."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from nearcast.errors import RowError
from nearcast.geo import Region
from nearcast.hub import Hub
from nearcast.model import Id, Subscription
from nearcast.service import kinds
from nearcast.service.access import Caller
from nearcast.service.context import Calling, Serving, body_of
from nearcast.service.faults import ConflictError
from nearcast.service.intake import NDJSON, Line, Refused
from nearcast.service.routes.messages import BODY, shown
from nearcast.service.routes.models import (
    ID,
    Holding,
    Imported,
    Moved,
    Moves,
    NewSubscription,
    Subscribed,
    Subscriptions,
    WishFor,
)
from nearcast.service.wire import holding, standing_record
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
    wish = (await service.intake(caller.tenant)).wish(record)

    def register(hub: Hub) -> tuple[dict[str, Any], bool]:
        is_new = not kinds.is_held(hub, wish.id)
        if not is_new and not replace:
            raise ConflictError(f"subscription {wish.id!r} exists; PUT exchanges it")
        caller.room_for(int(is_new), kinds.held(hub))
        kinds.put(hub, [wish])
        return _record(hub, wish), is_new

    return await service.engine.call(caller.tenant, register)


@router.get("/subscriptions", response_model=Subscriptions)
async def of_subscriber(service: Serving, caller: Calling, subscriber: Annotated[ID, Query()]) -> dict[str, Any]:
    """All of one subscriber."""
    caller.need("read")
    return await service.engine.call(
        caller.tenant, lambda hub: {"subscriptions": [_record(hub, wish) for wish in kinds.of(hub, subscriber)]}
    )


@router.get("/current", response_model=Holding)
async def current(service: Serving, caller: Calling, id: Annotated[ID, Query()]) -> Holding:
    """What a ranking or a follower holds now. Changes come with the subscriber's events, as `enter` and `leave`."""
    caller.need("read")

    def look(hub: Hub) -> kinds.Current:
        wish = kinds.get(hub, id)
        if isinstance(wish, Subscription):
            raise RowError(f"subscription {id!r} is of kind match and holds nothing; a ranking or follower needed")
        return kinds.current(hub, wish)

    held = await service.engine.call(caller.tenant, look)
    return Holding(id=id, kind=kinds.kind_of(held.wish), seq=held.seq, features=holding(held))


@router.post("/moves", response_model=Moved)
async def move(moves: Moves, service: Serving, caller: Calling) -> Moved:
    """Wishes of kind `follow` to their new regions, as one step, all or none. What enters and leaves by that comes
    with the subscriber's events."""
    caller.need("subscribe")
    intake = await service.intake(caller.tenant)
    regions: dict[Id, Region] = {one.id: intake.region(one.model_dump(exclude_none=True)) for one in moves.moves}
    events = await service.engine.move(caller.tenant, regions)
    entered = sum(len(event.subscriptions) for event in events if event.operation == "enter")
    left = sum(len(event.subscriptions) for event in events) - entered
    service.metrics.moved.inc(len(regions))
    return Moved(moved=len(regions), entered=entered, left=left)


@router.get("/subscriptions/{id:path}", response_model=Subscribed)
async def get(id: Identity, service: Serving, caller: Calling) -> dict[str, Any]:
    caller.need("read")
    return await service.engine.call(caller.tenant, lambda hub: _record(hub, kinds.get(hub, id)))


@router.delete("/subscriptions/{id:path}", status_code=204)
async def delete(id: Identity, service: Serving, caller: Calling) -> None:
    caller.need("subscribe")
    await service.engine.call(caller.tenant, lambda hub: kinds.remove(hub, id))


@router.post("/import/subscriptions", response_model=Imported, openapi_extra=BODY)
async def take_in(request: Request, service: Serving, caller: Calling, replace: bool = False) -> Imported:
    """Many at once, NDJSON or Arrow, in one transaction. Rows that cannot be used are told, the others are served."""
    caller.need("subscribe")
    body = await body_of(request, service)
    intake = await service.intake(caller.tenant)
    media_type = request.headers.get("content-type", NDJSON)
    wishes, refused = await asyncio.to_thread(intake.wishes, body, media_type)
    taken, more = await service.engine.call(caller.tenant, lambda hub: _registered(hub, wishes, replace, caller))
    refused = sorted(refused + more)
    service.metrics.rejected.labels("subscription").inc(len(refused))
    return Imported(accepted=taken, rejected=len(refused), rejections=shown(refused))


def _registered(
    hub: Hub, wishes: list[Line[kinds.Standing]], replace: bool, caller: Caller
) -> tuple[int, list[Refused]]:
    """Of an id that is given twice the first is taken."""
    chosen: dict[Any, kinds.Standing] = {}
    refused: list[Refused] = []
    new = 0
    for line, wish in wishes:
        is_held = kinds.is_held(hub, wish.id)
        if wish.id in chosen:
            refused.append(Refused(line, f"subscription {wish.id!r} is given twice; the first was taken"))
        elif is_held and not replace:
            refused.append(Refused(line, f"subscription {wish.id!r} exists; replace=true exchanges it"))
        else:
            chosen[wish.id] = wish
            new += not is_held
    caller.room_for(new, kinds.held(hub))
    kinds.put(hub, list(chosen.values()))
    return len(chosen), refused


@router.get("/export/subscriptions", response_class=StreamingResponse)
async def give_out(service: Serving, caller: Calling) -> StreamingResponse:
    """All subscriptions as NDJSON, as import reads them."""
    caller.need("read")
    hub = await service.hub(caller.tenant)
    wishes = await service.engine.call(caller.tenant, kinds.all_of)

    def lines() -> Iterator[str]:
        for wish in wishes:
            yield json.dumps(_record(hub, wish), ensure_ascii=False) + "\n"

    return StreamingResponse(lines(), media_type=NDJSON)


def _record(hub: Hub, wish: kinds.Standing) -> dict[str, Any]:
    return standing_record(wish, analyzer(hub.lexicon.analyzer))
