"""The log itself: what was accepted, in order, for whoever works on all messages."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from nearcast.service.context import Calling, Serving
from nearcast.service.intake import NDJSON
from nearcast.service.routes.models import Seq
from nearcast.store.codec import message_record
from nearcast.store.log import Logged

router = APIRouter(prefix="/v1", tags=["messages"])


@router.get("/messages", response_class=Response)
async def logged(
    service: Serving,
    caller: Calling,
    after: Annotated[Seq, Query(description="Behind this number")] = 0,
    up_to: Annotated[Seq | None, Query(description="Up to this number")] = None,
    limit: Annotated[int, Query(ge=0, le=10_000, description="0: only where the log begins and ends")] = 1_000,
) -> Response:
    """Accepted messages as NDJSON, as they may be published again, with `seq` and `accepted` (a time).

    Nearcast-Position says behind which number to go on, Nearcast-First and Nearcast-Last what the log keeps.
    """
    caller.need("read")
    log = service.store.log
    first, last = log.first_seq, log.last_seq
    end = last if up_to is None else min(up_to, last)
    rows = await asyncio.to_thread(log.read, caller.tenant, after, end, limit)
    is_all = len(rows) < limit
    position = max(after, end) if is_all else rows[-1].seq if rows else after
    headers = {"Nearcast-Position": position, "Nearcast-First": first, "Nearcast-Last": last}
    body = await asyncio.to_thread(lambda: "".join(map(_line, rows)))
    return Response(body, media_type=NDJSON, headers={name: str(value) for name, value in headers.items()})


def _line(row: Logged) -> str:
    record = {"seq": row.seq, "accepted": row.time, **message_record(row.body)}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
