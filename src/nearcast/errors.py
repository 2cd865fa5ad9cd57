"""Every error that nearcast raises on purpose.

Each message says what came and what is allowed. All of them derive from `NearcastError` and from
`ValueError`, because each is about a value that cannot be used.
"""

from __future__ import annotations


class NearcastError(ValueError):
    """A value that nearcast cannot use; the message says what came and what is allowed."""


class RegionError(NearcastError):
    """A region or place that does not exist in the space."""


class ExpressionError(NearcastError):
    """An expression that cannot be parsed; `position` is the offset of the offending character."""

    def __init__(self, reason: str, text: str, position: int) -> None:
        self.reason = reason
        self.text = text
        self.position = position
        super().__init__(f"{reason} (at character {position + 1})\n  {text}\n  {' ' * position}^")


class AnalyzerError(NearcastError):
    """An analyzer name that does not exist."""


class ColumnsError(NearcastError):
    """Columns whose shape, order or values kernels could not trust."""


class RowError(NearcastError):
    """One row (record) that cannot be a message or a subscription; the other rows go on."""


class CatalogueError(NearcastError):
    """An index name, option or slot that does not exist."""


class SnapshotError(NearcastError):
    """A file that is not a snapshot, is damaged, or was written by another format version."""
