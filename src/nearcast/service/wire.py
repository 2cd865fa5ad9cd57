"""What leaves the service: events as CloudEvents with a GeoJSON Feature, subscriptions as records."""

from __future__ import annotations

import json
from typing import Any

from nearcast.errors import NearcastError
from nearcast.expression import parse
from nearcast.geo import to_geojson
from nearcast.model import Message, Subscription
from nearcast.records import region_fields
from nearcast.service.engine import Event
from nearcast.text import Analyzer

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def event_value(event: Event, operation: str = "match") -> dict[str, Any]:
    """CloudEvents 1.0. The id is the message's number in the log: the same event sent twice has the same id."""
    return {
        "specversion": "1.0",
        "id": str(event.seq),
        "source": "/nearcast",
        "type": f"nearcast.{operation}",
        "subject": str(event.subscriber),
        "datacontenttype": "application/geo+json",
        "data": feature(event.message)
        | {"nearcast": {"operation": operation, "seq": event.seq, "subscriptions": list(event.subscriptions)}},
    }


def event_json(event: Event) -> str:
    return _dumps(event_value(event))


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


def subscription_record(wish: Subscription, analysis: Analyzer) -> dict[str, Any]:
    """As `read_subscription` reads it: taking it in again gives the same subscription."""
    record: dict[str, Any] = {"id": wish.id, "subscriber": wish.receiver, **_words(wish, analysis)}
    record |= region_fields(wish.region)
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
