"""Questions beyond time per message: a trial takes an index that was built and checked, and gives figures.

A trial leaves the index as it was. What is compared takes turns, round by round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from nearcast import indexes
from nearcast.bench.answers import Answer
from nearcast.bench.measure import quiet, timed
from nearcast.bench.spec import BenchError
from nearcast.bench.suite import Pace
from nearcast.bench.workload import Workload, batches, some
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.columns.encoder import TextEncoder
from nearcast.indexes.base import Index

THREADS = 2
_PASS = 0.2  # seconds: a pass over the messages is repeated until it has taken so long
_INSERTED = 1_000  # subscriptions of one call


@dataclass(frozen=True, slots=True)
class Setting:
    """What a trial works with."""

    index: Index
    batches: Sequence[MessageBatch]
    workload: Workload
    pace: Pace


Trial = Callable[[Setting], dict[str, float]]


def threads(given: Setting) -> dict[str, float]:
    """The same batches matched by one thread and by two."""
    shares = {n: [given.batches[i::n] for i in range(n)] for n in (1, THREADS)}
    n_messages = sum(map(len, given.batches))

    def work(share: Sequence[MessageBatch]) -> None:
        for batch in share:
            given.index.match(batch)

    with ThreadPoolExecutor(THREADS) as pool:

        def spread(n: int) -> None:
            list(pool.map(work, shares[n]))

        us = _in_turn({str(n): partial(spread, n) for n in shares}, n_messages, given.pace.repeat)
    one, several = us["1"], us[str(THREADS)]
    return {"µs, one thread": one, f"µs, {THREADS} threads": several, "gain": one / several}


def text(given: Setting) -> dict[str, float]:
    """From raw text to pairs, and from terms to pairs."""
    told = given.workload.texts
    if told is None:
        raise BenchError("the workload has no texts")
    encoder = TextEncoder(told.lexicon)
    starts = np.cumsum([0, *map(len, given.batches)])
    raw = [
        (told.texts[first : first + len(batch)], batch.boxes[:, :2] if _are_points(batch) else batch.boxes)
        for first, batch in zip(starts.tolist(), given.batches, strict=False)
    ]
    for (texts, places), batch in zip(raw, given.batches, strict=True):
        _require_same(encoder.encode(texts, places)[0], batch)

    def from_terms() -> None:
        for batch in given.batches:
            given.index.match(batch)

    def from_text() -> None:
        for texts, places in raw:
            given.index.match(encoder.encode(texts, places)[0])

    us = _in_turn({"terms": from_terms, "text": from_text}, int(starts[-1]), given.pace.repeat)
    ratio = us["text"] / us["terms"]
    return {"µs from terms": us["terms"], "µs from text": us["text"], "text / terms": ratio}


def snapshot(given: Setting) -> dict[str, float]:
    """Save, load, and the first calls afterwards, in this process."""
    newcomers, single = given.workload.newcomers, batches(given.workload.messages, 1, 1)[0]
    with TemporaryDirectory(prefix="nearcast-bench-") as folder, quiet():
        path = Path(folder) / "index"
        saved = timed(lambda: given.index.save(path))
        n_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        loaded = timed(lambda: indexes.load(path))
        matched = timed(lambda: loaded.value.match(single))
        _require_alike(loaded.value, given.index, given.batches[0])
        starts = range(0, len(newcomers), _INSERTED)
        parts = [some(newcomers, first, min(first + _INSERTED, len(newcomers))) for first in starts]
        calls = [timed(partial(loaded.value.insert, part)).seconds for part in parts]
    if not calls:
        raise BenchError("a snapshot trial needs newcomers: a churn above 0")
    return {
        "save s": saved.seconds,
        "MB": n_bytes / 1e6,
        "load ms": loaded.seconds * 1e3,
        "first match ms": matched.seconds * 1e3,
        "first insertion ms": calls[0] * 1e3,
        "longest of the others ms": max(calls[1:], default=calls[0]) * 1e3,
    }


def beside(given: Setting) -> dict[str, float]:
    """Single messages matched while another thread inserts, and the same messages matched alone.

    The first half of the newcomers comes in batches, the second in one call. Insertions are made without the clock,
    removals afterwards; what a match waits for is its time by the wall beyond that of the processor: its turn, the
    interpreter, and other processes, which the figures alone show as well.
    """
    singles, newcomers = batches(given.workload.messages, 1, given.pace.singles), given.workload.newcomers
    half = len(newcomers) // 2
    if not half:
        raise BenchError("a trial of matches beside insertions needs newcomers: a churn above 0")
    given.index.match(singles[0])
    parts = [some(newcomers, first, min(first + _INSERTED, half)) for first in range(0, half, _INSERTED)]
    rest = some(newcomers, half, len(newcomers))
    with quiet():
        alone = [_wait(given.index, single) for _ in range(given.pace.repeat) for single in singles]
        batched, seconds = _while_inserting(given.index, parts, singles)
        at_once, _ = _while_inserting(given.index, [rest], singles)
    return {
        "inserts/s": half / seconds,
        "matches beside": float(len(batched)),
        **_waits("alone", alone),
        **_waits("beside", batched),
        "longest wait, one call": _waits("", at_once)["longest wait "],
    }


def _while_inserting(
    index: Index, parts: Sequence[SubscriptionColumns], singles: Sequence[MessageBatch]
) -> tuple[list[tuple[float, float]], float]:
    """What matches waited for while another thread inserted the parts, and how long that took."""
    waits: list[tuple[float, float]] = []
    with ThreadPoolExecutor(1) as pool:
        start = time.perf_counter()
        inserting = pool.submit(lambda: [index.insert(part) for part in parts])
        while not inserting.done():
            waits.append(_wait(index, singles[len(waits) % len(singles)]))
        seconds = time.perf_counter() - start
    for slots in inserting.result():
        index.remove(slots)
    return waits, seconds


def _wait(index: Index, single: MessageBatch) -> tuple[float, float]:
    """Seconds of one call by the wall, and those of them that its thread did not work."""
    wall, cpu = time.perf_counter(), time.thread_time()
    index.match(single)
    cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
    return wall, max(0.0, wall - cpu)


def _waits(name: str, seconds: Sequence[tuple[float, float]]) -> dict[str, float]:
    took, waited = np.array(seconds or [(np.nan, np.nan)]).T * 1e3
    return {
        f"ms {name}, median": float(np.median(took)),
        f"wait {name}, 99.9 %": float(np.quantile(waited, 0.999)),
        f"longest wait {name}": float(waited.max()),
    }


TRIALS: dict[str, Trial] = {
    "threads": threads,
    "text": text,
    "snapshot": snapshot,
    "beside": beside,
}


def _in_turn(passes: dict[str, Callable[[], object]], n_messages: int, rounds: int) -> dict[str, float]:
    """Microseconds per message of each pass: the median of the rounds."""
    spent: dict[str, list[float]] = {name: [] for name in passes}
    with quiet():
        for _ in range(rounds):
            for name, call in passes.items():
                call()  # the other one has just used the caches
                start = time.perf_counter()
                n, seconds = 0, 0.0
                while not n or seconds < _PASS:
                    call()
                    n, seconds = n + 1, time.perf_counter() - start
                spent[name].append(seconds / (n * n_messages))
    return {name: median(seconds) * 1e6 for name, seconds in spent.items()}


def _are_points(batch: MessageBatch) -> bool:
    return bool((batch.boxes[:, :2] == batch.boxes[:, 2:]).all())


def _require_same(encoded: MessageBatch, batch: MessageBatch) -> None:
    """Before the clock: the text says exactly what the columns say."""
    for name in ("boxes", "term_from", "terms"):
        if not np.array_equal(getattr(encoded, name), getattr(batch, name)):
            raise BenchError(f"texts and terms of the workload differ in {name}")


def _require_alike(loaded: Index, index: Index, batch: MessageBatch) -> None:
    ours, theirs = (Answer.of(one.match(batch), len(batch)) for one in (loaded, index))
    at = ours.first_difference(theirs)
    if at is not None:
        raise BenchError(f"the loaded index answers message {at} differently")
