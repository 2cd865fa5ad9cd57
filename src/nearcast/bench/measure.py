"""Clock, memory and machine: everything the bench measures from outside."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.kernels import jit

T = TypeVar("T")
_SHORTEST = 0.05  # seconds of one timing; faster passes are repeated, for noise would drown them
_LONG_ENOUGH = 0.2  # seconds of a pass to which cold caches no longer matter


class Matcher(Protocol):
    def match(self, batch: MessageBatch) -> Any: ...


class Timed(NamedTuple, Generic[T]):
    value: T
    seconds: float
    compiled: bool  # a kernel was compiled or loaded meanwhile: the time says nothing


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection inside: it would hit whoever happens to be measured."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def timed(call: Callable[[], T]) -> Timed[T]:
    before = _compiled()
    start = time.perf_counter()
    value = call()
    seconds = time.perf_counter() - start
    return Timed(value, seconds, _compiled() > before)


def _compiled() -> int:
    return sum(jit.signatures().values())


class Spent(NamedTuple):
    """Seconds by the wall, and of the processor: where the first is much more, others had the core meanwhile."""

    wall: float
    cpu: float


def per_message(index: Matcher, batches: Sequence[MessageBatch]) -> Spent:
    """Seconds a message of a pass over all batches, the results thrown away.

    A short pass is repeated, and its first time does not count: another contestant has just used the caches.
    """
    n = sum(map(len, batches))
    passes, spent = 1, _pass(index, batches)
    if spent.wall < _LONG_ENOUGH:
        passes, spent = 0, Spent(0.0, 0.0)
        while spent.wall < _SHORTEST:
            wall, cpu = _pass(index, batches)
            passes, spent = passes + 1, Spent(spent.wall + wall, spent.cpu + cpu)
    return Spent(spent.wall / (passes * n), spent.cpu / (passes * n))


def _pass(index: Matcher, batches: Sequence[MessageBatch]) -> Spent:
    cpu, wall = time.process_time(), time.perf_counter()
    for batch in batches:
        index.match(batch)
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def latencies(index: Matcher, singles: Sequence[MessageBatch]) -> NDArray[np.float64]:
    """Seconds of each call, one message a call, with what the call itself costs."""
    nanoseconds = np.empty(len(singles), dtype=np.int64)
    index.match(singles[0])
    for i, single in enumerate(singles):
        start = time.perf_counter_ns()
        index.match(single)
        nanoseconds[i] = time.perf_counter_ns() - start
    return nanoseconds / 1e9


def affordable(seconds: float, each: float, least: int, most: int) -> int:
    """How many things that take `each` seconds fit, between the two bounds."""
    return max(min(least, most), min(most, int(seconds / max(each, 1e-9))))


def resident() -> int | None:
    """Bytes of this process in memory; None where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def load() -> float | None:
    """How many processes wanted a core during the last minute: above the cores, times are noisy."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def machine() -> dict[str, Any]:
    """What a reader must know to compare with another run."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "compiled": not jit.PURE,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None
