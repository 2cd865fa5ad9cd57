"""Messages and subscriptions as bytes in the store, and back exactly as they were."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

from nearcast.errors import NearcastError
from nearcast.expression import Clause, Expression, parse
from nearcast.geo import Box, Circle, MultiPolygon, Polygon, Region, Space, earth, plane
from nearcast.model import Id, Message, Subscription, Wish
from nearcast.text import Analyzer, Token

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def key_of(identity: Id) -> str:
    """An id as text that tells 5 from "5" and holds no character that a database refuses."""
    return json.dumps(identity)


def id_of(key: str) -> Id:
    identity: Id = json.loads(key)
    return identity


# -- messages ---------------------------------------------------------------------------------------


def message_bytes(message: Message) -> bytes:
    """The text where there is one: its words are what the recorded analyzer makes of it. Otherwise the words."""
    place = message.place
    if message.text is not None and message.payload is None and message.ttl is None and place.is_point:
        return _usual_bytes(message.id, message.text, place.west, place.south, message.ts)
    value: dict[str, Any] = {"id": message.id}
    if message.text is None:
        value["tokens"] = [[token.word, token.position] for token in message.tokens]
    else:
        value["text"] = message.text
    value["at"] = [place.west, place.south] if place.is_point else [place.west, place.south, place.east, place.north]
    if message.ts is not None:
        value["ts"] = message.ts
    if message.ttl is not None:
        value["ttl"] = message.ttl
    if message.payload is not None:
        value["payload"] = dict(message.payload)
    return _dumps(value).encode()


def _usual_bytes(identity: Id, text: str, x: float, y: float, ts: float | None) -> bytes:
    """What the encoder would write, in a quarter of its time."""
    key = encode_basestring(identity) if isinstance(identity, str) else identity
    moment = "" if ts is None else f',"ts":{ts!r}'
    return f'{{"id":{key},"text":{encode_basestring(text)},"at":[{x!r},{y!r}]{moment}}}'.encode()


def message_from(body: bytes, analysis: Analyzer) -> Message:
    value = json.loads(body)
    text = value.get("text")
    if text is None:
        tokens = tuple(Token(word, position) for word, position in value["tokens"])
    else:
        tokens = tuple(analysis.tokens(text))
    place, payload = _place(value["at"]), value.get("payload")
    return Message(value["id"], tokens, place, value.get("ts"), text, payload, value.get("ttl"))


def message_record(body: bytes) -> dict[str, Any]:
    """As `read_message` reads it: taking it in again gives the same message."""
    value: dict[str, Any] = json.loads(body)
    tokens, at = value.pop("tokens", None), value.pop("at")
    if tokens is not None:
        value["terms"] = [word for word, _ in tokens]
    names = ("lon", "lat") if len(at) == 2 else ("west", "south", "east", "north")
    return value | dict(zip(names, at, strict=True))


def _place(at: list[float]) -> Box:
    return Box(*at) if len(at) == 4 else Box(at[0], at[1], at[0], at[1])


# -- subscriptions ----------------------------------------------------------------------------------


def subscription_bytes(wish: Subscription, analysis: Analyzer) -> bytes:
    value: dict[str, Any] = {"expression": wish.expression.source, "region": _region_value(wish.region)}
    if not _says_the_same(wish.expression, analysis):
        value["clauses"] = [_clause_value(clause) for clause in wish.expression.clauses]
    if wish.subscriber is None:
        value["alone"] = True
    if wish.expires is not None:
        value["expires"] = wish.expires
    if wish.max_events is not None:
        value["max_events"] = wish.max_events
    return _dumps(value).encode()


def subscription_from(identity: Id, subscriber: Id, body: bytes, analysis: Analyzer) -> Subscription:
    value = json.loads(body)
    if "clauses" in value:
        clauses = tuple(_clause(clause) for clause in value["clauses"])
        expression = Expression(value["expression"], clauses)
    else:
        expression = parse(value["expression"], analysis)
    return Subscription(
        identity,
        expression,
        _region(value["region"]),
        None if value.get("alone") else subscriber,
        value.get("expires"),
        value.get("max_events"),
    )


def _says_the_same(expression: Expression, analysis: Analyzer) -> bool:
    """Whether parsing the source again gives these clauses (not so for words taken as they are)."""
    try:
        return parse(expression.source, analysis).clauses == expression.clauses
    except NearcastError:
        return False


def _clause_value(clause: Clause) -> list[Any]:
    phrases = (clause.phrases, clause.forbidden_phrases)
    return [sorted(clause.required), sorted(clause.forbidden), *(sorted(map(list, p), key=str) for p in phrases)]


def _clause(value: list[Any]) -> Clause:
    required, forbidden, phrases, forbidden_phrases = value
    return Clause(
        frozenset(required),
        frozenset(forbidden),
        frozenset(map(tuple, phrases)),
        frozenset(map(tuple, forbidden_phrases)),
    )


def _region_value(region: Region) -> dict[str, Any]:
    match region:
        case Box(west, south, east, north):
            return {"box": [west, south, east, north]}
        case Circle(x, y, radius):
            return {"circle": [x, y, radius]}
        case Polygon(exterior, holes):
            return {"polygon": [exterior, *holes]}
        case MultiPolygon(polygons):
            return {"polygons": [[part.exterior, *part.holes] for part in polygons]}


def _region(value: dict[str, Any]) -> Region:
    [(kind, numbers)] = value.items()
    if kind == "box":
        return Box(*numbers)
    if kind == "circle":
        return Circle(*numbers)
    if kind == "polygon":
        return _polygon(numbers)
    return MultiPolygon(tuple(_polygon(rings) for rings in numbers))


def _polygon(rings: list[list[list[float]]]) -> Polygon:
    exterior, *holes = (tuple((x, y) for x, y in ring) for ring in rings)
    return Polygon(exterior, tuple(holes))


# -- rankings ---------------------------------------------------------------------------------------


def wish_bytes(wish: Wish) -> bytes:
    value: dict[str, Any] = {"words": wish.words, "at": [wish.x, wish.y], "k": wish.k, "alpha": wish.alpha}
    if wish.subscriber is not None:
        value["subscriber"] = wish.subscriber
    return _dumps(value).encode()


def wish_from(identity: Id, body: bytes) -> Wish:
    value = json.loads(body)
    x, y = value["at"]
    return Wish(identity, tuple(value["words"]), x, y, value["k"], value["alpha"], value.get("subscriber"))


# -- spaces -----------------------------------------------------------------------------------------


def space_bytes(space: Space) -> bytes:
    if space == earth:
        return b"earth"
    bounds = space.bounds
    return _dumps([bounds.west, bounds.south, bounds.east, bounds.north]).encode()


def space_from(body: bytes) -> Space:
    return earth if body == b"earth" else plane(*json.loads(body))
