"""Pages for people: the map (built from web/, packaged as files) and the API's description; all from this server."""

from __future__ import annotations

import os
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from nearcast.service.apidoc import api_page

BUILT = Path(__file__).parent / "page"
HEADERS = {
    # The browser itself refuses whatever would leave this server.
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class _Files(StaticFiles):
    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        is_named_by_content = "assets" in Path(full_path).parts
        response.headers.update(HEADERS)
        response.headers["Cache-Control"] = "max-age=31536000, immutable" if is_named_by_content else "no-cache"
        return response


def has_map(folder: Path = BUILT) -> bool:
    return (folder / "index.html").is_file()


def add_pages(app: FastAPI, folder: Path = BUILT) -> None:
    """`/map/` if it is built, `/docs`, and `/` for the better of them."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(api_page(app.openapi()), headers=HEADERS)

    @app.get("/", include_in_schema=False)
    async def start(request: Request) -> Response:
        return RedirectResponse(request.url_for("map", path="/") if has_map(folder) else request.url_for("docs"))

    if has_map(folder):
        app.mount("/map", _Files(directory=folder, html=True), "map")
