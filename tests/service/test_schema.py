"""Whatever the OpenAPI allows, and much that it does not: never a 5xx, always an answer that is described."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from nearcast.service.app import create_app
from nearcast.service.settings import Settings
from nearcast.store import open_store
from tests.service.serving import Running, running


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def as_bytes(_: schemathesis.SerializationContext, value: Any) -> bytes:
    """Any bytes may come under these names."""
    data = getattr(value, "data", value)
    return data if isinstance(data, bytes) else str(data).encode(errors="replace")


schema = schemathesis.openapi.from_dict(create_app(Settings("memory:")).openapi()).exclude(path="/v1/events")
CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, dict[str, str]]]:
    """With a key from the start: the first one that is created would shut everybody else out."""
    path: Path = tmp_path_factory.mktemp("schema") / "a.db"
    store = open_store(f"sqlite:///{path}")
    key = store.api_keys.create("", "test", frozenset({"admin"}), {}, 0.0)
    store.close()
    with running(Settings(f"sqlite:///{path}"), key) as server:
        yield server, {"authorization": f"Bearer {key}"}


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_is_answered_with_an_error_of_ours(
    case: schemathesis.Case, guarded: tuple[Running, dict[str, str]]
) -> None:
    server, headers = guarded
    case.call_and_validate(base_url=server.url, headers=headers, checks=CHECKS)
