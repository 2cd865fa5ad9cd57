"""What a server is told when it starts. Limits are values, so that a test may set small ones."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    body_bytes: int = 32 << 20  # of one request
    rows: int = 100_000  # messages or subscriptions in one request
    text_characters: int = 100_000
    vertices: int = 10_000  # of a polygon or multipolygon
    payload_bytes: int = 64 << 10
    wished: int = 1_000  # words of a ranking
    pending: int = 200_000  # messages that wait to be written; above it publishers are told to come later
    outbox: int = 1_000  # events that wait for one reader; above it the reader goes on from the log
    replay: int = 10_000  # events in one answer of replay


@dataclass(frozen=True, slots=True)
class Settings:
    store: str = "sqlite:///nearcast.db"
    analysis: str | None = None  # of a new store
    keep_seconds: float | None = None  # retention of the log
    keep_bytes: int | None = None
    ping_seconds: float = 15.0  # a sign of life on an idle stream
    retry_seconds: tuple[float, ...] = (5, 30, 120, 600, 3600, 4 * 3600)  # after the 1st, 2nd, … failure of a webhook
    webhook_timeout: float = 10.0
    purge_seconds: float = 60.0  # between two looks at the retention
    limits: Limits = field(default_factory=Limits)
