"""What requests and answers look like in the OpenAPI. The exact checks are those of `records`, as for files."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from nearcast.service.kinds import Kind

ID = Annotated[str, Field(min_length=1, max_length=500, pattern="^[^\\u0000]+$")]
Seq = Annotated[int, Field(ge=0, le=2**62)]
Time = Annotated[float, Field(ge=0, le=253402300799)]


class Problem(BaseModel):
    """What came and what is allowed."""

    error: str


class Refusal(BaseModel):
    line: int = Field(description="Line or row of the request, from 1")
    reason: str


class RegionFields(BaseModel):
    """Where: a `region`, four sides, or a circle."""

    model_config = ConfigDict(extra="forbid")

    region: dict[str, Any] | str | None = Field(None, description="GeoJSON, or WKT")
    west: float | None = None
    south: float | None = None
    east: float | None = None
    north: float | None = None
    lon: float | None = Field(None, description="Centre of a circle")
    lat: float | None = None
    radius_m: float | None = None


class Wish(RegionFields):
    """Words in a region: `expression` or `terms`; a `region`, four sides, or a circle."""

    expression: str | None = Field(None, max_length=10_000, examples=["ramen AND (tonkotsu OR miso) NOT instant"])
    terms: list[str] | None = Field(None, description="Words as they are, all of them needed")


class WishFor(Wish):
    """Of kind `match` and `follow` as above; of kind `rank`: `text` or `terms`, `lon`, `lat`, `k`, `alpha`."""

    kind: Kind = "match"
    subscriber: ID
    text: str | None = Field(None, max_length=10_000, description="Of a ranking: what it is about")
    k: int | None = Field(None, ge=1, le=10_000, description="Of a ranking: how many of the best; 10")
    alpha: float | None = Field(None, ge=0, le=1, description="Of a ranking: weight of nearness against words; 0.5")
    expires: float | str | None = Field(None, description="Event time: later messages are not delivered")
    max_events: int | None = Field(None, ge=1, le=2**53)


class NewSubscription(WishFor):
    id: ID | None = None


class Subscribed(BaseModel):
    model_config = ConfigDict(extra="allow")

    id: str
    subscriber: str
    kind: Kind


class Move(RegionFields):
    """A moving subscription and its new region: a `region`, four sides, or a circle."""

    id: ID


class Moves(BaseModel):
    model_config = ConfigDict(extra="forbid")

    moves: Annotated[list[Move], Field(min_length=1, max_length=100_000)]


class Moved(BaseModel):
    moved: int
    entered: int
    left: int


class Holding(BaseModel):
    """What a wish holds now: GeoJSON Features. A ranking best first, with scores; a follower oldest first."""

    id: str
    kind: Kind
    seq: int = Field(description="After this message")
    features: list[dict[str, Any]]


class Subscriptions(BaseModel):
    subscriptions: list[Subscribed]


class Imported(BaseModel):
    accepted: int
    rejected: int
    rejections: list[Refusal] = Field(description="The first of them")


class Accepted(BaseModel):
    accepted: int
    rejected: int
    rejections: list[Refusal] = Field(description="The first of them")
    first_seq: int | None = Field(description="Number of the first accepted message in the log; the others follow")
    last_seq: int | None
    deliveries: int | None = Field(description="null: on disk, but not matched; readers get them from the log")
    unmatched: str | None = Field(None, description="Why matching failed, if it did")


class Place(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    lon: float
    lat: float
    ts: float | str | None = None


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid")

    subscription: ID
    message: Place


class Answer(BaseModel):
    matched: bool
    inside: bool
    distance: float | None
    text: str


class Rehearsal(BaseModel):
    model_config = ConfigDict(extra="forbid")

    wish: Wish
    after: Seq | None = None
    since: Time | None = None
    examples: int = Field(10, ge=0, le=100)


class Rehearsed(BaseModel):
    matched: int
    scanned: int
    after: int
    up_to: int
    examples: list[dict[str, Any]]


class Cursor(BaseModel):
    seq: Seq


class NewKey(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: ID
    scopes: list[str]
    quotas: dict[str, Annotated[int, Field(ge=1, le=2**53)]] = {}


class Key(BaseModel):
    digest: str
    tenant: str
    name: str
    scopes: list[str]
    quotas: dict[str, int]


class CreatedKey(BaseModel):
    key: str = Field(description="Shown once; the store keeps its digest")


class NewWebhook(BaseModel):
    model_config = ConfigDict(extra="forbid")

    subscriber: ID
    url: Annotated[str, Field(min_length=8, max_length=2000, pattern="^(https?|kafka)://[!-~]+$")]
    secret: Annotated[str, Field(max_length=100)] | None = Field(None, description="Made up unless given")


class CreatedWebhook(BaseModel):
    id: str
    secret: str = Field(description="Shown once; the receiver checks signatures with it")


class WebhookShown(BaseModel):
    id: str
    subscriber: str
    url: str
    disabled: str | None = Field(description="Why; null: in use")


class Letter(BaseModel):
    seq: int
    reason: str
    attempts: int
    time: float


class Redriven(BaseModel):
    taken: int
    left: int
