"""Subscription columns in parts: joined, taken apart, given other terms, and as named arrays for snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from nearcast.columns.seal import sort_runs, take_runs
from nearcast.columns.subscriptions import Conditions, SubscriptionColumns
from nearcast.geo import Space, earth
from nearcast.kernels.refine import HOLE

Run = tuple[NDArray[np.int64], NDArray[np.int32]]


# -- joined ---------------------------------------------------------------------------------------------


def join_columns(parts: Sequence[SubscriptionColumns], space: Space) -> SubscriptionColumns:
    """One after the other: the subscriptions of a part follow those of the parts before it."""
    first = np.cumsum([0] + [len(part) for part in parts])
    boxes = np.concatenate([part.boxes for part in parts])
    owners = [start + owners_of(part) for start, part in zip(first, parts, strict=False)]
    return SubscriptionColumns(
        boxes,
        *_joined_runs([(part.term_from, part.terms) for part in parts]),
        None if len(boxes) == first[-1] else np.concatenate(owners).astype(np.int32),
        int(first[-1]),
        _joined_conditions(parts),
        space,
    )


def owners_of(columns: SubscriptionColumns) -> NDArray[np.int32]:
    """[entries] the subscription of each entry."""
    return np.arange(len(columns), dtype=np.int32) if columns.owner is None else columns.owner


def _joined_runs(runs: Sequence[Run]) -> Run:
    lengths = np.concatenate([np.diff(run_from) for run_from, _ in runs])
    run_from = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return run_from, np.concatenate([run for _, run in runs])


def _joined_conditions(parts: Sequence[SubscriptionColumns]) -> Conditions | None:
    if all(part.conditions is None for part in parts):
        return None
    every = [part.conditions or _no_conditions(len(part.boxes)) for part in parts]
    first = np.cumsum([0] + [len(part.boxes) for part in parts]).tolist()
    return Conditions(
        *_joined_runs([(c.forbid_from, c.forbid) for c in every]),
        *_joined_runs([(c.phrase_from, c.phrases) for c in every]),
        np.concatenate([c.circles for c in every]),
        {start + entry: shape for start, c in zip(first, every, strict=False) for entry, shape in c.polygons.items()},
    )


def _no_conditions(n: int) -> Conditions:
    starts, nothing = np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    return Conditions(starts, nothing, starts, nothing, np.full((n, 3), np.nan), {})


# -- taken apart ----------------------------------------------------------------------------------------


def take_subscriptions(columns: SubscriptionColumns, chosen: NDArray[np.bool_]) -> SubscriptionColumns:
    """The chosen subscriptions with all their entries, in their order."""
    owner = owners_of(columns)
    entries = np.flatnonzero(chosen[owner])
    number = np.cumsum(chosen) - 1
    count = int(chosen.sum())
    given = columns.conditions
    return SubscriptionColumns(
        columns.boxes[entries],
        *take_runs(columns.term_from, columns.terms, entries),
        None if len(entries) == count else number[owner[entries]].astype(np.int32),
        count,
        None if given is None else _taken_conditions(given, entries),
        columns.space,
    )


def cut_subscriptions(columns: SubscriptionColumns, size: int) -> Iterator[SubscriptionColumns]:
    """One part after the other, of so many subscriptions at most, each with all its entries; arrays are not copied."""
    for first in range(0, len(columns), max(1, size)):
        count = min(size, len(columns) - first)
        owner = columns.owner
        rows = slice(first, first + count) if owner is None else slice(*np.searchsorted(owner, [first, first + count]))
        yield SubscriptionColumns(
            columns.boxes[rows],
            *_cut_runs(columns.term_from, columns.terms, rows),
            None if owner is None else owner[rows] - np.int32(first),
            count,
            None if columns.conditions is None else _cut_conditions(columns.conditions, rows),
            columns.space,
        )


def _cut_runs(run_from: NDArray[np.int64], run: NDArray[np.int32], rows: slice) -> Run:
    starts = run_from[rows.start : rows.stop + 1]
    return starts - starts[0], run[starts[0] : starts[-1]]


def _cut_conditions(given: Conditions, rows: slice) -> Conditions:
    return Conditions(
        *_cut_runs(given.forbid_from, given.forbid, rows),
        *_cut_runs(given.phrase_from, given.phrases, rows),
        given.circles[rows],
        {row - rows.start: given.polygons[row] for row in range(rows.start, rows.stop) if row in given.polygons},
    )


def _taken_conditions(given: Conditions, entries: NDArray[np.intp]) -> Conditions:
    places = {int(entry): place for place, entry in enumerate(entries)} if given.polygons else {}
    return Conditions(
        *take_runs(given.forbid_from, given.forbid, entries),
        *take_runs(given.phrase_from, given.phrases, entries),
        given.circles[entries],
        {places[entry]: shape for entry, shape in given.polygons.items() if entry in places},
    )


# -- other terms ----------------------------------------------------------------------------------------


def with_terms(columns: SubscriptionColumns, term_of: NDArray[np.int32]) -> SubscriptionColumns:
    """The same subscriptions for a lexicon in which term t is called term_of[t]."""
    given = columns.conditions
    return SubscriptionColumns(
        columns.boxes,
        columns.term_from,
        sort_runs(columns.term_from, term_of[columns.terms]),
        columns.owner,
        columns.count,
        None
        if given is None
        else Conditions(
            given.forbid_from,
            sort_runs(given.forbid_from, term_of[given.forbid]),
            given.phrase_from,
            _phrases_with_terms(given.phrases, term_of),
            given.circles,
            given.polygons,
        ),
        columns.space,
    )


def _phrases_with_terms(phrases: NDArray[np.int32], term_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """A phrase is sign, length, terms (see `kernels.refine.Extras`); there are few."""
    changed = phrases.copy()
    at = 0
    while at < len(phrases):
        words = slice(at + 2, at + 2 + int(phrases[at + 1]))
        changed[words] = [HOLE if term == HOLE else term_of[term] for term in phrases[words]]
        at = words.stop
    return changed


# -- as named arrays ------------------------------------------------------------------------------------


def to_arrays(columns: SubscriptionColumns) -> dict[str, NDArray[Any]]:
    """What `from_arrays` reads; the space is not among them."""
    arrays: dict[str, NDArray[Any]] = {
        "boxes": columns.boxes,
        "term_from": columns.term_from,
        "terms": columns.terms,
        "count": np.array([columns.count]),
    }
    if columns.owner is not None:
        arrays["owner"] = columns.owner
    if columns.conditions is not None:
        given = columns.conditions
        arrays |= {
            "forbid_from": given.forbid_from,
            "forbid": given.forbid,
            "phrase_from": given.phrase_from,
            "phrases": given.phrases,
            "circles": given.circles,
        }
        arrays |= polygons_to_arrays(given.polygons)
    return arrays


def from_arrays(arrays: Mapping[str, NDArray[Any]], space: Space = earth) -> SubscriptionColumns:
    conditions = None
    if "circles" in arrays:
        conditions = Conditions(
            arrays["forbid_from"],
            arrays["forbid"],
            arrays["phrase_from"],
            arrays["phrases"],
            arrays["circles"],
            polygons_from_arrays(arrays),
        )
    return SubscriptionColumns(
        arrays["boxes"],
        arrays["term_from"],
        arrays["terms"],
        arrays.get("owner"),
        int(arrays["count"][0]),
        conditions,
        space,
    )


def polygons_to_arrays(polygons: Mapping[int, Any]) -> dict[str, NDArray[Any]]:
    """Entry to geometry, as well-known binary."""
    blobs = [shapely.to_wkb(polygons[entry]) for entry in sorted(polygons)]
    return {
        "polygon_entry": np.array(sorted(polygons), dtype=np.int64),
        "polygon_from": np.cumsum([0, *map(len, blobs)]).astype(np.int64),
        "polygon_wkb": np.frombuffer(b"".join(blobs), dtype=np.uint8),
    }


def polygons_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[int, Any]:
    start, blob = arrays["polygon_from"], arrays["polygon_wkb"].tobytes()
    return {
        int(entry): shapely.from_wkb(blob[start[i] : start[i + 1]]) for i, entry in enumerate(arrays["polygon_entry"])
    }
