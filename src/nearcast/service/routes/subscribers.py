"""What a subscriber reads: a live stream, the past, and its cursor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, WebSocket, WebSocketDisconnect
from starlette.responses import Response, StreamingResponse

from nearcast.errors import NearcastError, RowError
from nearcast.hub import Hub
from nearcast.service.access import Caller
from nearcast.service.context import Calling, Service, Serving
from nearcast.service.engine import Event
from nearcast.service.intake import NDJSON
from nearcast.service.kinds import Current
from nearcast.service.live import Gap, Reader, events_of, stream
from nearcast.service.routes.models import ID, Cursor, Seq, Time
from nearcast.service.wire import current_json, event_json

router = APIRouter(prefix="/v1", tags=["subscribers"])

Subscriber = Annotated[ID, Query()]
After = Annotated[Seq | None, Query(description="Behind this number")]
Since = Annotated[Time | None, Query(description="Accepted at this time (seconds since 1970) or later")]
POLICY_VIOLATION, TRY_AGAIN_LATER = 1008, 1012


@router.get("/events", response_class=StreamingResponse)
async def events(
    service: Serving,
    caller: Calling,
    subscriber: Subscriber,
    after: After = None,
    since: Since = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events. Begins behind Last-Event-ID, `after`, `since` or the cursor; from now on without any."""
    caller.need("read")
    if last_event_id:
        after, since = _seq(last_event_id), None
        await _acknowledge(service, caller, subscriber, after)
    position = await _position(service, caller, subscriber, after, since)
    lines = _sse(service, caller.tenant, subscriber, position)
    return StreamingResponse(lines, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _sse(service: Service, tenant: str, subscriber: str, after: int | None) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    ping = service.settings.ping_seconds
    is_quiet = True  # nothing was sent since the last sign of life
    async for item in stream(service.engine, service.live, Reader(tenant, subscriber, "sse"), after, ping):
        if item is not None:
            yield _sse_lines(item)
            service.metrics.delivered.labels("sse").inc()
        elif is_quiet:
            yield ":\n\n"
        is_quiet = item is None


def _sse_lines(item: Event | Current | Gap) -> str:
    """The id is a position: only the last event of a message has one, so that nobody goes on in the middle."""
    if isinstance(item, Gap):
        return f"event: gap\ndata: {json.dumps(item._asdict())}\n\n"
    if isinstance(item, Current):
        return f"event: current\ndata: {current_json(item)}\n\n"
    position = "" if item.more or item.moved else f"id: {item.seq}\n"
    return f"{position}event: {item.operation}\ndata: {event_json(item)}\n\n"


@router.websocket("/socket")
async def socket(websocket: WebSocket, subscriber: str, after: int | None = None, since: float | None = None) -> None:
    """The same over a WebSocket, one event a text frame; `{"ack": seq}` from the client moves the cursor."""
    service: Service = websocket.app.state.service
    try:
        caller = service.gate.caller(websocket.headers.get("authorization"))
        caller.need("read")
        position = await _position(service, caller, subscriber, after, since)
    except NearcastError as error:
        await websocket.close(POLICY_VIOLATION, str(error)[:120])
        return
    await websocket.accept()
    sending = asyncio.create_task(_send(websocket, service, caller.tenant, subscriber, position))
    receiving = asyncio.create_task(_receive(websocket, service, caller, subscriber))
    done, pending = await asyncio.wait([sending, receiving], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*done, *pending, return_exceptions=True)
    if sending in done and not sending.exception():
        await websocket.close(TRY_AGAIN_LATER, "the server is closing")


async def _send(websocket: WebSocket, service: Service, tenant: str, subscriber: str, after: int | None) -> None:
    reader = Reader(tenant, subscriber, "websocket")
    async for item in stream(service.engine, service.live, reader, after, service.settings.ping_seconds):
        if isinstance(item, Gap):
            await websocket.send_text(json.dumps({"type": "nearcast.gap", **item._asdict()}))
        elif item is not None:
            await websocket.send_text(event_json(item) if isinstance(item, Event) else current_json(item))
            service.metrics.delivered.labels("websocket").inc()


async def _receive(websocket: WebSocket, service: Service, caller: Caller, subscriber: str) -> None:
    while True:
        try:
            told = json.loads(await websocket.receive_text())
            seq = told["ack"]
        except WebSocketDisconnect:
            return
        except (ValueError, TypeError, KeyError):
            seq = None
        if not isinstance(seq, int) or isinstance(seq, bool) or not 0 <= seq < 2**62:
            await websocket.send_text(
                json.dumps({"type": "nearcast.error", "error": 'only {"ack": seq} is understood'})
            )
        else:
            await _acknowledge(service, caller, subscriber, seq)


@router.get("/replay", response_class=Response)
async def replay(
    service: Serving,
    caller: Calling,
    subscriber: Subscriber,
    after: After = None,
    since: Since = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> Response:
    """Past events as NDJSON, behind `after`, `since` or the cursor. Nearcast-Position says where to go on."""
    caller.need("read")
    position = await _position(service, caller, subscriber, after, since) or 0
    hub = await service.hub(caller.tenant)
    position = max(position, service.store.log.first_seq - 1)
    found, position = await asyncio.to_thread(
        _past, hub, subscriber, position, min(limit, service.settings.limits.replay)
    )
    service.metrics.delivered.labels("replay").inc(len(found))
    body = "".join(event_json(event) + "\n" for event in found)
    return Response(body, media_type=NDJSON, headers={"Nearcast-Position": str(position)})


def _past(hub: Hub, subscriber: str, after: int, limit: int) -> tuple[list[Event], int]:
    """At most `limit` events, and the number behind which to go on."""
    up_to, found = hub.last_seq, list[Event]()
    past = hub.past_of(subscriber, after)
    while after < up_to and len(found) < limit:
        chunk = past.chunk(after, up_to)
        found += events_of(chunk, subscriber)
        after = chunk.position
    if len(found) > limit:
        return found[:limit], found[limit - 1].seq
    return found, max(after, 0)


@router.get("/cursor", response_model=Cursor)
async def cursor(service: Serving, caller: Calling, subscriber: Subscriber) -> Cursor:
    """The last message that the subscriber acknowledged; 0: none."""
    caller.need("read")
    found = await asyncio.to_thread(service.store.cursors.get, caller.tenant, subscriber)
    return Cursor(seq=found or 0)


@router.put("/cursor", status_code=204)
async def acknowledge(cursor: Cursor, service: Serving, caller: Calling, subscriber: Subscriber) -> None:
    """Everything up to this message has arrived. A cursor never goes back."""
    caller.need("read")
    await _acknowledge(service, caller, subscriber, cursor.seq)


async def _acknowledge(service: Service, caller: Caller, subscriber: str, seq: int) -> None:
    last = service.store.log.last_seq
    if seq > last:
        raise RowError(f"seq {seq} given; the last message is {last}")
    await asyncio.to_thread(service.store.cursors.advance, caller.tenant, subscriber, seq)


async def _position(
    service: Service, caller: Caller, subscriber: str, after: int | None, since: float | None
) -> int | None:
    if after is not None and since is not None:
        raise RowError("after and since given; one of them needed")
    if since is not None:
        return await asyncio.to_thread(service.store.log.seq_before, since)
    if after is not None:
        return after
    return await asyncio.to_thread(service.store.cursors.get, caller.tenant, subscriber)


def _seq(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RowError(f"Last-Event-ID {text[:40]!r} given; the id of an event needed")
    return int(text)
