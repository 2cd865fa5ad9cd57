"""What comes in: bodies of requests to checked values. Rows that cannot be used are told, the others are served."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa

from nearcast.errors import NearcastError, RowError
from nearcast.files import MESSAGES, SUBSCRIPTIONS, Role, Row
from nearcast.files.readers import NdjsonRows
from nearcast.geo import MultiPolygon, Polygon, Region, Space
from nearcast.model import Message, Subscription, Wish
from nearcast.records import read_message, read_region, read_subscription, read_wish
from nearcast.service.faults import MediaTypeError, TooLargeError
from nearcast.service.kinds import KINDS, Follower, Standing
from nearcast.service.settings import Limits
from nearcast.text import Analyzer

JSON, NDJSON, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
MEDIA_TYPES = {
    JSON: JSON,
    NDJSON: NDJSON,
    "application/ndjson": NDJSON,
    "application/jsonl": NDJSON,
    ARROW: ARROW,
}

T = TypeVar("T")

FOREIGN = {  # fields that only another kind has: a slip. Other columns of a file are nobody's concern.
    "match": ("text", "k", "alpha"),
    "follow": ("text", "k", "alpha", "expires", "max_events"),
    "rank": ("expression", "region", "west", "south", "east", "north", "radius_m", "expires", "max_events"),
}


class Refused(NamedTuple):
    """A row that was left out: its line (from 1), and why."""

    line: int
    reason: str


class Line(NamedTuple, Generic[T]):
    """A value, and the line it stands on."""

    number: int
    value: T


class Intake:
    """Reads for one space, analyzer and set of limits."""

    def __init__(self, space: Space, analysis: Analyzer, limits: Limits) -> None:
        self._space, self._analysis, self._limits = space, analysis, limits

    def messages(self, body: bytes, media_type: str) -> tuple[list[Message], list[Refused]]:
        served, refused = self._served(self._rows(body, media_type, MESSAGES), self.message)
        return [row.value for row in served], refused

    def wishes(self, body: bytes, media_type: str) -> tuple[list[Line[Standing]], list[Refused]]:
        return self._served(self._rows(body, media_type, SUBSCRIPTIONS), self.wish)

    def message(self, record: Mapping[str, Any]) -> Message:
        read = read_message(record, self._space, self._analysis)
        _at_most(len(read.text or ""), self._limits.text_characters, "text", "characters")
        payload = self._payload(record)
        return read if payload is None else replace(read, payload=payload)

    def wish(self, record: Mapping[str, Any]) -> Standing:
        """By its `kind`; match unless given."""
        kind = record.get("kind", "match") if isinstance(record, Mapping) else "match"
        if kind not in KINDS:
            raise RowError(f"kind: {str(kind)[:40]!r} given; there are {', '.join(KINDS)}")
        _refuse_foreign(record, kind)
        if kind == "rank":
            return self.ranking(record)
        wish = self.subscription(record)
        return Follower(wish) if kind == "follow" else wish

    def ranking(self, record: Mapping[str, Any]) -> Wish:
        wish = read_wish(record, self._space, self._analysis)
        _at_most(len(wish.words), self._limits.wished, "text", "words")
        return replace(wish, id=str(wish.id), subscriber=str(wish.receiver))

    def subscription(self, record: Mapping[str, Any]) -> Subscription:
        """Ids are text here: they stand in addresses. An integer is its decimal digits."""
        wish = read_subscription(record, self._space, self._analysis)
        _at_most(vertices(wish.region), self._limits.vertices, "region", "vertices")
        receiver = str(wish.receiver)
        return Subscription(str(wish.id), wish.expression, wish.region, receiver, wish.expires, wish.max_events)

    def region(self, record: Mapping[str, Any]) -> Region:
        """Where something is to move."""
        region = self._space.check_region(read_region(record))
        _at_most(vertices(region), self._limits.vertices, "region", "vertices")
        return region

    def _payload(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        payload = record.get("payload")
        if payload is None:
            return None
        if not isinstance(payload, Mapping):
            raise RowError(f"payload: a {type(payload).__name__} given; an object needed")
        try:
            size = len(json.dumps(payload, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise RowError(f"payload: no JSON ({error})") from None
        _at_most(size, self._limits.payload_bytes, "payload", "bytes")
        return payload

    def _rows(self, body: bytes, media_type: str, role: Role) -> Iterable[Row]:
        kind = MEDIA_TYPES.get(media_type.partition(";")[0].strip().lower())
        if kind is None:
            raise MediaTypeError(f"content type {media_type[:60]!r} given; one of {', '.join(MEDIA_TYPES)} needed")
        if kind == ARROW:
            return _arrow_rows(body)
        if kind == JSON:
            body = b" ".join(body.splitlines())  # one value, on however many lines
        return NdjsonRows(io.BytesIO(body), role, "the body", len(body))

    def _served(
        self, rows: Iterable[Row], read: Callable[[Mapping[str, Any]], T]
    ) -> tuple[list[Line[T]], list[Refused]]:
        values: list[Line[T]] = []
        refused: list[Refused] = []
        for row in rows:
            if len(values) + len(refused) >= self._limits.rows:
                raise TooLargeError(f"more than {self._limits.rows:,} rows in one request; nothing of it was taken")
            try:
                if row.record is None:
                    raise RowError(row.reason)
                values.append(Line(row.line, read(row.record)))
            except NearcastError as error:
                refused.append(Refused(row.line, str(error)))
        return values, refused


def _refuse_foreign(record: Mapping[str, Any], kind: str) -> None:
    for name in FOREIGN[kind]:
        if record.get(name) is not None:
            raise RowError(f"{name}: given; a wish of kind {kind} has none")


def vertices(region: Region) -> int:
    if isinstance(region, MultiPolygon):
        return sum(vertices(part) for part in region.polygons)
    return sum(map(len, (region.exterior, *region.holes))) if isinstance(region, Polygon) else 0


def _arrow_rows(body: bytes) -> Iterable[Row]:
    try:
        with pa.ipc.open_stream(body) as reader:
            table = reader.read_all()
        table.validate(full=True)
        records = table.to_pylist()
    except (pa.ArrowException, ValueError, OSError) as error:
        raise RowError(f"the body is no Arrow stream that can be read: {str(error)[:200]}") from None
    return [Row(line, {n: v for n, v in record.items() if v is not None}) for line, record in enumerate(records, 1)]


def _at_most(size: int, most: int, name: str, unit: str) -> None:
    if size > most:
        raise RowError(f"{name}: {size:,} {unit} given; at most {most:,} allowed")
