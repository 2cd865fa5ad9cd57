"""Rows as files and clients have them (mappings of plain values), to checked values.

Nothing is guessed or changed: what is not plainly legal raises RowError or another NearcastError that says
what came and what is allowed. The caller keeps such a row aside and goes on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from nearcast.errors import RowError
from nearcast.expression import Expression, from_words, parse
from nearcast.geo import Box, Circle, Region, Space, from_geojson, parse_region, to_geojson
from nearcast.geo.regions import shown
from nearcast.model import MAX_K, Id, Message, Move, Subscription, Wish
from nearcast.text import Analyzer, TextTokens, Token

MAX_TEXT = 1_000_000
MAX_TERMS = 100_000
MAX_WISHED = 32_767  # terms of a clause, which all must be there
MAX_ID = 500
SHOWN = 60
UNORDERED_GAP = 10_001
"""Between positions of words that came without an order: longer than any phrase, so that none matches."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SIDES = ("west", "south", "east", "north")
_LACKS_SIDES = frozenset(_SIDES).isdisjoint
_LAST_TIME = 253_402_300_799.0  # of the year 9999


def read_message(record: Mapping[str, Any], space: Space, analysis: Analyzer) -> Message:
    """Columns: id; text or terms; lon, lat or west, south, east, north; optional ts, ttl (seconds)."""
    _mapping(record)
    identity = read_id(record)
    tokens, text = _words(record, analysis)
    place, ts, ttl = space.check_place(_place(record)), _time(record, "ts"), _life(record)
    return Message(identity, tokens, place, ts, text, ttl=ttl)


def read_subscription(record: Mapping[str, Any], space: Space, analysis: Analyzer) -> Subscription:
    """Columns: id; expression or terms; region, or west, south, east, north, or lon, lat, radius_m;
    optional subscriber, expires, max_events."""
    _mapping(record)
    return Subscription(
        read_id(record),
        _expression(record, analysis),
        space.check_region(read_region(record)),
        read_id(record, "subscriber") if _given(record, "subscriber") else None,
        _time(record, "expires"),
        _count(record, "max_events"),
    )


def read_wish(record: Mapping[str, Any], space: Space, analysis: Analyzer) -> Wish:
    """Columns: id; text or terms; lon, lat; optional k (10), alpha (0.5), subscriber."""
    _mapping(record)
    identity = read_id(record)
    words = tuple(token.word for token in _words(record, analysis)[0])
    if not words:
        raise RowError(f"text: {_shown(record.get('text'))} given; at least one word needed")
    place = space.check_place(_place({name: record.get(name) for name in ("lon", "lat")}))
    k, alpha = _count(record, "k"), number(record, "alpha") if _given(record, "alpha") else 0.5
    if k is not None and k > MAX_K:
        raise RowError(f"k: {k:,} given; 1 to {MAX_K:,} allowed")
    if not 0.0 <= alpha <= 1.0:
        raise RowError(f"alpha: {alpha!r} given; 0 to 1 allowed")
    subscriber = read_id(record, "subscriber") if _given(record, "subscriber") else None
    return Wish(identity, words, place.west, place.south, 10 if k is None else k, alpha, subscriber)


def read_move(record: Mapping[str, Any], space: Space) -> Move:
    """Columns: id; ts; region, or west, south, east, north, or lon, lat, radius_m."""
    _mapping(record)
    ts = _time(record, "ts")
    if ts is None:
        raise RowError("ts: nothing given; a move needs its time")
    return Move(read_id(record), ts, space.check_region(read_region(record)))


def region_fields(region: Region) -> dict[str, Any]:
    """The fields that `read_subscription` reads this region from: four sides, a circle, or GeoJSON."""
    match region:
        case Box(west, south, east, north):
            return {"west": west, "south": south, "east": east, "north": north}
        case Circle(x, y, radius):
            return {"lon": x, "lat": y, "radius_m": radius}
    return {"region": to_geojson(region)}


def read_id(record: Mapping[str, Any], name: str = "id") -> Id:
    value = record.get(name)
    if isinstance(value, str) and 0 < len(value) <= MAX_ID:
        return _utf8(value, name)
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    raise RowError(f"{name}: {_shown(value)} given; text of 1 to {MAX_ID} characters or a 64-bit integer needed")


def number(record: Mapping[str, Any], name: str) -> float:
    """A finite number, or text that is plainly one (a file may have it so)."""
    value = record.get(name)
    if type(value) is float and -1e308 < value < 1e308:  # the usual case first
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip(" ")):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308:
        return float(value)
    raise RowError(f"{name}: {_shown(value)} given; a finite decimal number needed")


def _mapping(record: object) -> None:
    if type(record) is not dict and not isinstance(record, Mapping):
        raise RowError(f"{_shown(record)} given; an object with named fields needed")


def _given(record: Mapping[str, Any], name: str) -> bool:
    return record.get(name) not in (None, "")


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str | float | bool) else shown(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _utf8(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RowError(f"{name}: half a surrogate pair at character {error.start + 1}; Unicode text needed") from None
    return text


def _words(record: Mapping[str, Any], analysis: Analyzer) -> tuple[Sequence[Token], str | None]:
    if not _given(record, "text") and _given(record, "terms"):
        words = dict.fromkeys(_terms(record["terms"]))
        return tuple(Token(word, i * UNORDERED_GAP) for i, word in enumerate(words)), None
    text = record.get("text")
    if not isinstance(text, str):
        raise RowError(f"text: {_shown(text)} given; text (or terms) needed")
    if not text.strip():
        raise RowError("text: only white space given; at least one character needed")
    if len(text) > MAX_TEXT:
        raise RowError(f"text: {len(text):,} characters given; at most {MAX_TEXT:,} allowed")
    return TextTokens(_utf8(text, "text"), analysis), text


def _terms(value: object, most: int = MAX_TERMS) -> list[str]:
    """Words as they are, without analysis: a list of text or integers, or text with spaces between."""
    listed = value.split() if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not listed:
        raise RowError(f"terms: {_shown(value)} given; a list of words or integers needed")
    if len(listed) > most:
        raise RowError(f"terms: {len(listed):,} given; at most {most:,} allowed")
    return [_term(item) for item in listed]


def _term(item: object) -> str:
    if isinstance(item, str) and item:
        return _utf8(item, "terms")
    if isinstance(item, int) and not isinstance(item, bool) and -(2**63) <= item < 2**63:
        return str(item)
    raise RowError(f"terms: {_shown(item)} among them; words or integers needed")


def _expression(record: Mapping[str, Any], analysis: Analyzer) -> Expression:
    if _given(record, "expression") == _given(record, "terms"):
        raise RowError("either expression or terms needed")
    if _given(record, "terms"):
        return from_words(_terms(record["terms"], MAX_WISHED))
    source = record["expression"]
    if not isinstance(source, str):
        raise RowError(f"expression: {_shown(source)} given; text needed")
    return parse(_utf8(source, "expression"), analysis)


def _place(record: Mapping[str, Any]) -> Box:
    if not _LACKS_SIDES(record) and any(_given(record, side) for side in _SIDES):
        return Box(*(number(record, side) for side in _SIDES))
    x, y = number(record, "lon"), number(record, "lat")
    return Box(x, y, x, y)


def read_region(record: Mapping[str, Any]) -> Region:
    ways = {
        "region": _given(record, "region"),
        "west,south,east,north": any(_given(record, side) for side in _SIDES),
        "lon,lat,radius_m": any(_given(record, name) for name in ("lon", "lat", "radius_m")),
    }
    chosen = [way for way, given in ways.items() if given]
    if len(chosen) != 1:
        raise RowError(f"{' and '.join(chosen) or 'no place'} given; one of {', '.join(ways)} needed")
    if chosen == ["region"]:
        return _written_region(record["region"])
    if chosen == ["lon,lat,radius_m"]:
        return Circle(*(number(record, name) for name in ("lon", "lat", "radius_m")))
    return Box(*(number(record, side) for side in _SIDES))


def _written_region(value: object) -> Region:
    if isinstance(value, str):
        return parse_region(_utf8(value, "region"))
    if isinstance(value, Mapping):
        return from_geojson(value)
    raise RowError(f"region: {_shown(value)} given; GeoJSON or WKT needed")


def _count(record: Mapping[str, Any], name: str) -> int | None:
    if not _given(record, name):
        return None
    value = number(record, name)
    if value < 1 or value != int(value):
        raise RowError(f"{name}: {_shown(record[name])} given; a whole number of at least 1 needed")
    return int(value)


def _time(record: Mapping[str, Any], name: str) -> float | None:
    """Seconds since 1970. Text is ISO 8601 (UTC unless it says otherwise); a number is seconds."""
    if not _given(record, name):
        return None
    value = record[name]
    try:
        return _seconds(value)
    except (ValueError, OverflowError, OSError):
        raise RowError(
            f"{name}: {_shown(value)} given; ISO 8601 or seconds since 1970 up to the year 9999 needed"
        ) from None


def _life(record: Mapping[str, Any]) -> float | None:
    if not _given(record, "ttl"):
        return None
    seconds = number(record, "ttl")
    if seconds <= 0:
        raise RowError(f"ttl: {_shown(record['ttl'])} given; seconds, more than 0, needed")
    return seconds


def _seconds(value: object) -> float:
    if type(value) is float and 0.0 <= value <= _LAST_TIME:  # the usual case first
        return value
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value) else datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    datetime.fromtimestamp(value, UTC)  # raises when out of range
    return float(value)
