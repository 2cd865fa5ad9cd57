"""Every error of the service, and the one table that translates errors to HTTP."""

from __future__ import annotations

from nearcast.errors import NearcastError
from nearcast.hub import UnknownSubscriptionError
from nearcast.moving.tracker import UnknownFollowerError
from nearcast.ranking.board import UnknownWishError
from nearcast.store import StoreError


class UnauthorizedError(NearcastError):
    """No key, or one that nobody knows."""


class ForbiddenError(NearcastError):
    """A key without the scope that is needed."""


class NotFoundError(NearcastError):
    """Nothing of this name."""


class ConflictError(NearcastError):
    """Something of this name is there already."""


class TooLargeError(NearcastError):
    """More than one request may hold."""


class MediaTypeError(NearcastError):
    """A content type that cannot be read."""


class TooManyError(NearcastError):
    """A rate or quota is used up; `retry_after` seconds later there may be room."""

    def __init__(self, reason: str, retry_after: float = 1.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


STATUS: tuple[tuple[type[NearcastError], int], ...] = (
    (UnauthorizedError, 401),
    (ForbiddenError, 403),
    (NotFoundError, 404),
    (UnknownSubscriptionError, 404),
    (UnknownWishError, 404),
    (UnknownFollowerError, 404),
    (ConflictError, 409),
    (TooLargeError, 413),
    (MediaTypeError, 415),
    (TooManyError, 429),
    (StoreError, 503),
    (NearcastError, 422),
)
"""The first that fits."""


def status_of(error: NearcastError) -> int:
    return next(status for kind, status in STATUS if isinstance(error, kind))
