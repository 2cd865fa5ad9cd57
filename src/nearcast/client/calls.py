"""What can be asked of a server: each call as a value, so that the sync and the async client say it once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import httpx

from nearcast.errors import NearcastError
from nearcast.geo import Region
from nearcast.records import region_fields

T = TypeVar("T")

NDJSON = {"content-type": "application/x-ndjson"}
OPERATIONS = frozenset({"match", "enter", "leave", "current"})


class ServerError(NearcastError):
    """What the server answered instead: its status, and what came and what is allowed."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{reason} (status {status})")
        self.status = status


class Accepted(NamedTuple):
    accepted: int
    rejected: int
    rejections: list[dict[str, Any]]  # line and reason, the first of them
    first_seq: int | None
    last_seq: int | None
    deliveries: int | None  # None: on disk, but matching failed; readers get them from the log
    unmatched: str | None = None


class Event(NamedTuple):
    """One message for one subscriber, that matched (`match`), or came into or out of a ranking (`enter`, `leave`).

    `seq` is a position in the log: acknowledge it, or go on behind it, when there is no `more` of it. With
    `current` the whole of one ranking is told: `feature` is a FeatureCollection, best first.
    """

    seq: int
    subscriptions: list[str]
    feature: dict[str, Any]  # GeoJSON: id, geometry, properties with text, ts, payload
    operation: str = "match"
    scores: tuple[float, ...] = ()  # of rankings, beside subscriptions
    more: bool = False

    @property
    def text(self) -> str | None:
        text: str | None = self.feature.get("properties", {}).get("text")
        return text


class Ranked(NamedTuple):
    feature: dict[str, Any]  # as that of an event
    score: float


class Moved(NamedTuple):
    moved: int
    entered: int
    left: int


class Replayed(NamedTuple):
    events: list[Event]
    position: int  # go on behind it; no events: all is read


class Logged(NamedTuple):
    """A piece of the log."""

    records: list[dict[str, Any]]  # as they may be published again, with `seq` and `accepted`
    position: int  # go on behind it
    first: int  # seq of the first message that is kept
    last: int  # and of the last one


class Answer(NamedTuple):
    matched: bool
    inside: bool
    distance: float | None
    text: str


class DryRun(NamedTuple):
    matched: int
    scanned: int
    after: int
    up_to: int
    examples: list[Event]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None  # JSON
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """For httpx."""
        given = {"json": self.body} if self.content is None else {"content": self.content}
        return {"params": without_none(self.params), "headers": dict(self.headers), **(given if self._has_body else {})}

    @property
    def _has_body(self) -> bool:
        return self.body is not None or self.content is not None

    def result(self, answer: httpx.Response) -> T:
        refuse_errors(answer)
        return self.read(answer)


def refuse_errors(answer: httpx.Response) -> None:
    """The body must have been read."""
    if answer.status_code >= 400:
        try:
            reason = str(answer.json()["error"])
        except (ValueError, KeyError, TypeError):
            reason = answer.text[:200] or answer.reason_phrase
        raise ServerError(answer.status_code, reason)


def subscribe(
    subscriber: str, expression: str, within: Region, id: str | None, expires: float | None, max_events: int | None
) -> Call[str]:
    body = without_none(
        {
            "subscriber": subscriber,
            "expression": expression,
            **region_fields(within),
            "expires": expires,
            "max_events": max_events,
        }
    )
    method, path = ("POST", "/v1/subscriptions") if id is None else ("PUT", f"/v1/subscriptions/{quoted(id)}")
    return Call(method, path, lambda answer: str(answer.json()["id"]), body=body)


def rank(subscriber: str, words: str, near: tuple[float, float], k: int, alpha: float, id: str | None) -> Call[str]:
    body = {"kind": "rank", "subscriber": subscriber, "text": words, "k": k, "alpha": alpha}
    body |= {"lon": near[0], "lat": near[1]}
    method, path = ("POST", "/v1/subscriptions") if id is None else ("PUT", f"/v1/subscriptions/{quoted(id)}")
    return Call(method, path, lambda answer: str(answer.json()["id"]), body=body)


def follow(subscriber: str, expression: str, within: Region, id: str) -> Call[str]:
    body = {"kind": "follow", "subscriber": subscriber, "expression": expression, **region_fields(within)}
    return Call("PUT", f"/v1/subscriptions/{quoted(id)}", lambda answer: str(answer.json()["id"]), body=body)


def move(regions: Mapping[str, Region]) -> Call[Moved]:
    body = {"moves": [{"id": id, **region_fields(region)} for id, region in regions.items()]}
    return Call("POST", "/v1/moves", lambda answer: Moved(**answer.json()), body=body)


def current(id: str) -> Call[list[dict[str, Any]]]:
    return Call("GET", "/v1/current", lambda answer: list(answer.json()["features"]), {"id": id})


def ranking(id: str) -> Call[list[Ranked]]:
    def read(answer: httpx.Response) -> list[Ranked]:
        return [Ranked(feature, feature["nearcast"]["score"]) for feature in answer.json()["features"]]

    return Call("GET", "/v1/current", read, {"id": id})


def unsubscribe(id: str) -> Call[None]:
    return Call("DELETE", f"/v1/subscriptions/{quoted(id)}", _nothing)


def subscriptions(subscriber: str) -> Call[list[dict[str, Any]]]:
    return Call(
        "GET", "/v1/subscriptions", lambda answer: list(answer.json()["subscriptions"]), {"subscriber": subscriber}
    )


def publish(records: Iterable[Mapping[str, Any]]) -> Call[Accepted]:
    content = "\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()
    return publish_lines(content)


def publish_lines(content: bytes) -> Call[Accepted]:
    return Call("POST", "/v1/messages", lambda answer: Accepted(**answer.json()), content=content, headers=NDJSON)


def explain(subscription: str, text: str, at: tuple[float, float]) -> Call[Answer]:
    message = {"text": text, "lon": at[0], "lat": at[1]}
    body = {"subscription": subscription, "message": message}
    return Call("POST", "/v1/explain", lambda answer: Answer(**answer.json()), body=body)


def dry_run(expression: str, within: Region, after: int | None, since: float | None, examples: int) -> Call[DryRun]:
    wish = {"expression": expression, **region_fields(within)}
    body = without_none({"wish": wish, "after": after, "since": since, "examples": examples})

    def read(answer: httpx.Response) -> DryRun:
        told = answer.json()
        return DryRun(**(told | {"examples": [event_from(value) for value in told["examples"]]}))

    return Call("POST", "/v1/dry-run", read, body=body)


def replay(subscriber: str, after: int | None, since: float | None, limit: int) -> Call[Replayed]:
    def read(answer: httpx.Response) -> Replayed:
        lines = answer.content.split(b"\n")
        events = [event_from(json.loads(line)) for line in lines if line]
        return Replayed(events, int(answer.headers["Nearcast-Position"]))

    params = {"subscriber": subscriber, "after": after, "since": since, "limit": limit}
    return Call("GET", "/v1/replay", read, params)


def logged(after: int, up_to: int | None, limit: int) -> Call[Logged]:
    def read(answer: httpx.Response) -> Logged:
        records = [json.loads(line) for line in answer.content.split(b"\n") if line]
        return Logged(records, *(int(answer.headers[f"Nearcast-{name}"]) for name in ("Position", "First", "Last")))

    return Call("GET", "/v1/messages", read, {"after": after, "up_to": up_to, "limit": limit})


def acknowledge(subscriber: str, seq: int) -> Call[None]:
    return Call("PUT", "/v1/cursor", _nothing, {"subscriber": subscriber}, {"seq": seq})


def event_from(value: Mapping[str, Any]) -> Event:
    told = value["data"]["nearcast"]
    scores = tuple(told.get("scores", ()))
    return Event(told["seq"], told["subscriptions"], value["data"], told["operation"], scores, told.get("more", False))


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def quoted(identity: str) -> str:
    return quote(identity)


def _nothing(_: httpx.Response) -> None:
    return None


class EventLines:
    """Server-sent events, line by line."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def take(self, line: str) -> Event | None:
        """The event that this line ends; gaps and signs of life are none."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        return event_from(json.loads(fields["data"])) if fields.get("event") in OPERATIONS else None
