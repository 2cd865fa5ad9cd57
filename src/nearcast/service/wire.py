"""What leaves the service: events as CloudEvents with a GeoJSON Feature, subscriptions as records."""

from __future__ import annotations

import json
from typing import Any

from nearcast.errors import NearcastError
from nearcast.expression import parse
from nearcast.geo import to_geojson
from nearcast.model import Id, Message, Subscription, Wish
from nearcast.records import region_fields
from nearcast.service.engine import Event
from nearcast.service.kinds import Current, Follower, Standing, kind_of
from nearcast.text import Analyzer

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def event_id(event: Event) -> str:
    """The same event sent twice has the same id. A match has the message's number in the log."""
    if event.operation == "match":
        return str(event.seq)
    when = f"{event.seq}/moved" if event.moved else str(event.seq)
    return f"{when}/{event.operation}/{event.message.id}"


def event_value(event: Event) -> dict[str, Any]:
    """CloudEvents 1.0."""
    told: dict[str, Any] = {
        "operation": event.operation,
        "seq": event.seq,
        "subscriptions": list(event.subscriptions),
    }
    if event.scores:
        told["scores"] = list(event.scores)
    if event.more:
        told["more"] = True
    return _envelope(event_id(event), event.operation, event.subscriber, "application/geo+json") | {
        "data": feature(event.message) | {"nearcast": told}
    }


def event_json(event: Event) -> str:
    return _dumps(event_value(event))


def current_value(current: Current) -> dict[str, Any]:
    """All that a wish holds, as an event: GeoJSON Features, best first."""
    wish, seq = current.wish, current.seq
    told = {"operation": "current", "seq": seq, "subscriptions": [wish.id]}
    envelope = _envelope(f"{seq}/current/{wish.id}", "current", wish.receiver, "application/geo+json")
    return envelope | {"data": {"type": "FeatureCollection", "features": holding(current), "nearcast": told}}


def current_json(current: Current) -> str:
    return _dumps(current_value(current))


def holding(current: Current) -> list[dict[str, Any]]:
    return [
        feature(held.message) | ({} if held.score is None else {"nearcast": {"score": held.score}})
        for held in current.holding
    ]


def _envelope(identity: str, operation: str, subscriber: Id, content: str) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": identity,
        "source": "/nearcast",
        "type": f"nearcast.{operation}",
        "subject": str(subscriber),
        "datacontenttype": content,
    }


def feature(message: Message) -> dict[str, Any]:
    place = to_geojson(message.place)
    geometry = place["geometry"] if place["type"] == "Feature" else place
    properties: dict[str, Any] = {"text": message.text}
    if message.text is None:
        properties["terms"] = [token.word for token in message.tokens]
    if message.ts is not None:
        properties["ts"] = message.ts
    if message.payload is not None:
        properties["payload"] = message.payload
    bbox = {"bbox": place["bbox"]} if "bbox" in place else {}
    return {"type": "Feature", "id": message.id, **bbox, "geometry": geometry, "properties": properties}


def standing_record(wish: Standing, analysis: Analyzer) -> dict[str, Any]:
    """As it is read: taking it in again gives the same wish."""
    record: dict[str, Any] = {"id": wish.id, "subscriber": wish.receiver, "kind": kind_of(wish)}
    if isinstance(wish, Wish):
        return record | _ranking(wish, analysis)
    return record | _matching(wish.wish if isinstance(wish, Follower) else wish, analysis)


def _ranking(wish: Wish, analysis: Analyzer) -> dict[str, Any]:
    text = " ".join(wish.words)
    said = {"text": text} if tuple(t.word for t in analysis.tokens(text)) == wish.words else {"terms": list(wish.words)}
    return said | {"lon": wish.x, "lat": wish.y, "k": wish.k, "alpha": wish.alpha}


def _matching(wish: Subscription, analysis: Analyzer) -> dict[str, Any]:
    record = _words(wish, analysis) | region_fields(wish.region)
    if wish.expires is not None:
        record["expires"] = wish.expires
    if wish.max_events is not None:
        record["max_events"] = wish.max_events
    return record


def _words(wish: Subscription, analysis: Analyzer) -> dict[str, Any]:
    """The expression as written, or words that were taken as they are."""
    source = wish.expression.source
    try:
        written = parse(source, analysis).clauses == wish.expression.clauses
    except NearcastError:
        written = False
    return {"expression": source} if written else {"terms": sorted(wish.expression.clauses[0].required)}
