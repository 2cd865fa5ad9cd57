"""What an index says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class IndexReport:
    """Sizes and work done so far. Counters grow with every match; nothing here is timed."""

    name: str
    live: int  # subscriptions
    entries: int  # clause × box rows
    bytes: dict[str, int]  # by part
    messages: int  # rows probed so far
    candidates: int  # entries verified so far
    nodes: int  # index nodes or lists visited so far
    found: int  # candidate pairs that passed box and required terms
    rebuilds: int = 0
    dead: int = 0  # entries that are removed but still take room in the structure
    details: dict[str, Any] = field(default_factory=dict)  # what only this index has to say

    @property
    def bytes_total(self) -> int:
        return sum(self.bytes.values())

    @property
    def bytes_per_subscription(self) -> float:
        return self.bytes_total / max(1, self.live)
