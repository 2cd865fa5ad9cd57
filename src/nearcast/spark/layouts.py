"""The layouts by name: how subscriptions and messages are spread over shards (after Skype section 7)."""

from __future__ import annotations

import math
from collections.abc import Callable

from nearcast.errors import NearcastError
from nearcast.spark import cuts
from nearcast.spark.routes import ByNumber, ByPlace, ByTerm, Entries, Nested, Posts, Route

Maker = Callable[[Entries, Posts, int, int], Route]
"""From entries, a sample of messages, the number of terms and the number of shards."""

REPLICATED = "replicated"
AUTO = "auto"
MOST_SHARDS = 4096


def _hash(_entries: Entries, _posts: Posts, _n_terms: int, k: int) -> Route:
    return ByNumber(k)


def _location(entries: Entries, posts: Posts, _n_terms: int, k: int) -> Route:
    return ByPlace(cuts.cells(entries.boxes, posts.boxes, k))


def _keyword(entries: Entries, posts: Posts, n_terms: int, k: int) -> Route:
    return ByTerm(k, cuts.groups(entries, posts, n_terms, k, keys_only=False), keys_only=False)


def _prefix(entries: Entries, posts: Posts, n_terms: int, k: int) -> Route:
    return ByTerm(k, cuts.groups(entries, posts, n_terms, k, keys_only=True), keys_only=True)


def nested(first: Maker, then: Maker) -> Maker:
    """About the square root of k parts by the first, each divided by the second."""

    def make(entries: Entries, posts: Posts, n_terms: int, k: int) -> Route:
        parts = max(1, math.isqrt(k))
        outer = first(entries, posts, n_terms, parts)
        kept, sent = outer.entries(entries), outer.posts(posts)
        inner = [
            then(
                entries.take(kept[:, i].nonzero()[0]),
                posts.take(sent[:, i].nonzero()[0]),
                n_terms,
                k // parts + (i < k % parts),
            )
            for i in range(parts)
        ]
        return Nested(outer, inner)

    return make


LAYOUTS: dict[str, Maker] = {
    "hash": _hash,
    "location": _location,
    "keyword": _keyword,
    "prefix": _prefix,
    "spatial-first": nested(_location, _prefix),
    "keyword-first": nested(_prefix, _location),
}
NAMES = (AUTO, REPLICATED, *LAYOUTS)


def check_layout(layout: str, shards: int) -> None:
    if layout not in NAMES:
        raise NearcastError(f"layout {layout!r} given; there are {', '.join(NAMES)}")
    if not 1 <= shards <= MOST_SHARDS:
        raise NearcastError(f"{shards} shards given; 1 to {MOST_SHARDS} are possible")
