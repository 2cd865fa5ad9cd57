"""What a mover says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class MoveReport:
    """Sizes and work done so far; nothing here is timed."""

    name: str
    live: int  # subscriptions
    messages: int  # live ones
    bytes: dict[str, int]  # by part
    arrived: int  # messages
    expired: int
    late: int  # messages that came after their end, and were dropped
    moves: int
    entered: int  # changes told
    left: int
    moved_changes: int  # of them, by moves
    candidates: int  # messages that moves looked at
    nodes: int  # lists or nodes that moves looked at
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def bytes_total(self) -> int:
        return sum(self.bytes.values())
