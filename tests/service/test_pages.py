"""Pages for people: everything from this server, nothing from elsewhere."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
from fastapi import FastAPI

from nearcast.service.apidoc import api_page
from nearcast.service.app import create_app
from nearcast.service.pages import add_pages
from nearcast.service.settings import Settings


def test_the_description_names_every_operation_and_shape() -> None:
    spec = create_app(Settings("memory:")).openapi()
    page = api_page(spec)
    for path, item in spec["paths"].items():
        assert page.count(f"<code>{path}</code>") == len(item), path
    for name in spec["components"]["schemas"]:
        assert f'id="{name}"' in page
    targets = {reference[1:] for reference in re.findall(r'href="(#[^"]*)"', page)}
    assert targets <= set(re.findall(r'id="([^"]*)"', page))


def test_the_description_asks_nobody_for_anything() -> None:
    page = api_page(create_app(Settings("memory:")).openapi())
    assert "<script" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)


def test_what_a_description_says_is_never_markup() -> None:
    operation = {"description": "<b>", "responses": {"200": {}}, "parameters": [], "tags": ["<i>"]}
    spec = {"info": {"title": "<u>"}, "paths": {"/<a>": {"get": operation}}}
    page = api_page(spec)
    for markup in ("<i>", "<u>", "/<a>", "<p><b>"):
        assert markup not in page


def get(app: FastAPI, *paths: str) -> list[httpx.Response]:
    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here", follow_redirects=True) as client:
            return [await client.get(path) for path in paths]

    return asyncio.run(ask())


def test_the_map_is_served_when_it_is_built(tmp_path: Path) -> None:
    without = FastAPI(docs_url=None)
    add_pages(without, tmp_path)
    missing, start = get(without, "/map/", "/")
    assert (missing.status_code, start.url.path, start.status_code) == (404, "/docs", 200)

    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "assets" / "a.js").write_text("1")
    built = FastAPI(docs_url=None)
    add_pages(built, tmp_path)
    page, script = get(built, "/", "/map/assets/a.js")
    assert (page.url.path, page.status_code, script.status_code) == ("/map/", 200, 200)
    assert page.headers["Cache-Control"] == "no-cache"
    assert "immutable" in script.headers["Cache-Control"]
    for answer in (page, script, start):
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
