"""A server in memory for the tests that need no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nearcast.service.settings import Limits, Settings
from tests.service.serving import Running, running


@pytest.fixture
def server() -> Iterator[Running]:
    limits = Limits(body_bytes=2_000_000, rows=1000, text_characters=200_000, vertices=50, outbox=5)
    with running(Settings("memory:", limits=limits)) as served:
        yield served
