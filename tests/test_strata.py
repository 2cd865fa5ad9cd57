"""`strata` beyond the laws: its structure stays whole, odd worlds stay right, threads do not meet."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nearcast import indexes, snapshot
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import CatalogueError, ColumnsError, SnapshotError
from nearcast.geo import plane
from nearcast.indexes.strata import PART, Strata
from nearcast.kernels.jit import PURE
from nearcast.kernels.strata_layout import BRANCH_TOP, EDGE, LAST, LEVEL, NEVER, NO_PARENT, PARENT, RUN, USED, cell
from nearcast.workloads import messages, subscriptions
from tests.tiny import TINY

SMALL, LARGE = (60, 300) if PURE else (3000, 30_000)
FIELDS = np.array([0, 16, 32, 48], dtype=np.uint64)


def fields(words: np.ndarray) -> np.ndarray:
    return (words[..., None] >> FIELDS) & np.uint64(0x7FFF)


def check(index: Strata) -> None:
    """Every live entry stands in exactly one lane, and bounds hold what is below them."""
    strata, live = index._arrays.view, index.table.live_entries()
    lanes = index._place[live]
    assert (strata.entries[lanes] == live).all()
    assert len(np.unique(lanes)) == len(live)
    assert (strata.children[: strata.state[BRANCH_TOP], :16] & 31).max(initial=0) <= 16
    in_leaves = strata.parents[lanes >> 4] != NO_PARENT
    where = strata.parents[lanes[in_leaves] >> 4]
    bounds = strata.bounds[where >> 4, :, where & 15]
    boxes = fields(strata.boxes[lanes[in_leaves]])
    assert (fields(bounds[:, 0]) <= boxes).all()
    assert (boxes <= fields(bounds[:, 1])).all()
    for branch in np.unique(where >> 4):
        above = int(strata.children[branch, PARENT])
        if above >= 0:
            n = int(strata.children[branch, USED])
            low, high = fields(strata.bounds[above >> 4, :, above & 15])
            assert (low <= fields(strata.bounds[branch, 0, :n])).all()
            assert (fields(strata.bounds[branch, 1, :n]) <= high).all()
            assert strata.children[above >> 4, LEVEL] == strata.children[branch, LEVEL] + 1
    assert index.anatomy().lengths.sum() == len(live)


def columns(boxes: list, terms: list[list[int]]) -> SubscriptionColumns:
    starts = np.cumsum([0] + [len(t) for t in terms])
    return SubscriptionColumns.from_flat(np.array(boxes, dtype=float), starts, np.concatenate(terms).astype(np.int32))


def batch(boxes: list, terms: list[list[int]]) -> MessageBatch:
    starts = np.cumsum([0] + [len(t) for t in terms])
    return MessageBatch.from_flat(np.array(boxes, dtype=float), starts, np.concatenate(terms).astype(np.int32))


def agree(index: Strata, scan: indexes.EntryIndex, probe: MessageBatch) -> None:
    assert index.match(probe).as_set() == scan.match(probe).as_set()


def test_structure_stays_whole_while_it_changes() -> None:
    probe = messages(40 if PURE else 200, 3)
    index, scan = indexes.create("strata"), indexes.create("scan")
    assert isinstance(index, Strata)
    rng = np.random.default_rng(0)
    held = np.zeros(0, dtype=np.int32)
    for step in range(6):
        more = subscriptions(probe, SMALL if step else LARGE, step, zipf=1.2)
        for each in (index, scan):
            added = each.insert(more)
        held = np.concatenate([held, added])
        gone = rng.choice(held, len(held) // (2 if step % 2 else 10), replace=False)
        held = np.setdiff1d(held, gone)
        for each in (index, scan):
            each.remove(gone)
        check(index)
        agree(index, scan, probe)
    index.remove(held)
    check(index)
    assert (index._arrays.view.keys[: index._arrays.n_rows, :2] == NEVER).all()


@pytest.mark.parametrize("options", [o for _, o in (TINY[name] for name in TINY if name.endswith("strata"))])
def test_small_leaves_make_high_trees_that_stay_whole(options: dict[str, int]) -> None:
    """A few hundred subscriptions already split and join leaves and branches, over several levels."""
    rng = np.random.default_rng(5)
    n = 150 if PURE else 600
    corners = np.sort(rng.integers(0, 40, (n, 2, 2)), axis=1).reshape(-1, 4)[:, [0, 1, 2, 3]]
    terms = [sorted({1, *rng.integers(1, 5, rng.integers(0, 3)).tolist()}) for _ in range(n)]
    probe = batch([(x, x, x + 3, x + 3) for x in range(0, 40, 4)], [[1, 2, 3, 4]] * 10)
    index, scan = indexes.create("strata", **options), indexes.create("scan")
    assert isinstance(index, Strata)
    held: list[int] = []
    for first in range(0, n, 30):
        more = columns(corners[first : first + 30].tolist(), terms[first : first + 30])
        held += [index.insert(more), scan.insert(more)][0].tolist()
        check(index)
        agree(index, scan, probe)
    assert index.anatomy().levels.max() >= (2 if options["leaf"] > 4 else 3)
    leaves = index.report().details["leaves"]
    rng.shuffle(held)
    while held:
        gone, held = held[:25], held[25:]
        for each in (index, scan):
            each.remove(gone)
        check(index)
        agree(index, scan, probe)
        if len(held) < n // 2:
            assert index.report().details["leaves"] < leaves
    assert index.report().details["leaves"] == 0


@pytest.mark.parametrize(
    ("option", "value"), [("leaf", 1), ("leaf", 17), ("fanout", 3), ("fanout", 8.0), ("small", -1), ("chunk", 0)]
)
def test_an_option_that_cannot_be_is_told_with_what_can(option: str, value: float) -> None:
    with pytest.raises(CatalogueError, match=f"{option} {value} given; a whole number from"):
        indexes.create("strata", **{option: value})


def test_few_subscriptions_after_many_take_no_more_room_than_they_did() -> None:
    probe = messages(50, 3)
    wishes = subscriptions(probe, LARGE, 1, keywords=(1, 1))
    index = indexes.build("strata", wishes)
    before = index.report().bytes_total
    for _ in range(3):
        index.remove(np.arange(0, LARGE, 2))
        index.insert(subscriptions(probe, len(range(0, LARGE, 2)), 2, keywords=(1, 1)))
    assert index.report().bytes_total < 1.4 * before
    check(index)


@pytest.mark.parametrize("n", [RUN, RUN + 1, LARGE])
def test_all_the_same(n: int) -> None:
    """One term, one point: nothing to split by, and nothing quadratic."""
    same = columns([(3, 3, 3, 3)] * n, [[7]] * n)
    index = indexes.build("strata", same)
    index.insert(same)
    probe = batch([(3, 3, 3, 3), (2, 2, 3, 3), (3.1, 3, 4, 4)], [[7], [1, 7, 9], [7]])
    assert np.bincount(index.match(probe).message, minlength=3).tolist() == [2 * n, 2 * n, 0]
    index.remove(np.arange(n))
    check(index)
    assert len(index.match(probe).message) == 2 * n


def test_regions_that_cover_the_world_and_far_outside_the_frame() -> None:
    rng = np.random.default_rng(1)
    corners = np.sort(rng.normal(0, 1, (SMALL, 2, 2)), axis=1)
    boxes = [*corners.reshape(-1, 4)[:, [0, 1, 2, 3]], *[(-1e308, -1e308, 1e308, 1e308)] * 50]
    terms = [[int(t)] for t in rng.integers(0, 3, len(boxes))]
    far = [(1e6, 1e6, 1e6 + k, 1e6 + k) for k in range(50)] + [(-1e300, 0, -1e299, 1)] * 20
    index, scan = indexes.build("strata", columns(boxes, terms)), indexes.build("scan", columns(boxes, terms))
    for each in (index, scan):
        each.insert(columns(far, [[1]] * len(far)))
    places = [(0, 0, 0, 0), (1e6 + 3, 1e6, 1e6 + 3, 1e6 + 9), (-1e305, -5, 0, 5), (1e308, 1e308, 1e308, 1e308)]
    agree(index, scan, batch(places, [[0, 1, 2]] * len(places)))


def test_cells_never_fall() -> None:
    xs = np.sort(np.concatenate([np.linspace(-3, 4, 4001), [-1e308, -1e9, 1e9, 1e308, 0.0, 1.0]]))
    cells = [int(_cell(x)) for x in xs.tolist()]
    assert cells == sorted(cells)
    assert (cells[0], cells[-1]) == (0, LAST)
    assert _cell(0.0) == EDGE


def _cell(x: float) -> int:
    function = cell if PURE else cell.py_func
    return int(function(x, 0.0, 1.0))


def test_messages_of_ten_thousand_terms_and_terms_never_seen() -> None:
    probe = messages(50, 3)
    wishes = subscriptions(probe, SMALL, 1)
    index, scan = indexes.build("strata", wishes), indexes.build("scan", wishes)
    n = 1000 if PURE else 10_000
    top = int(probe.terms.max())
    everything = [sorted({*probe.terms.tolist(), *range(top + 1, top + n)}), [top + 5], []]
    agree(index, scan, batch([(0, 0, 1, 1)] * 3, everything))
    new = columns([(0, 0, 1, 1)] * 100, [[top + 5, top + 9 + k] for k in range(100)])
    for each in (index, scan):
        each.insert(new)
    agree(index, scan, batch([(0, 0, 1, 1)] * 3, everything))


def test_a_clause_has_at_most_so_many_terms_as_can_be_counted() -> None:
    index, most = indexes.build("strata", columns([(0, 0, 1, 1)], [[3]])), 32_767
    with pytest.raises(CatalogueError, match="row 1: a clause of 32,768 required terms given; 32,767 at most"):
        index.insert(columns([(0, 0, 1, 1)] * 2, [[1], list(range(most + 1))]))
    assert index.report().live == 1
    index.insert(columns([(0, 0, 1, 1)], [list(range(most))]))
    assert index.match(batch([(0, 0, 1, 1)] * 2, [list(range(most)), list(range(1, most))])).as_set() == {
        (0, 0),
        (0, 1),
        (1, 0),
    }


def test_a_small_index_finds_its_frame_as_it_grows() -> None:
    """One by one from a point outwards: cells stay fine enough to tell places apart."""
    index = indexes.create("strata")
    assert isinstance(index, Strata)
    for k in range(64):
        index.insert(columns([(k, k, k + 0.5, k + 0.5)], [[1]]))
    pairs = index.match(batch([(k + 0.2, k + 0.2, k + 0.2, k + 0.2) for k in range(64)], [[1]] * 64))
    assert pairs.as_set() == {(k, k) for k in range(64)}
    assert index._frame[2] < 1 / 30


def test_two_threads_on_one_index() -> None:
    probe = messages(40 if PURE else 400, 3)
    index = indexes.build("strata", subscriptions(probe, LARGE, 1))
    truth, seen = index.match(probe).as_set(), []
    threads = [threading.Thread(target=lambda: seen.append(index.match(probe).as_set())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [truth] * 4
    assert index.report().candidates % 5 == 0  # five equal calls, each counted whole


def test_matching_while_others_insert_and_remove() -> None:
    """A match sees each change whole or not at all: settled subscriptions always, nothing that was never there."""
    probe = messages(20 if PURE else 200, 3)
    settled, coming = subscriptions(probe, LARGE, 1), subscriptions(probe, SMALL, 2)
    index = indexes.build("strata", settled)
    least = index.match(probe).as_set()
    both = indexes.build("strata", settled)
    both.insert(coming)
    most, seen, stop = both.match(probe).as_set(), [], threading.Event()

    def keep_matching() -> None:
        while not stop.is_set():
            seen.append(index.match(probe).as_set())

    threads = [threading.Thread(target=keep_matching) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(2 if PURE else 10):
        index.remove(np.sort(index.insert(coming)))
    stop.set()
    for thread in threads:
        thread.join()
    assert seen
    assert all(least <= found <= most for found in seen)
    assert index.match(probe).as_set() == least
    assert index.report().messages == len(probe) * (len(seen) + 2)
    check(index)


def test_a_large_insertion_is_made_in_parts_and_all_or_nothing() -> None:
    """More than one turn's worth: readers come between the parts, slots are in the order of the columns."""
    n = 2 * PART + 5
    some = columns([(k, 0, k, 0) for k in range(n)], [[k % 7] for k in range(n)])
    index = indexes.build("strata", columns([(-1, -1, -1, -1)] * (n + 1), [[9]] * (n + 1)))
    with pytest.raises(ColumnsError, match="plane"):
        index.insert(replace(some, space=plane(0, 0, 1, 1)))
    assert index.report().live == n + 1
    slots = index.insert(some)
    asked = [3, PART - 1, PART, n - 1]
    pairs = index.match(batch([(k, 0, k, 0) for k in asked], [[k % 7] for k in asked]))
    assert pairs.as_set() == {(i, int(slots[k])) for i, k in enumerate(asked)}
    with pytest.raises(CatalogueError, match="not in use"):
        index.remove(np.append(slots, 10 * n))
    assert index.report().live == 2 * n + 1
    index.remove(slots)
    assert index.report().live == n + 1
    assert len(index.insert(some.__class__.from_flat(np.zeros((0, 4)), [0], []))) == 0
    check(index)


def test_a_snapshot_of_an_earlier_layout_is_told(tmp_path: Path) -> None:
    indexes.build("strata", columns([(0, 0, 1, 1)], [[1]])).save(tmp_path / "s")
    arrays, meta = snapshot.load(tmp_path / "s")
    snapshot.save(tmp_path / "s", arrays | {"index.layout": np.array([1])}, meta)
    with pytest.raises(SnapshotError, match="earlier layout"):
        indexes.load(tmp_path / "s")


def test_a_snapshot_holds_what_is_used_and_not_the_room_behind(tmp_path: Path) -> None:
    index = indexes.build("strata", columns([(0, 0, 1, 1)], [[100_000]]))
    index.insert(columns([(0, 0, 1, 1)], [[100_001]]))
    index.save(tmp_path / "s")
    assert sum(file.stat().st_size for file in (tmp_path / "s").iterdir()) < 5_000_000
    again = indexes.load(tmp_path / "s")
    again.insert(columns([(0, 0, 1, 1)], [[300_000]]))
    again.save(tmp_path / "s")
    assert sum(file.stat().st_size for file in (tmp_path / "s").iterdir()) < 15_000_000


@pytest.mark.skipif(PURE, reason="nothing is compiled in the pure mode")
def test_the_portable_path_gives_the_same_answers() -> None:
    script = (
        "from nearcast import indexes; from nearcast.workloads import messages, subscriptions; b = messages(100, 3); "
        "s = subscriptions(b, 3000, 1); i, k = indexes.build('strata', s), indexes.build('scan', s); "
        "assert i.match(b).as_set() == k.match(b).as_set(); print('same')"
    )
    environment = os.environ | {"NEARCAST_PREFETCH": "0", "NEARCAST_VECTORS": "0"}
    told = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "same"
