"""Health, metrics and keys."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from nearcast.errors import RowError
from nearcast.service.access import QUOTAS, SCOPES
from nearcast.service.context import Calling, Serving
from nearcast.service.faults import NotFoundError
from nearcast.service.metrics import CONTENT_TYPE
from nearcast.service.routes.models import CreatedKey, Key, NewKey

router = APIRouter(tags=["system"])


@router.get("/healthz")
async def health() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: {"description": "Not now; `status` says why"}})
async def ready(service: Serving) -> JSONResponse:
    """Messages can be accepted."""
    why = "closing" if service.live.is_closing else service.engine.failure
    return JSONResponse({"status": why or "ready"}, 503 if why else 200)


@router.get("/metrics", response_class=Response)
async def metrics(service: Serving) -> Response:
    return Response(await asyncio.to_thread(service.metrics.text), media_type=CONTENT_TYPE)


@router.post("/v1/keys", response_model=CreatedKey, status_code=201)
async def create_key(key: NewKey, service: Serving, caller: Calling) -> CreatedKey:
    """A key of the caller's tenant. From the first one on, every request needs a key."""
    caller.need("admin")
    check_scopes(key.scopes, key.quotas)
    made = await asyncio.to_thread(
        service.store.api_keys.create,
        caller.tenant,
        key.name,
        frozenset(key.scopes),
        key.quotas,
        service.engine.clock(),
    )
    service.gate.is_open = False
    return CreatedKey(key=made)


@router.get("/v1/keys", response_model=list[Key])
async def keys(service: Serving, caller: Calling) -> list[Key]:
    caller.need("admin")
    found = await asyncio.to_thread(service.store.api_keys.all)
    return [
        Key(digest=k.digest, tenant=k.tenant, name=k.name, scopes=sorted(k.scopes), quotas=dict(k.quotas))
        for k in found
        if k.tenant == caller.tenant
    ]


@router.delete("/v1/keys/{digest}", status_code=204)
async def revoke_key(digest: str, service: Serving, caller: Calling) -> None:
    caller.need("admin")
    own = {key.digest for key in await asyncio.to_thread(service.store.api_keys.all) if key.tenant == caller.tenant}
    if digest not in own:
        raise NotFoundError(f"key {digest[:70]!r} given; no such one of {len(own)}")
    await asyncio.to_thread(service.store.api_keys.revoke, digest)


def check_scopes(scopes: list[str], quotas: dict[str, int]) -> None:
    """Names that mean nothing are refused: a slip would otherwise be a key that can do less, or more."""
    for given, allowed, what in ((set(scopes), SCOPES, "scope"), (set(quotas), QUOTAS, "quota")):
        unknown = sorted(given - allowed)
        if unknown:
            raise RowError(f"{what} {unknown[0][:40]!r} given; there are {', '.join(sorted(allowed))}")
    if not scopes:
        raise RowError(f"no scope given; at least one of {', '.join(sorted(SCOPES))} needed")
