"""Who ranks which wish, and who sifts messages for it (Skype section 7.3).

Every wish has one *owner*, the shard that keeps its ranking. Where all of a shard's messages are looked at by the
owner itself (hash, location) that is all. Otherwise *sieves* look at messages first: the shards of the terms of the
wish's loose prefix find what reaches its threshold, and send it to the owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast import snapshot
from nearcast.errors import NearcastError
from nearcast.geo import Space, earth, plane
from nearcast.idf import Idf
from nearcast.ranking import PostColumns, Window, WishColumns
from nearcast.ranking.strata_rank import StrataRank
from nearcast.spark import cuts
from nearcast.spark.layouts import Maker, nested
from nearcast.spark.routes import ByPlace, ByTerm, Entries, Nested, Posts, Route, restored
from nearcast.spark.storage import IdKind

MOST_SHARDS = 64  # they are bits of a word
SLACK = 1e-9  # a bound must lie so far below a threshold to exclude a message: sums are rounded


def _location(entries: Entries, posts: Posts, _n_terms: int, k: int) -> Route:
    return ByPlace(cuts.cells(entries.boxes, posts.boxes, k))


def _terms(entries: Entries, posts: Posts, n_terms: int, k: int) -> Route:
    return ByTerm(k, cuts.groups(entries, posts, n_terms, k, keys_only=False), keys_only=False)


WHOLE = ("hash", "location")
SIFTED: Mapping[str, Maker] = {
    "keyword": _terms,
    "prefix": _terms,
    "spatial-first": nested(_location, _terms),
    "keyword-first": nested(_terms, _location),
}
DISTRIBUTIONS = (*WHOLE, *SIFTED)


@dataclass(frozen=True, slots=True)
class RankSettings:
    """What holds for the whole stream."""

    window: Window
    distribution: str = "hash"
    shards: int = 1
    bounds: tuple[float, float, float, float] | None = None  # of a plane; None is the earth
    analyzer: str = "unicode"
    wish_ids: IdKind = "string"
    message_ids: IdKind = "string"

    def __post_init__(self) -> None:
        if self.distribution not in DISTRIBUTIONS:
            raise NearcastError(f"distribution {self.distribution!r} given; there are {', '.join(DISTRIBUTIONS)}")
        if not 1 <= self.shards <= MOST_SHARDS:
            raise NearcastError(f"{self.shards} shards given; 1 to {MOST_SHARDS} are possible")

    @property
    def space(self) -> Space:
        return earth if self.bounds is None else plane(*self.bounds)

    @property
    def is_sifted(self) -> bool:
        return self.distribution in SIFTED

    def to_json(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.__slots__ if name != "window"}
        return told | {"count": self.window.count, "seconds": self.window.seconds}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> RankSettings:
        rest = {name: value for name, value in told.items() if name not in ("count", "seconds")}
        rest["bounds"] = tuple(rest["bounds"]) if rest["bounds"] else None
        return cls(Window(told["count"], told["seconds"]), **rest)


class RankPlan:
    """Settings and cuts. `rarity` orders terms: the rarest in messages first."""

    def __init__(
        self,
        settings: RankSettings,
        route: Route | None = None,
        rarity: NDArray[np.int64] | None = None,
        idf: Idf | None = None,
    ) -> None:
        self.settings = settings
        self.route = route
        self.rarity = np.zeros(0, np.int64) if rarity is None else rarity  # [terms]  place in the order
        self.idf = idf or Idf()

    # -- owners -------------------------------------------------------------------------------------

    def owners(self, numbers: NDArray[np.int64], points: NDArray[np.float64]) -> NDArray[np.int64]:
        """[n] the shard that keeps each ranking (equation 14, or the cell of the point)."""
        if self.settings.distribution == "location":
            assert self.route is not None
            return np.asarray(self.route.entries(_entries(points)).argmax(axis=1), np.int64)
        return np.asarray(numbers % self.settings.shards, np.int64)

    # -- sieves -------------------------------------------------------------------------------------

    def in_prefix(self, wishes: WishColumns, theta: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Of all terms of the wishes, those in a loose prefix (definition 12).

        A message that shares only the terms behind the prefix has a cosine of at most their length (its own vector
        has length one), and at best lies at the point itself. If even that is below the threshold, nobody needs to
        look at it. The paper adds the terms' greatest weights in messages, which saves hardly a copy more.
        """
        if self.settings.distribution == "keyword":
            return np.ones(len(wishes.terms), np.bool_)
        counts = np.diff(wishes.term_from)
        row = np.repeat(np.arange(len(wishes)), counts)
        order = np.lexsort((self._rank(wishes.terms), row))
        length = np.sqrt(_sums_behind(wishes.weights[order] ** 2, wishes.term_from))
        alpha = wishes.alpha[row]
        reached = alpha + (1.0 - alpha) * length >= theta[row] - SLACK
        first = wishes.term_from[:-1]
        reached[first[counts > 0]] = True
        found = np.empty(len(order), np.bool_)
        found[order] = reached
        return found

    def sieves(self, wishes: WishColumns, in_prefix: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """[n] the shards that must sift for each wish, as bits."""
        assert self.route is not None
        total = np.concatenate([[0], np.cumsum(in_prefix)])
        term_from = np.asarray(total[wishes.term_from], np.int64)
        flags = self.route.entries(_entries(wishes.points, term_from, self.known(wishes.terms[in_prefix])))
        bits = np.uint64(1) << np.arange(flags.shape[1], dtype=np.uint64)
        return np.asarray((flags * bits).sum(axis=1, dtype=np.uint64))

    def groups_of(self, shard: int, wishes: WishColumns, in_prefix: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The distinct terms by which these wishes are found in this shard."""
        assert self.route is not None
        row = np.repeat(np.arange(len(wishes)), np.diff(wishes.term_from))[in_prefix]
        terms = wishes.terms[in_prefix]
        alone = _entries(wishes.points[row], np.arange(len(terms) + 1), self.known(terms))
        return np.unique(terms[self.route.entries(alone)[:, shard]])

    def known(self, terms: NDArray[np.int32]) -> NDArray[np.int32]:
        """Words that came after the plan share the group of an older one."""
        n = max(1, len(self.rarity))
        return np.asarray(np.where(terms < n, terms, terms % n), np.int32)

    def _rank(self, terms: NDArray[np.int32]) -> NDArray[np.int64]:
        """New words are the rarest."""
        if not len(self.rarity):
            return terms.astype(np.int64)
        return np.where(terms < len(self.rarity), self.rarity[self.known(terms)], -1)

    # -- storage ------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        told, arrays = self.route.state() if self.route is not None else (None, [])
        named = {f"route{i}": array for i, array in enumerate(arrays)} | {
            "rarity": self.rarity,
            "idf": self.idf.by_term,
        }
        meta = {"settings": self.settings.to_json(), "route": told, "parts": len(arrays), "unseen": self.idf.unseen}
        snapshot.save(path, named, meta)

    @classmethod
    def load(cls, path: Path) -> RankPlan:
        arrays, meta = snapshot.load(path)
        parts = [arrays[f"route{i}"] for i in range(meta["parts"])]
        route = restored(meta["route"], parts) if meta["route"] else None
        idf = Idf(arrays["idf"], meta["unseen"])
        return cls(RankSettings.from_json(meta["settings"]), route, arrays["rarity"], idf)


def made(
    settings: RankSettings,
    wishes: WishColumns,
    sample: PostColumns,
    idf: Idf,
    theta: NDArray[np.float64] | None = None,
) -> RankPlan:
    """A plan from wishes, their thresholds (if not given, those after the sample) and a sample of messages.

    Costs are N x p of equations 15 and 16; for prefixes N counts the wishes that a term would find.
    """
    n_terms = 1 + max(int(wishes.terms.max(initial=-1)), int(sample.terms.max(initial=-1)))
    frequency = np.bincount(sample.terms, minlength=n_terms)
    rarity = np.empty(n_terms, np.int64)
    rarity[np.argsort(frequency, kind="stable")] = np.arange(n_terms)
    plan = RankPlan(settings, None, rarity, idf)
    if settings.distribution == "hash":
        return plan
    if settings.distribution == "location":
        return RankPlan(
            settings, ByPlace(cuts.cells(_boxes(wishes.points), sample.boxes, settings.shards)), rarity, idf
        )
    chosen = plan.in_prefix(wishes, _thresholds(settings, wishes, sample) if theta is None else theta)
    total = np.concatenate([[0], np.cumsum(chosen)])
    entries = _entries(wishes.points, np.asarray(total[wishes.term_from], np.int64), wishes.terms[chosen])
    posts = Posts(sample.boxes, sample.term_from, sample.terms)
    route = SIFTED[settings.distribution](entries, posts, n_terms, settings.shards)
    return RankPlan(settings, with_all_terms(route), rarity, idf)


def _thresholds(settings: RankSettings, wishes: WishColumns, sample: PostColumns) -> NDArray[np.float64]:
    """What the thresholds are when the window holds the sample."""
    ranker = StrataRank(Window(count=max(1, len(sample))), settings.space)
    ranker.load(sample)
    slots = ranker.subscribe(wishes)
    return np.asarray(ranker.table.buffers.theta[slots])


def with_all_terms(route: Route) -> Route:
    """Terms that no wish had get a group as well: a later wish may have them."""
    if isinstance(route, ByTerm):
        spread = np.arange(len(route.group_of)) % max(1, route.shards)
        return ByTerm(route.shards, np.where(route.group_of >= 0, route.group_of, spread).astype(np.int16), False)
    if isinstance(route, Nested):
        return Nested(with_all_terms(route.outer), [with_all_terms(inner) for inner in route.inner])
    return route


def _sums_behind(values: NDArray[np.float64], run_from: NDArray[np.int64]) -> NDArray[np.float64]:
    """By value, the sum of it and of those behind it in its run. Position after position, so that no sum meets
    those of other runs: their rounding would be larger than a weight."""
    sums = values.copy()
    counts = np.diff(run_from)
    for position in range(int(counts.max(initial=0)) - 2, -1, -1):
        at = run_from[:-1][counts > position + 1] + position
        sums[at] += sums[at + 1]
    return sums


def _boxes(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([points, points], axis=1)


def _entries(
    points: NDArray[np.float64], term_from: NDArray[Any] | None = None, terms: NDArray[np.int32] | None = None
) -> Entries:
    n = len(points)
    if term_from is None or terms is None:
        term_from, terms = np.zeros(n + 1, np.int64), np.zeros(0, np.int32)
    return Entries(_boxes(points), np.asarray(term_from, np.int64), terms, np.zeros(n, np.int32), np.arange(n))
