"""Subscriptions as sealed columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from nearcast.columns.messages import NOT_A_BOX, NOT_ASCENDING
from nearcast.columns.seal import (
    Rejected,
    bad_boxes,
    bad_runs,
    flat_from_arrow,
    flat_to_arrow,
    read_rows,
    refuse,
    seal_boxes,
    seal_runs,
)
from nearcast.expression import Clause, Phrase
from nearcast.geo import Circle, MultiPolygon, Polygon, Region, Space, earth
from nearcast.kernels.refine import HOLE
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Subscription
from nearcast.records import read_subscription
from nearcast.text import Analyzer, analyzer

NO_TERMS = "a clause needs at least one required term"


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """What box and required terms cannot say, by entry. Refined exactly after an index has found it."""

    forbid_from: NDArray[np.int64]  # [n + 1]
    forbid: NDArray[np.int32]  # [*]     forbidden terms
    phrase_from: NDArray[np.int64]  # [n + 1]
    phrases: NDArray[np.int32]  # [*]     see kernels.refine.Extras
    circles: NDArray[np.float64]  # [n, 3]  x, y, radius; NaN where the region is no circle
    polygons: dict[int, Any]  # entry to shapely geometry


@dataclass(frozen=True, slots=True, eq=False)
class SubscriptionColumns:
    """Subscriptions as columns. Row i is an *entry*: one clause in one box of subscription owner[i].

    An ordinary subscription (one clause, one box) is one entry. `owner` None: entry i is subscription i.
    """

    boxes: NDArray[np.float64]  # [n, 4]   west, south, east, north
    term_from: NDArray[np.int64]  # [n + 1]
    terms: NDArray[np.int32]  # [*]      required terms, ascending and distinct within an entry
    owner: NDArray[np.int32] | None = None  # [n]  ascending from 0 without gaps
    count: int = -1  # number of subscriptions
    conditions: Conditions | None = None
    space: Space = earth

    def __post_init__(self) -> None:
        if self.count < 0:
            object.__setattr__(self, "count", len(self.boxes))

    def __len__(self) -> int:
        return self.count

    @classmethod
    def from_flat(cls, boxes: ArrayLike, term_from: ArrayLike, terms: ArrayLike) -> SubscriptionColumns:
        """From arrays that are laid out already; raises ColumnsError at the first row that is not."""
        sealed = seal_boxes(boxes)
        run_from, run = seal_runs(term_from, terms, len(sealed), "terms")
        refuse(bad_boxes(sealed), NOT_A_BOX)
        refuse(bad_runs(run_from, run), NOT_ASCENDING)
        refuse(np.diff(run_from) == 0, NO_TERMS)
        return cls(sealed, run_from, run)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> tuple[SubscriptionColumns, NDArray[np.intp], list[Rejected]]:
        """From columns `terms` (integers) and `west, south, east, north`: columns, their rows, rejected."""
        boxes, run_from, run, rows, rejected = flat_from_arrow(
            table,
            [
                (NOT_A_BOX, lambda b, _f, _t: bad_boxes(b)),
                (NO_TERMS, lambda _b, f, _t: np.diff(f) == 0),
                (NOT_ASCENDING, lambda _b, f, t: bad_runs(f, t)),
            ],
        )
        return cls.from_flat(boxes, run_from, run), rows, rejected

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        lexicon: Lexicon,
        *,
        space: Space = earth,
        analysis: Analyzer | None = None,
    ) -> tuple[SubscriptionColumns, list[Id], list[Rejected]]:
        """From rows such as a file has: the columns, the ids of the subscriptions, the rejected rows."""
        chosen = analysis or analyzer(lexicon.analyzer)
        values, rejected = read_rows(records, lambda record: read_subscription(record, space, chosen))
        return cls.from_values(values, lexicon, space=space), [s.id for s in values], rejected

    @classmethod
    def from_values(
        cls, subscriptions: Sequence[Subscription], lexicon: Lexicon, *, space: Space = earth
    ) -> SubscriptionColumns:
        """From subscriptions that were checked; their words join the lexicon."""
        rows = _Rows(lexicon)
        for number, subscription in enumerate(subscriptions):
            parts = space.region_boxes(subscription.region)
            for clause in subscription.expression.clauses:
                for part in parts:
                    rows.add(number, clause, (part.west, part.south, part.east, part.north), subscription.region)
        return rows.columns(len(subscriptions), space)

    def to_arrow(self) -> pa.Table:
        """One line an entry: box and required terms, as `from_arrow` reads them (no further conditions)."""
        return flat_to_arrow(self.boxes, self.term_from, self.terms)


class _Rows:
    """Entries under construction, as Python lists."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._sides: list[tuple[float, float, float, float]] = []
        self._owners: list[int] = []
        self._runs = {name: ([0], list[int]()) for name in ("terms", "forbid", "phrases")}
        self._circles: list[tuple[float, float, float]] = []
        self._polygons: dict[int, Any] = {}

    def add(self, owner: int, clause: Clause, sides: tuple[float, float, float, float], region: Region) -> None:
        entry = len(self._sides)
        self._sides.append(sides)
        self._owners.append(owner)
        self._put("terms", sorted(self._lexicon.intern_all(sorted(clause.required))))
        self._put("forbid", sorted(self._lexicon.intern_all(sorted(clause.forbidden))))
        self._put("phrases", self._encoded(clause))
        is_circle = isinstance(region, Circle)
        self._circles.append(
            (region.x, region.y, region.radius) if isinstance(region, Circle) else (np.nan, np.nan, np.nan)
        )
        if not is_circle and isinstance(region, Polygon | MultiPolygon):
            self._polygons[entry] = region.geometry

    def _put(self, name: str, values: list[int]) -> None:
        starts, run = self._runs[name]
        run += values
        starts.append(len(run))

    def _encoded(self, clause: Clause) -> list[int]:
        signed = [(1, p) for p in clause.phrases] + [(0, p) for p in clause.forbidden_phrases]
        return [n for sign, phrase in sorted(signed, key=str) for n in (sign, len(phrase), *self._terms(phrase))]

    def _terms(self, phrase: Phrase) -> list[int]:
        return [HOLE if word is None else self._lexicon.intern(word) for word in phrase]

    def columns(self, count: int, space: Space) -> SubscriptionColumns:
        sealed = {
            name: (np.array(starts, dtype=np.int64), np.array(run, dtype=np.int32))
            for name, (starts, run) in self._runs.items()
        }
        circles = np.array(self._circles, dtype=np.float64).reshape(-1, 3)
        plain = not (len(sealed["forbid"][1]) or len(sealed["phrases"][1]) or self._polygons)
        plain = plain and bool(np.isnan(circles).all())
        conditions = Conditions(*sealed["forbid"], *sealed["phrases"], circles, self._polygons)
        return SubscriptionColumns(
            np.array(self._sides, dtype=np.float64).reshape(-1, 4),
            *sealed["terms"],
            None if len(self._owners) == count else np.array(self._owners, dtype=np.int32),
            count,
            None if plain else conditions,
            space,
        )
