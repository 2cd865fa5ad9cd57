"""Random records as files have them: borders, the 180th meridian, NOT, phrases, polygons; and what is right."""

from __future__ import annotations

from random import Random
from typing import Any

from nearcast import reference
from nearcast.errors import NearcastError
from nearcast.geo import Space, earth
from nearcast.records import read_message, read_subscription
from nearcast.text import analyzer
from tests.worlds import WORDS

XS = [-180.0, -179.0, -90.0, 0.0, 1.0, 2.0, 90.0, 179.0, 180.0]
YS = [-90.0, -45.0, 0.0, 1.0, 2.0, 45.0, 90.0]


def subscriptions(chance: Random, n: int, flat: bool = False) -> list[dict[str, Any]]:
    """`flat`: on a plane of 8 x 8."""
    return [{"id": f"s{i}", "expression": _expression(chance), **_region(chance, flat)} for i in range(n)]


def messages(chance: Random, n: int, flat: bool = False) -> list[dict[str, Any]]:
    return [
        {"id": i, "text": " ".join(chance.choices(WORDS, k=chance.randint(1, 6))), **_place(chance, flat)}
        for i in range(n)
    ]


def truth(wishes: list[dict[str, Any]], posts: list[dict[str, Any]], space: Space = earth) -> set[tuple[int, str]]:
    """Pairs of ids by the reference; rows that are no messages or subscriptions have none."""
    wanted = _read(wishes, lambda record: read_subscription(record, space, analyzer()))
    posted = _read(posts, lambda record: read_message(record, space, analyzer()))
    return {(posted[m].id, wanted[s].id) for m, s in reference.match(wanted, posted, space)}


def is_subscription(record: dict[str, Any]) -> bool:
    return bool(_read([record], lambda given: read_subscription(given, earth, analyzer())))


def _read(records: list[dict[str, Any]], read: Any) -> list[Any]:
    values = []
    for record in records:
        try:
            values.append(read({k: v for k, v in record.items() if v is not None}))
        except NearcastError:
            continue
    return values


def _expression(chance: Random) -> str:
    return " OR ".join(f"({_clause(chance)})" for _ in range(chance.randint(1, 2)))


def _clause(chance: Random) -> str:
    words = chance.sample(WORDS, 3)
    clause = " AND ".join(words[: chance.randint(1, 2)])
    if chance.random() < 0.2:
        clause += f" AND NOT {words[2]}"
    if chance.random() < 0.15:
        clause = f'{clause} AND "{chance.choice(WORDS)} {chance.choice(WORDS)}"'
    return clause


def _axis(chance: Random, flat: bool) -> tuple[float, float, float, float]:
    xs = [float(x) for x in range(9)] if flat else XS
    ys = [float(y) for y in range(9)] if flat else YS
    west, east = chance.choice(xs), chance.choice(xs)
    south, north = sorted((chance.choice(ys), chance.choice(ys)))
    return (min(west, east), south, max(west, east), north) if flat else (west, south, east, north)


def _region(chance: Random, flat: bool) -> dict[str, Any]:
    west, south, east, north = _axis(chance, flat)
    kind = chance.random()
    if kind < 0.2:
        return {"lon": west, "lat": south, "radius_m": chance.choice([0.0, 1.0, 3.0] if flat else [0.0, 2e6, 1.2e7])}
    if kind < 0.35:
        return {"region": "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (2 2, 6 2, 6 6, 2 6, 2 2))"}
    return {"west": west, "south": south, "east": east, "north": north}


def _place(chance: Random, flat: bool) -> dict[str, Any]:
    west, south, east, north = _axis(chance, flat)
    if chance.random() < 0.6:
        return {"lon": west, "lat": south}
    return {"west": west, "south": south, "east": east, "north": north}
