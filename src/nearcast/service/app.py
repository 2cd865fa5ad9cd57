"""The application: routes, errors in one form, start and end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from nearcast.errors import NearcastError
from nearcast.service.context import Service
from nearcast.service.faults import TooManyError, status_of
from nearcast.service.pages import add_pages
from nearcast.service.routes import log, messages, subscribers, subscriptions, system, webhooks
from nearcast.service.routes.models import Problem
from nearcast.service.settings import Settings

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        400: "Not HTTP as it should be",
        401: "No known key",
        403: "The key has not the scope that is needed",
        404: "Not there",
        409: "There already",
        413: "Too large",
        415: "Not a content type that can be read",
        422: "A value that cannot be used; `error` says what came and what is allowed",
        429: "A quota or rate is used up",
        503: "The store cannot write now",
    }.items()
}


def create_app(settings: Settings, clock: Callable[[], float] = time.time) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = app.state.service = Service(settings, clock)
        service.couriers.start()
        retaining = asyncio.create_task(service.retain())
        try:
            yield
        finally:
            retaining.cancel()
            await asyncio.gather(retaining, return_exceptions=True)
            await service.close()

    app = FastAPI(
        title="nearcast",
        summary="Location-aware publish/subscribe",
        lifespan=lifespan,
        docs_url=None,  # those pages would ask other machines for scripts
        redoc_url=None,
        responses=PROBLEMS,
    )
    for noun in (messages, log, subscriptions, subscribers, webhooks, system):
        app.include_router(noun.router)
    add_pages(app)
    app.add_exception_handler(NearcastError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _other)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, NearcastError)
    headers = {}
    if isinstance(error, TooManyError):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    status = status_of(error)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return _problem(request, status, str(error), headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    reasons = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()[:10]]
    return _problem(request, 422, "; ".join(reasons))


async def _other(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(request, error.status_code, str(error.detail), dict(error.headers or {}))


def _problem(request: Request, status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    service: Service = request.app.state.service
    service.metrics.failed.labels(str(status)).inc()
    body = json.dumps({"error": reason})  # ASCII: half a surrogate pair in a reason cannot break the answer
    return Response(body, status, headers, "application/json")
