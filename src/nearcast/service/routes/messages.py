"""Publish, explain, dry run."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request

from nearcast.errors import RowError
from nearcast.service.context import Calling, Service, Serving, body_of
from nearcast.service.engine import Event, Published
from nearcast.service.intake import JSON, MEDIA_TYPES, Refused
from nearcast.service.routes.models import Accepted, Answer, Question, Refusal, Rehearsal, Rehearsed
from nearcast.service.wire import event_value

router = APIRouter(prefix="/v1", tags=["messages"])

SHOWN = 100
"""Rejections in an answer; all of them are counted."""

_MESSAGE = {"type": "object", "required": ["id"], "description": "id; text or terms; lon, lat or a box; ts, payload"}
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": _MESSAGE if kind == JSON else {"type": "string", "format": "binary"}}
            for kind in dict.fromkeys(MEDIA_TYPES.values())
        },
    }
}


@router.post("/messages", response_model=Accepted, openapi_extra=BODY)
async def publish(request: Request, service: Serving, caller: Calling) -> Accepted:
    """One message (JSON), many (NDJSON, a line each) or an Arrow stream. Answered when they are on disk."""
    caller.need("publish")
    started = time.perf_counter()
    body = await body_of(request, service)
    intake = await service.intake(caller.tenant)
    media_type = request.headers.get("content-type", JSON)
    messages, refused = await asyncio.to_thread(intake.messages, body, media_type)
    _refuse_if_nothing(len(messages), refused, service)
    service.gate.spend(caller, len(messages))
    published = await service.engine.publish(caller.tenant, messages) if messages else Published(0, 0)
    service.metrics.accepted.inc(len(messages))
    service.metrics.matched.inc(published.deliveries or 0)
    service.metrics.publish_seconds.observe(time.perf_counter() - started)
    first = published.first_seq if messages else None
    return Accepted(
        accepted=len(messages),
        rejected=len(refused),
        rejections=shown(refused),
        first_seq=first,
        last_seq=None if first is None else first + len(messages) - 1,
        deliveries=published.deliveries,
        unmatched=published.unmatched,
    )


def _refuse_if_nothing(served: int, refused: list[Refused], service: Service) -> None:
    service.metrics.rejected.labels("message").inc(len(refused))
    if refused and not served:
        more = f" (and {len(refused) - 1:,} other rows that cannot be used)" if len(refused) > 1 else ""
        raise RowError(f"line {refused[0].line}: {refused[0].reason}{more}")


def shown(refused: list[Refused]) -> list[Refusal]:
    return [Refusal(line=line, reason=reason) for line, reason in refused[:SHOWN]]


@router.post("/explain", response_model=Answer)
async def explain(question: Question, service: Serving, caller: Calling) -> Answer:
    """Would this message match this subscription, and what decides?"""
    caller.need("read")
    record = {"id": "question", **question.message.model_dump(exclude_none=True)}
    message = (await service.intake(caller.tenant)).message(record)
    found = await service.engine.call(caller.tenant, lambda hub: hub.explain_message(question.subscription, message))
    return Answer(matched=found.matched, inside=found.inside, distance=found.distance, text=str(found))


@router.post("/dry-run", response_model=Rehearsed)
async def dry_run(rehearsal: Rehearsal, service: Serving, caller: Calling) -> Rehearsed:
    """What a subscription would have matched in the log, before it is registered."""
    caller.need("read")
    record = {"id": "dry run", **rehearsal.wish.model_dump(exclude_none=True)}
    wish = (await service.intake(caller.tenant)).subscription(record)
    hub = await service.hub(caller.tenant)
    run = await asyncio.to_thread(
        hub.dry_run_of, wish, after=rehearsal.after, since=rehearsal.since, examples=rehearsal.examples
    )
    examples = [Event(d.subscriber, d.seq or 0, d.message, (d.subscription,)) for d in run.examples]
    return Rehearsed(
        matched=run.matched,
        scanned=run.scanned,
        after=run.after,
        up_to=run.up_to,
        examples=[event_value(event) for event in examples],
    )
