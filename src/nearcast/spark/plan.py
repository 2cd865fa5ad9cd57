"""A plan: the layout, what it costs by the cost model, and why it was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.spark.layouts import AUTO, LAYOUTS, REPLICATED, check_layout
from nearcast.spark.routes import Entries, Flags, Posts, Route, any_of

BYTES_AN_ENTRY = 150
"""Of an index with its table, ids and conditions: assumed; strata alone takes 82 to 90 (docs/results)."""

COPY_COST = 5.0
ENTRY_COST = 1e-6
"""Microseconds for one copy of a message (shuffle, reading), and for one entry in a shard that it is sent to.
Only their relation matters: a shard of a million entries costs a message less than being sent there."""

REPLICATE_UP_TO = 4 << 30
"""Bytes of an index that every machine can hold."""


@dataclass(frozen=True, slots=True)
class LayoutReport:
    """What a layout does to these subscriptions and this sample of messages."""

    layout: str
    shards: int
    replication: float  # shards that keep a subscription, on average (Skype's replication ratio)
    sent: float  # copies of a message, on average (Skype's communication cost)
    balance: float  # cost N x p of the dearest shard over the mean; 1 is perfect
    busiest: float  # estimated microseconds a message costs the busiest shard
    largest: int  # estimated bytes of the largest shard


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The chosen layout, all that were looked at, and why."""

    chosen: LayoutReport
    why: str
    subscriptions: int
    entries: int
    sampled: int  # messages behind the estimates
    others: tuple[LayoutReport, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> PlanReport:
        others = tuple(LayoutReport(**other) for other in told["others"])
        return cls(**{**told, "chosen": LayoutReport(**told["chosen"]), "others": others})

    def __str__(self) -> str:
        head = f"{'layout':<15}{'shards':>7}{'replication':>13}{'sent':>8}{'balance':>9}{'busiest':>10}{'largest':>10}"
        rows = [
            f"{r.layout:<15}{r.shards:>7}{r.replication:>13.2f}{r.sent:>8.2f}{r.balance:>9.2f}"
            f"{r.busiest:>7.2f} µs{r.largest / 1e6:>7.1f} MB"
            for r in (self.chosen, *self.others)
        ]
        size = f"{self.subscriptions:,} subscriptions, {self.entries:,} entries, {self.sampled:,} messages sampled"
        return "\n".join([f"{self.chosen.layout}: {self.why}", size, head, *rows])


class Plan(NamedTuple):
    """`route` None: replicated, nothing is routed."""

    route: Route | None
    kept: Flags  # [subscriptions, shards]
    report: PlanReport


def make_plan(
    entries: Entries,
    posts: Posts,
    n_terms: int,
    n_subscriptions: int,
    *,
    layout: str = AUTO,
    shards: int = 2,
    replicate_up_to: int = REPLICATE_UP_TO,
) -> Plan:
    """The plan of this layout; `auto` replicates what fits on a machine and else takes the least busy layout."""
    check_layout(layout, shards)
    size = len(entries.boxes) * BYTES_AN_ENTRY
    if layout == REPLICATED or (layout == AUTO and size <= replicate_up_to):
        why = (
            "asked for"
            if layout == REPLICATED
            else f"about {_bytes(size)} fit the {_bytes(replicate_up_to)} allowed on a machine; no message is moved"
        )
        kept = np.ones((n_subscriptions, 1), np.bool_)
        report = LayoutReport(REPLICATED, 1, 1.0, 1.0, 1.0, COPY_COST + ENTRY_COST * len(entries.boxes), size)
        return Plan(None, kept, PlanReport(report, why, n_subscriptions, len(entries.boxes), len(posts.boxes)))
    names = list(LAYOUTS) if layout == AUTO else [layout]
    tried = [_tried(name, entries, posts, n_terms, n_subscriptions, shards) for name in names]
    tried.sort(key=lambda plan: plan.report.chosen.busiest)
    if layout == AUTO:
        why = (
            f"about {_bytes(size)} do not fit the {_bytes(replicate_up_to)} allowed on a machine; "
            f"of {len(tried)} layouts its busiest shard has the least to do"
        )
    else:
        why = "asked for"
    best = tried[0]
    others = tuple(plan.report.chosen for plan in tried[1:])
    return best._replace(report=_explained(best.report, why, others))


def _explained(report: PlanReport, why: str, others: tuple[LayoutReport, ...]) -> PlanReport:
    return PlanReport(report.chosen, why, report.subscriptions, report.entries, report.sampled, others)


def _tried(name: str, entries: Entries, posts: Posts, n_terms: int, n_subscriptions: int, shards: int) -> Plan:
    route = LAYOUTS[name](entries, posts, n_terms, shards)
    flags = route.entries(entries)
    kept = any_of(flags, entries.owner, n_subscriptions)
    sizes = np.bincount(entries.owner, minlength=n_subscriptions) @ kept  # a shard keeps a subscription whole
    share, sent = _shares(route.posts(posts))
    cost = sizes * share
    report = LayoutReport(
        name,
        route.shards,
        float(kept.sum()) / max(1, n_subscriptions),
        sent,
        float(cost.max(initial=0) / cost.mean()) if cost.any() else 1.0,
        float((share * (COPY_COST + ENTRY_COST * sizes)).max(initial=0)),
        int(sizes.max(initial=0)) * BYTES_AN_ENTRY,
    )
    return Plan(route, kept, PlanReport(report, "", n_subscriptions, len(entries.boxes), len(posts.boxes)))


def _shares(sent: Flags) -> tuple[NDArray[np.float64], float]:
    """[shards] the share of messages that each gets, and copies of a message on average."""
    n = max(1, len(sent))
    return sent.sum(axis=0) / n, float(sent.sum()) / n


def rarest(term_from: NDArray[np.int64], terms: NDArray[np.int32], weight: NDArray[np.int64]) -> NDArray[np.int32]:
    """[n] of each run the term with the least weight; every run has a term."""
    if len(term_from) < 2:
        return np.zeros(0, np.int32)
    marked = (weight[terms].astype(np.int64) << 32) | terms
    return (np.minimum.reduceat(marked, term_from[:-1]) & 0xFFFFFFFF).astype(np.int32)


def as_posts(entries: Entries) -> Posts:
    """Where nothing is known of messages: one in the middle of each entry, with its words."""
    middle = (entries.boxes[:, :2] + entries.boxes[:, 2:]) / 2
    return Posts(np.tile(middle, 2), entries.term_from, entries.terms)


def _bytes(n: int) -> str:
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"
