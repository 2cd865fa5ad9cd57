"""What a ranker says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class RankReport:
    """Sizes and work done so far; nothing here is timed."""

    name: str
    live: int  # wishes
    window: int  # messages in it
    bytes: dict[str, int]  # by part
    messages: int  # arrived
    late: int  # dropped: older than a message before it
    expired: int
    candidates: int  # exact scores by probes
    nodes: int  # lists, cells or blocks that probes looked at
    postings: int  # of wishes that probes compared
    inserted: int  # into buffers
    touched: int  # buffers looked at by expiry
    refills: int
    scanned: int  # postings read by refills
    trimmed: int  # buffers without room for all they should hold
    buffered: float  # mean length of a buffer
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def bytes_total(self) -> int:
        return sum(self.bytes.values())
