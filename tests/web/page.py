"""The map page in a real Chromium against a real server with a live feed: `make test-web`.

What the browser does and checks is in web/test/page.mjs; pictures go to build/page.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from nearcast.client import Client
from nearcast.service.pages import has_map
from nearcast.service.settings import Settings
from nearcast.workloads import CityWorld
from tests.service.serving import running

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
RATE = 120  # messages a second


@contextmanager
def fed(address: str) -> Iterator[None]:
    """A generated feed while the block runs."""
    over = threading.Event()

    def publish() -> None:
        records = CityWorld(3).messages(1 << 40, start=time.time(), per_second=RATE)
        with Client(address) as client:
            client.publish(list(islice(records, 3_000)))  # something to look back at
            client._http.post("/v1/messages", content=b"not json", headers={"content-type": "application/x-ndjson"})
            while not over.wait(0.2):
                client.publish(list(islice(records, RATE // 5)))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    assert has_map(), "the page is not built: python web/build.py"
    if CHROMIUM is None:
        pytest.skip("no Chromium here, and it could not be installed")
    pictures = ROOT / "build" / "page"
    pictures.mkdir(parents=True, exist_ok=True)
    with running(Settings(f"sqlite:///{tmp_path}/page.db")) as server:
        wishes = CityWorld(3).subscriptions(5_000)
        rows = [record | {"subscriber": "others"} for record in wishes]
        with Client(server.url) as client:
            for row in rows[:50]:
                assert client._http.post("/v1/subscriptions", json=row).status_code == 201
        with fed(server.url):
            browser = [sys.executable, str(ROOT / "web" / "build.py"), "--", "node", "--test", "test/page.mjs"]
            told = {"NEARCAST_PAGE": server.url, "NEARCAST_PICTURES": str(pictures), "CHROMIUM": CHROMIUM}
            assert subprocess.call(browser, env=os.environ | told, timeout=900) == 0
        left = server.client.get("/v1/subscriptions", params={"subscriber": "me"}).json()["subscriptions"]
        assert {wish["kind"] for wish in left} >= {"match", "rank"}
