"""Split terms of `strata`: chosen by cost, right while entries move, and right when the vocabulary drifts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nearcast import indexes
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.indexes import strata_cost
from nearcast.indexes.strata import Strata
from nearcast.indexes.strata_cost import Expected
from nearcast.kernels.jit import PURE
from nearcast.kernels.strata_layout import MOST_CLASSES, MOST_SPLITS
from tests.test_strata import agree, check

N = 300 if PURE else 4000
SMALL_TREES = {"leaf": 4, "fanout": 4, "small": 0, "chunk": 16}


def wishes(rng: np.random.Generator, n: int, low: int, high: int, side: int = 9) -> SubscriptionColumns:
    """Clauses of one to four terms in [low, high), boxes below this side."""
    counts = rng.integers(1, 5, n)
    terms = [np.sort(rng.choice(np.arange(low, high), count, replace=False)) for count in counts]
    corners = rng.integers(0, 30, (n, 2))
    boxes = np.hstack([corners, corners + rng.integers(0, side, (n, 2))]).astype(float)
    return SubscriptionColumns.from_flat(boxes, np.cumsum([0, *counts]), np.concatenate(terms).astype(np.int32))


def posts(rng: np.random.Generator, n: int, low: int, high: int, words: int) -> MessageBatch:
    terms = [np.sort(rng.choice(np.arange(low, high), words, replace=False)) for _ in range(n)]
    places = np.repeat(rng.integers(0, 40, (n, 2)), 2, axis=0).reshape(n, 4).astype(float)
    starts = np.arange(0, words * n + 1, words)
    return MessageBatch.from_flat(places, starts, np.concatenate(terms).astype(np.int32))


def split(index: Strata) -> int:
    return int(index.report().details["split"])


def made(**options: int) -> Strata:
    index = indexes.create("strata", **options)
    assert isinstance(index, Strata)
    return index


@pytest.mark.parametrize("words", [3, 200])
def test_messages_with_few_and_with_more_terms_than_classes(words: int) -> None:
    """By term where a message has fewer of them than there are classes, class by class where it has more."""
    rng = np.random.default_rng(words)
    index, scan = made(heavy=1 if PURE else 5), indexes.create("scan")
    columns = wishes(rng, N, 0, 260)
    index.insert(columns)
    scan.insert(columns)
    assert split(index) > 20
    agree(index, scan, posts(rng, 40, 0, 260, words))
    check(index)


def test_a_vocabulary_that_drifts_splits_what_became_heavy_a_part_at_a_time() -> None:
    rng = np.random.default_rng(3)
    index, scan = made(**SMALL_TREES, heavy=40), indexes.create("scan")
    held = np.zeros(0, dtype=np.int32)
    waited = False
    for step in range(40):
        low = step // 8
        more = wishes(rng, 200 if step == 0 else 15, low, low + 5)
        added = [index.insert(more), scan.insert(more)][0]
        waited |= len(index._moving) > 0
        check(index)
        agree(index, scan, posts(rng, 15, max(0, low - 8), low + 10, 5))
        held = np.concatenate([held, added])
        gone = rng.choice(held, len(held) // 20, replace=False)
        held = np.setdiff1d(held, gone)
        for each in (index, scan):
            each.remove(gone)
        check(index)
        agree(index, scan, posts(rng, 15, max(0, low - 8), low + 10, 5))
    assert split(index)
    assert waited
    while len(index._moving):
        one = wishes(rng, 50, 0, 40)
        for each in (index, scan):
            each.insert(one)
    agree(index, scan, posts(rng, 40, 0, 48, 6))
    for each in (index, scan):
        each.remove(held)
    agree(index, scan, posts(rng, 40, 0, 48, 6))
    check(index)


def test_a_snapshot_taken_while_entries_wait_to_be_moved(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    index, scan = made(**SMALL_TREES, heavy=30), indexes.create("scan")
    for size in (60, 25, 25, 25, 25, 25, 25):
        more = wishes(rng, size, 0, 6)
        index.insert(more)
        scan.insert(more)
        if len(index._moving):
            break
    assert split(index)
    index.save(tmp_path / "s")
    again = indexes.load(tmp_path / "s")
    assert isinstance(again, Strata)
    assert split(again) == split(index)
    probe = posts(rng, 30, 0, 6, 4)
    agree(again, scan, probe)
    again.remove(np.arange(0, 60, 2))
    scan.remove(np.arange(0, 60, 2))
    agree(again, scan, probe)
    check(again)


def test_splitting_pays_for_short_messages_and_heavy_lists_only() -> None:
    lengths, passing = np.array([4e5]), np.array([0.1])
    assert strata_cost.gains(lengths, passing, Expected(9.0, 1e-2), 0) > 0
    assert strata_cost.gains(lengths, passing, Expected(900.0, 1e-2), 0) < 0
    assert strata_cost.gains(lengths / 1e3, passing, Expected(9.0, 1e-2), 0) < 0
    assert strata_cost.gains(lengths, passing, Expected(9.0, 1e-5), 0) < 0
    assert strata_cost.gains(lengths, np.ones(1), Expected(9.0, 1e-2), 0) < 0


@pytest.mark.parametrize(("words", "pays"), [(4, True), (60, False)])
def test_the_history_decides(words: int, pays: bool) -> None:
    """Few words in all clauses, wide boxes: heavy lists; whether they are split depends on the messages."""
    rng = np.random.default_rng(7)
    history = posts(rng, 200, 0, 64, words)
    index, scan = indexes.create("strata", history), indexes.create("scan")
    assert isinstance(index, Strata)
    columns = wishes(rng, 20 * N if not PURE else N, 0, 64, 25)
    index.insert(columns)
    scan.insert(columns)
    assert (split(index) > 0) == (pays and not PURE)
    agree(index, scan, posts(rng, 20, 0, 64, words))


def test_classes_are_bounded_and_so_are_splits() -> None:
    for terms in (0.0, 1.0, 12.0, 1e9):
        assert 2 <= strata_cost.classes_for(Expected(terms, 0.1)) <= MOST_CLASSES
    n = MOST_SPLITS + 50
    keys, seconds = np.repeat(np.arange(n, dtype=np.int32), 2), np.full(2 * n, n, dtype=np.int32)
    choice = strata_cost.choose(keys, seconds, np.ones(n + 1, dtype=np.int32), Expected(), 1)
    assert len(choice.terms) == MOST_SPLITS
