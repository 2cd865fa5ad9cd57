"""The laws of ranking: after every step, every ranking is the reference's; for all rankers, in both modes."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import ranking
from nearcast.errors import CatalogueError, ColumnsError
from nearcast.geo import plane
from nearcast.idf import Idf
from nearcast.kernels import rank_refill
from nearcast.kernels.jit import PURE, kernel
from nearcast.ranking import Changes, PostColumns, Window, WindowError, WishColumns
from nearcast.ranking.refill import Pace, find_refill
from nearcast.ranking.strata_rank import StrataRank
from nearcast.workloads import SHORT
from nearcast.workloads import messages as generate_messages
from nearcast.workloads import subscriptions as generate_subscriptions
from tests.ranked_worlds import SQUARE, Play, Step, Stream, flat_streams, round_streams


def _case(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.xdist_group(f"rank-{name.partition(':')[0]}"))


every_ranker = pytest.mark.parametrize("name", [_case(name) for name in ranking.names()])


@every_ranker
@given(stream=flat_streams, batched=st.booleans())
def test_rankings_and_changes_are_the_reference_s(name: str, stream: Stream, batched: bool) -> None:
    Play(name, stream, batched).run()


@every_ranker
@given(stream=round_streams, batched=st.booleans())
def test_rankings_on_the_earth(name: str, stream: Stream, batched: bool) -> None:
    Play(name, stream, batched).run()


@every_ranker
@given(stream=flat_streams)
def test_numbers_that_start_anew_change_nothing(name: str, stream: Stream) -> None:
    play = Play(name, stream, True)
    assert isinstance(play.ranker, ranking.Ranker)
    play.ranker.renumber_from = 1
    play.run()


@given(stream=flat_streams, batched=st.booleans())
def test_threads_change_nothing(stream: Stream, batched: bool) -> None:
    Play("strata-rank", stream, batched, threads=2).run()


def _long_stream(seed: int, window: Window) -> Stream:
    """Many messages for few small wishes, so that buffers run dry and are refilled from the window."""
    chance = Random(seed)
    words, alphas = "abcdef", [0.0, 0.3, 0.5, 1.0]

    def some(most: int) -> tuple[str, ...]:
        return tuple(chance.choices(words, weights=[9, 5, 3, 2, 1, 1], k=chance.randint(1, most)))

    def place() -> tuple[float, float]:
        return float(chance.randint(0, 8)), float(chance.randint(0, 8))

    wishes = [(some(3), place(), chance.choice([1, 1, 2]), chance.choice(alphas)) for _ in range(10)]
    posts = [(some(4), place(), chance.choice([0, 1])) for _ in range(80 if PURE else 160)]
    rows = [(text, (*at, *at), gap) for text, at, gap in posts]
    steps = [Step(posts=rows[first : first + 8]) for first in range(0, len(rows), 8)]
    return Stream(SQUARE, window, (0.5, 1.0, 1.3, 2.0, 3.0, 3.7), [Step(wishes=wishes), *steps])


@every_ranker
@pytest.mark.parametrize("window", [Window(count=25), Window(seconds=12.0)])
def test_refills_from_the_window_are_the_reference_s(name: str, window: Window) -> None:
    refills = 0
    for seed in range(1 if PURE else 2):
        play = Play(name, _long_stream(seed, window), True)
        play.run()
        refills += play.ranker.report().refills - 10
    assert refills > 0 or (PURE and name.endswith(":skyband"))  # which buffers more, and runs dry later


def _large(n_wishes: int, n_messages: int, seed: int) -> tuple[WishColumns, list[PostColumns]]:
    """Few words and many wishes, so that lists have several blocks and cells are split."""
    style = replace(SHORT, vocabulary=100, clusters=5, words=(2, 6), zipf=1.2)
    batch = generate_messages(n_messages, seed, style)
    wanted = generate_subscriptions(generate_messages(200, seed + 1, style), n_wishes, seed, keywords=(1, 4), area=None)
    chance = np.random.default_rng(seed)
    idf = Idf(np.log1p(n_messages / np.maximum(np.bincount(batch.terms, minlength=100), 1)))
    k, alpha = chance.integers(1, 6, n_wishes, dtype=np.int32), chance.choice([0.0, 0.3, 0.6, 1.0], n_wishes)
    wishes = WishColumns.from_flat(wanted.boxes[:, :2], k, alpha, wanted.term_from, wanted.terms, idf)
    cuts = [slice(first, first + 50) for first in range(0, n_messages, 50)]
    starts = batch.term_from
    posts = [
        PostColumns.from_flat(
            batch.boxes[cut],
            starts[cut.start : cut.stop + 1] - starts[cut.start],
            batch.terms[starts[cut.start] : starts[cut.stop]],
            idf,
            np.arange(cut.start, cut.stop) // 3,
        )
        for cut in cuts
    ]
    return wishes, posts


def _as_set(changes: Changes) -> set[tuple[int, int, int, bool]]:
    return set(zip(*(column.tolist() for column in changes[:4]), strict=True))


@every_ranker
@pytest.mark.parametrize("window", [Window(count=120), Window(seconds=50.0)])
def test_larger_worlds_agree_with_the_scan(name: str, window: Window) -> None:
    n_wishes, n_messages = (60, 100) if PURE else (3000, 1000)
    wishes, posts = _large(n_wishes, n_messages, 3)
    more, _ = _large(n_wishes // 3, 50, 5)
    square = plane(0, 0, 1, 1)
    both = [ranking.create(each, window, square) for each in (name, "scan")]
    assert isinstance(both[0], ranking.Ranker)
    both[0].renumber_from = 1
    both[0].seal_from(16)
    slots = [ranker.subscribe(wishes) for ranker in both]
    n_changes = 0
    for number, columns in enumerate(posts):
        ours, scan = (ranker.arrive(columns) for ranker in both)
        assert _as_set(ours) == _as_set(scan)
        n_changes += len(ours.seq)
        if number == 1:
            for ranker, held in zip(both, slots, strict=True):
                ranker.unsubscribe(held[::2])
                ranker.subscribe(more)
    ours, scan = (ranker.ranking(int(slots[0][1])) for ranker in both)
    assert ours.seq.tolist() == scan.seq.tolist()
    assert n_changes > n_messages


@pytest.mark.parametrize("most_fresh", [1, 4, 256])
def test_time_that_passes_leaves_nothing_for_later_however_many_are_refilled(
    monkeypatch: pytest.MonkeyPatch, most_fresh: int
) -> None:
    """Half of the window goes at once, so that many buffers run dry: all of that is told by `advance` itself."""
    monkeypatch.setattr("nearcast.ranking.table.MOST_FRESH", most_fresh)
    wishes, posts = _large(*((40, 100) if PURE else (2000, 300)), 3)
    ours, other = (
        ranking.create(each, Window(seconds=50.0), plane(0, 0, 1, 1)) for each in ("strata-rank", "scan:kmax")
    )
    slots = ours.subscribe(wishes)
    other.subscribe(wishes)
    for columns in posts:
        assert _as_set(ours.arrive(columns)) == _as_set(other.arrive(columns))
    before, now = ours.report().refills, float(posts[-1].ts[-1])
    for later in (25.0, 40.0):
        assert _as_set(ours.advance(now + later)) == _as_set(other.advance(now + later))
        for slot in slots.tolist():
            assert ours.ranking(slot).seq.min(initial=ours.oldest) >= ours.oldest
    assert ours.report().refills - before > most_fresh or PURE


def test_lists_are_laid_out_anew_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.ranking.sheets.MANY_MOVES", 0.1)
    wishes, posts = _large(*((300, 150) if PURE else (3000, 1000)), 3)
    ours, scan = (ranking.create(each, Window(count=120), plane(0, 0, 1, 1)) for each in ("strata-rank", "scan"))
    assert isinstance(ours, StrataRank)
    ours.piece = 200
    slots = [ranker.subscribe(wishes)[::3] for ranker in (ours, scan)]
    for number, columns in enumerate(posts):
        assert _as_set(ours.arrive(columns)) == _as_set(scan.arrive(columns))
        if number == 1:
            ours.unsubscribe(slots[0])
            scan.unsubscribe(slots[1])
    assert ours.report().details["lists laid out anew"] > (1 if PURE else 50)


@every_ranker
@pytest.mark.parametrize("window", [Window(count=120), Window(seconds=50.0)])
@pytest.mark.parametrize("wishes_first", [False, True])
def test_a_window_that_is_loaded_is_one_that_arrived(name: str, window: Window, wishes_first: bool) -> None:
    wishes, posts = _large(*((40, 200) if PURE else (500, 400)), 7)
    loaded, slow = (ranking.create(each, window, plane(0, 0, 1, 1)) for each in (name, "scan"))
    loaded.seal_from(16)
    if wishes_first:
        loaded.subscribe(wishes)
    for columns in posts[:-1]:
        loaded.load(columns)
        slow.arrive(columns)
    if not wishes_first:
        loaded.subscribe(wishes)
    slots = slow.subscribe(wishes)
    for slot in slots.tolist():
        assert loaded.ranking(slot).seq.tolist() == slow.ranking(slot).seq.tolist()
    assert _as_set(loaded.arrive(posts[-1])) == _as_set(slow.arrive(posts[-1]))


@every_ranker
def test_new_wishes_find_a_batch_that_just_arrived_on_shelves(name: str) -> None:
    """Or each of them would read all of its messages."""
    wishes, posts = _large(*((40, 200) if PURE else (500, 400)), 7)
    ranker, slow = (ranking.create(each, Window(count=300), plane(0, 0, 1, 1)) for each in (name, "scan"))
    assert isinstance(ranker, ranking.Ranker)
    ranker.seal_from(16)
    for each in (ranker, slow):
        each.arrive(posts[0])
    assert ranker.store.shelves.sizes() == []
    slots = [each.subscribe(wishes).tolist() for each in (ranker, slow)]
    assert sum(ranker.store.shelves.sizes()) == min(300, len(posts[0]))
    for ours, other in zip(*slots, strict=True):
        assert ranker.ranking(ours).seq.tolist() == slow.ranking(other).seq.tolist()


@kernel
def _walk(away, width, rise):  # type: ignore[no-untyped-def]
    return rank_refill.steps_to_the_cliff(away, width, rise)


@kernel
def _cover(k, most, policy):  # type: ignore[no-untyped-def]
    return rank_refill.cheapest_cover(k, most, policy)


def test_the_cost_model_is_the_paper_s_and_follows_the_pace_of_a_window_of_time() -> None:
    """Equation 12 for equal chances; fewer messages are kept in reserve while a window grows, more while it shrinks."""
    k, policy = 20, find_refill("cskyband").policy()
    for r in (20, 27, 60):
        away = r - k + 1.0
        paper = 2.0 * away * r + away * (away + 1.0)
        assert _walk(away, 2.0 * r - k + 1.0, 1.0) == pytest.approx(paper / 2)
        near = _walk(away, 2.0 * r - k + 1.0, 1.002)
        assert near == pytest.approx(paper / 2, rel=0.2)
    policy[rank_refill.EVALUATION] = 50_000.0
    covers = []
    for arrived, expired in ((9, 1), (1, 1), (1, 9)):
        policy[rank_refill.EXPIRY_SHARE] = Pace(10.0).share_of_expiries(1000 * arrived, 1000 * expired, 1.0)
        covers.append(_cover(k, 200, policy))
    assert k <= covers[0] < covers[1] < covers[2] < 200
    assert Pace(None).share_of_expiries(5, 0, 1.0) == 0.5


def test_bad_input_gets_a_clear_error() -> None:
    idf, one = Idf(), np.array([0, 1])
    for k, alpha, why in [(0, 0.5, "k must be 1"), (1, 1.5, "alpha must"), (1, -0.1, "alpha"), (1, np.nan, "alpha")]:
        with pytest.raises(ColumnsError, match=why):
            WishColumns.from_flat([[0.0, 0.0]], [k], [alpha], one, [0], idf)
    with pytest.raises(ColumnsError, match="at least one term"):
        WishColumns.from_flat([[0.0, 0.0]], [1], [0.5], [0, 0], np.zeros(0, np.int32), idf)
    with pytest.raises(ColumnsError, match="finite"):
        WishColumns.from_flat([[0.0, np.nan]], [1], [0.5], one, [0], idf)
    for bad in ({}, {"count": 0}, {"seconds": -1.0}, {"count": 1, "seconds": 1.0}, {"seconds": np.nan}):
        with pytest.raises(WindowError):
            Window(**bad)
    ranker = ranking.create("scan", Window(seconds=5.0))
    ranker.advance(10.0)
    for now, why in [(9.0, "does not run back"), (np.nan, "finite")]:
        with pytest.raises(WindowError, match=why):
            ranker.advance(now)
    with pytest.raises(ColumnsError, match="a time window needs ts"):
        ranker.arrive(PostColumns.from_flat(np.zeros((1, 4)), one, [0], idf))
    with pytest.raises(CatalogueError, match="ranker 'nope' given; there are scan"):
        ranking.create("nope", Window(count=1))
    with pytest.raises(CatalogueError, match="option 'colour' given"):
        ranking.create("scan", Window(count=1), colour="red")
    with pytest.raises(CatalogueError, match="refill 'none' given"):
        ranking.create("scan", Window(count=1), refill="none")
    with pytest.raises(CatalogueError, match="not in use"):
        ranker.unsubscribe([3])
    with pytest.raises(CatalogueError, match="threads: 0 given"):
        ranking.create("scan", Window(count=1), threads=0)
