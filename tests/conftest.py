"""Settings of the whole run: Hypothesis profiles, order, temporary files, what is traced, one signature per kernel."""

from __future__ import annotations

import gc
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nearcast.kernels import jit
from tests.benched import doubles, real_folder, timings  # noqa: F401  # fixtures
from tests.stores import new_url, postgres_server  # noqa: F401  # fixtures

_slow = [HealthCheck.too_slow]
settings.register_profile(
    "laws", deadline=None, max_examples=10 if jit.PURE else 20, suppress_health_check=_slow, derandomize=True
)
_many = int(os.environ.get("NEARCAST_EXAMPLES", "500"))
settings.register_profile("thorough", deadline=None, max_examples=_many, suppress_health_check=_slow)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "laws"))

IN_MEMORY, ENOUGH = Path("/dev/shm"), 4 << 30
if IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ENOUGH:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))  # snapshots are ten thousands of small files

COMPILED_ONLY = tuple(Path(__file__).parent / folder for folder in ("service", "spark"))
"""Folders that the pure run leaves out."""

FIRST = ("strata", "ap-tree", "rank-strata-rank", "spark")
"""Groups that begin: they compile what others then find compiled, or take long on one worker."""


@pytest.hookimpl(trylast=True)  # when all groups are known
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long groups before short ones, single tests last: so no worker is left alone with much to do."""
    sizes = Counter(_group(item) for item in items)

    def turn(item: pytest.Item) -> tuple[bool, int, int, str]:
        name = _group(item)
        return (not name, FIRST.index(name) if name in FIRST else len(FIRST), -sizes[name], name)

    items.sort(key=turn)
    for item in items:
        if not jit.PURE and not _is_compiled_only(item):
            item.add_marker(pytest.mark.no_cover)  # the pure run measures it; tracing the compiler doubles its time


def _is_compiled_only(item: pytest.Item) -> bool:
    left_out = any(folder in item.path.parents for folder in COMPILED_ONLY)
    return left_out or item.get_closest_marker("skipif") is not None


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark else ""


def pytest_collection_finish() -> None:
    """Thousands of modules and tests are there to stay: the collector need not visit them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def every_kernel_keeps_one_signature() -> Iterator[None]:
    """After all tests: a second signature means an argument got past the seal, and a request would wait."""
    yield
    several = {name: n for name, n in jit.signatures().items() if n > 1}
    assert not several, f"kernels compiled for several layouts: {several}"
