"""Settings of the whole run: Hypothesis profiles, real data, one signature per kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from nearcast.kernels import jit
from tests.stores import new_url, postgres_server  # noqa: F401  # fixtures

_slow = [HealthCheck.too_slow]
settings.register_profile(
    "laws", deadline=None, max_examples=10 if jit.PURE else 20, suppress_health_check=_slow, derandomize=True
)
_many = int(os.environ.get("NEARCAST_EXAMPLES", "500"))
settings.register_profile("thorough", deadline=None, max_examples=_many, suppress_health_check=_slow)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "laws"))


@pytest.fixture(scope="session", autouse=True)
def every_kernel_keeps_one_signature() -> Iterator[None]:
    """After all tests: a second signature means an argument got past the seal, and a request would wait."""
    yield
    several = {name: n for name, n in jit.signatures().items() if n > 1}
    assert not several, f"kernels compiled for several layouts: {several}"
