"""The truth of an index: its entries, their slots, and the exact last part of a match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from nearcast.columns import Conditions, MessageBatch, Pairs, SubscriptionColumns
from nearcast.errors import CatalogueError, ColumnsError
from nearcast.geo import Space, earth, plane
from nearcast.indexes.pool import FreeNumbers, Pool, enlarged, reserved
from nearcast.kernels.layout import Entries
from nearcast.kernels.refine import Extras, WordOrder, refine

NO_ENTRY = -1
NO_CIRCLE = np.nan
MOST_TERMS = 2**31 - 1  # runs of terms start at 32-bit positions


class Added(NamedTuple):
    entries: NDArray[np.int64]  # numbers of the new entries, in the order of the columns' rows
    slots: NDArray[np.int32]  # slots of the new subscriptions, in the order of the columns


class EntryTable:
    """Entries by number, subscriptions by slot. Freed numbers and freed term runs are used again.

    A slot's generation grows when it is freed, so that whoever kept a slot can see that it changed hands.

    As long as every subscription is one entry (`_several` is false), slots and entries are handed out and
    freed alike: slot s is entry s, and the arrays that lead from one to the other stay empty. Arrays grow
    by `reserved`, so that a large table never makes an insertion wait for a copy of itself.
    """

    def __init__(self) -> None:
        self.space: Space | None = None
        self._numbers = FreeNumbers()
        self._slots = FreeNumbers()
        self._terms = Pool()
        self._boxes = np.zeros((0, 4), dtype=np.float64)
        self._term_from = np.zeros(0, dtype=np.int32)
        self._term_count = np.zeros(0, dtype=np.int32)
        self._slot_of = np.zeros(0, dtype=np.int32)
        self._next_entry = np.zeros(0, dtype=np.int32)  # chain of the entries of one slot
        self._first_entry = np.zeros(0, dtype=np.int32)  # by slot; NO_ENTRY: the slot is free
        self.generation = np.zeros(0, dtype=np.int32)  # by slot; those behind its end are in their first life
        self._several = False  # some subscription has more than one entry
        self._extra: _Extra | None = None

    # -- reading ------------------------------------------------------------------------------------

    @property
    def entries(self) -> Entries:
        """What kernels read: all entries up to the highest number, free ones with term_count 0."""
        top = self._numbers.top
        terms = self._terms.values[: self._terms.top]
        return Entries(self._boxes[:top], self._term_from[:top], self._term_count[:top], terms)

    @property
    def n_live(self) -> int:
        """Live subscriptions."""
        return self._slots.top - self._slots.n_free

    @property
    def n_entries(self) -> int:
        return self._numbers.top - self._numbers.n_free

    def live_entries(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._term_count[: self._numbers.top])

    def entries_of(self, slots: NDArray[np.int32]) -> NDArray[np.int64]:
        """All entries of these slots, which must be in use."""
        inside = (slots >= 0) & (slots < self._slots.top)
        if not inside.all() or not self._in_use(slots).all():
            raise CatalogueError(f"slots {slots[:5].tolist()}…: not in use; remove takes slots that insert gave")
        if (np.diff(np.sort(slots)) == 0).any():
            raise CatalogueError("remove was given the same slot twice")
        if not self._several:
            return slots.astype(np.int64)
        chains = []
        at = self._first_entry[slots]
        while len(at):
            chains.append(at)
            following = self._next_entry[at]
            at = following[following != NO_ENTRY]
        return np.concatenate([np.zeros(0, dtype=np.int64), *chains])

    def _in_use(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        known, free = (self._first_entry, NO_ENTRY) if self._several else (self._term_count, 0)
        return np.asarray(known[slots] != free)

    def nbytes(self) -> dict[str, int]:
        used = self._numbers.top
        sizes = {
            "boxes": self._boxes[:used].nbytes,
            "terms": self._terms.nbytes + self._term_from[:used].nbytes + self._term_count[:used].nbytes,
            "slots": self.generation[: self._slots.top].nbytes,
        }
        if self._several:
            sizes["slots"] += self._slot_of[:used].nbytes + self._next_entry[:used].nbytes
            sizes["slots"] += self._first_entry[: self._slots.top].nbytes
        return sizes | ({"conditions": self._extra.nbytes} if self._extra else {})

    # -- writing ------------------------------------------------------------------------------------

    def append(self, columns: SubscriptionColumns) -> Added:
        self._same_space(columns.space)
        n = len(columns.boxes)
        if columns.owner is not None and not self._several:
            self._tell_slots_apart()
        entries, slots = self._numbers.take(n), self._slots.take(len(columns))
        self._make_room()
        if self._terms.top + len(columns.terms) > MOST_TERMS:
            raise CatalogueError(f"more than {MOST_TERMS:,} terms in one index: use several (shards)")
        rows = _as_slice(entries)
        self._boxes[rows] = columns.boxes
        self._term_from[rows] = self._terms.put(columns.term_from, columns.terms)
        self._term_count[rows] = np.diff(columns.term_from)
        if self._several:
            self._link(entries, slots, columns.owner)
        if columns.conditions is not None and self._extra is None:
            self._extra = _Extra()
        if self._extra is not None:
            self._extra.put(entries, self._numbers.top, columns.conditions)
        return Added(entries, slots.astype(np.int32))

    def release(self, slots: NDArray[np.int32], entries: NDArray[np.int64]) -> None:
        self._terms.free(self._term_from[entries], self._term_count[entries])
        self._term_count[entries] = 0
        if self._extra is not None:
            self._extra.free(entries)
        self._numbers.give_back(entries)
        if self._several:
            self._first_entry[slots] = NO_ENTRY
        self.generation = reserved(self.generation, int(slots.max(initial=-1)) + 1)
        self.generation[slots] += 1
        self._slots.give_back(slots.astype(np.int64))

    def _same_space(self, space: Space) -> None:
        if self.space is None:
            self.space = space
        elif self.space != space:
            raise ColumnsError(f"columns of {space} given to an index of {self.space}")

    def _make_room(self) -> None:
        top = self._numbers.top
        self._boxes = reserved(self._boxes, top)
        self._term_from = reserved(self._term_from, top)
        self._term_count = reserved(self._term_count, top)
        if self._several:
            self._slot_of = reserved(self._slot_of, top)
            self._next_entry = reserved(self._next_entry, top)
            self._first_entry = reserved(self._first_entry, self._slots.top)

    def _tell_slots_apart(self) -> None:
        """From now on a subscription may have several entries: write down what went without saying."""
        self._several = True
        self._make_room()
        top = self._numbers.top
        in_use = self._term_count[:top] != 0
        self._slot_of[:top] = np.arange(top)
        self._next_entry[:top] = NO_ENTRY
        self._first_entry[:top] = np.where(in_use, np.arange(top), NO_ENTRY)

    def _link(self, entries: NDArray[np.int64], slots: NDArray[np.int64], owner: NDArray[np.int32] | None) -> None:
        self._next_entry[entries] = NO_ENTRY
        if owner is None:
            self._slot_of[entries] = slots
            self._first_entry[slots] = entries
            return
        self._slot_of[entries] = slots[owner]
        begins = np.concatenate([[True], owner[1:] != owner[:-1]])
        self._first_entry[slots] = entries[begins]
        chained = np.flatnonzero(~begins)
        self._next_entry[entries[chained - 1]] = entries[chained]

    # -- the last part of a match -------------------------------------------------------------------

    def settle(self, batch: MessageBatch, rows: NDArray[np.int32], entries: NDArray[np.int32]) -> Pairs:
        """Candidates that are exact on boxes and required terms, to the set of (message, slot)."""
        message = rows if batch.message is None else batch.message[rows]
        if self._extra is not None and len(rows):
            keep = self._extra.holds(batch, rows, message, entries, self.space == earth)
            message, entries = message[keep], entries[keep]
        if self._several:
            return Pairs.once_each(message, self._slot_of[entries])
        return Pairs(message, entries) if batch.message is None else Pairs.once_each(message, entries)

    # -- saving -------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        top, slots = self._numbers.top, self._slots.top
        arrays: dict[str, NDArray[Any]] = {
            "boxes": self._boxes[:top],
            "term_from": self._term_from[:top],
            "term_count": self._term_count[:top],
            "slot_of": self._slot_of[:top] if self._several else self._slot_of[:0],
            "next_entry": self._next_entry[:top] if self._several else self._next_entry[:0],
            "first_entry": self._first_entry[:slots] if self._several else self._first_entry[:0],
            "generation": self.generation[:slots],
            "numbers": self._numbers.state(),
            "slots": self._slots.state(),
            "several": np.array([self._several]),
            "space": _space_state(self.space),
        }
        arrays |= {f"terms.{name}": array for name, array in self._terms.state().items()}
        if self._extra is not None:
            arrays |= {f"extra.{name}": array for name, array in self._extra.state(top).items()}
        return arrays

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> EntryTable:
        table = cls()
        table._boxes, table._term_from = arrays["boxes"], arrays["term_from"]
        table._term_count, table._slot_of = arrays["term_count"], arrays["slot_of"]
        table._next_entry, table._first_entry = arrays["next_entry"], arrays["first_entry"]
        table.generation = arrays["generation"]
        table._numbers = FreeNumbers.restored(arrays["numbers"])
        table._slots = FreeNumbers.restored(arrays["slots"])
        table._several = bool(arrays["several"][0])
        table.space = _space_restored(arrays["space"])
        table._terms = Pool.restored(*(arrays[f"terms.{name}"] for name in ("values", "free_length", "free_start")))
        if "extra.circles" in arrays:
            extra = {name[6:]: array for name, array in arrays.items() if name.startswith("extra.")}
            table._extra = _Extra.restored(extra)
        return table


def _as_slice(numbers: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Numbers in a row as a slice: much quicker to write to."""
    n = len(numbers)
    if n and numbers[-1] - numbers[0] == n - 1 and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def _space_state(space: Space | None) -> NDArray[np.float64]:
    """Nothing, one NaN for the earth, or the bounds of a plane."""
    if space is None:
        return np.zeros(0)
    bounds = space.bounds
    return np.array([np.nan]) if space == earth else np.array([bounds.west, bounds.south, bounds.east, bounds.north])


def _space_restored(state: NDArray[np.float64]) -> Space | None:
    if len(state) == 0:
        return None
    return earth if len(state) == 1 else plane(*(float(side) for side in state))


class _Extra:
    """Forbidden terms, phrases, circles and polygons of entries; exists only where some entry has any."""

    def __init__(self) -> None:
        self._forbid, self._phrases = Pool(), Pool()
        self._forbid_from, self._phrase_from = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._forbid_count, self._phrase_count = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
        self._circles = np.zeros((0, 3), dtype=np.float64)
        self._polygons: dict[int, Any] = {}

    @property
    def nbytes(self) -> int:
        arrays = (self._forbid_from, self._forbid_count, self._phrase_from, self._phrase_count, self._circles)
        return sum(array.nbytes for array in arrays) + self._forbid.nbytes + self._phrases.nbytes

    @property
    def _arrays(self) -> Extras:
        return Extras(
            self._forbid_from,
            self._forbid_count,
            self._forbid.values,
            self._phrase_from,
            self._phrase_count,
            self._phrases.values,
            self._circles,
        )

    def put(self, entries: NDArray[np.int64], top: int, conditions: Conditions | None) -> None:
        self._forbid_from = enlarged(self._forbid_from, top)
        self._forbid_count = enlarged(self._forbid_count, top)
        self._phrase_from = enlarged(self._phrase_from, top)
        self._phrase_count = enlarged(self._phrase_count, top)
        self._circles = enlarged(self._circles, top, NO_CIRCLE)
        if conditions is None:
            return
        self._forbid_from[entries] = self._forbid.put(conditions.forbid_from, conditions.forbid)
        self._forbid_count[entries] = np.diff(conditions.forbid_from)
        self._phrase_from[entries] = self._phrases.put(conditions.phrase_from, conditions.phrases)
        self._phrase_count[entries] = np.diff(conditions.phrase_from)
        self._circles[entries] = conditions.circles
        self._polygons |= {int(entries[row]): shape for row, shape in conditions.polygons.items()}

    def free(self, entries: NDArray[np.int64]) -> None:
        self._forbid.free(self._forbid_from[entries], self._forbid_count[entries])
        self._phrases.free(self._phrase_from[entries], self._phrase_count[entries])
        self._forbid_count[entries] = 0
        self._phrase_count[entries] = 0
        self._circles[entries] = NO_CIRCLE
        if self._polygons:
            for entry in entries.tolist():
                self._polygons.pop(entry, None)

    def holds(
        self,
        batch: MessageBatch,
        rows: NDArray[np.int32],
        message: NDArray[np.int32],
        entries: NDArray[np.int32],
        on_earth: bool,
    ) -> NDArray[np.bool_]:
        """Which candidate pairs also keep the further conditions."""
        order = batch.order
        if order is None:
            if self._phrase_count[entries].any():
                raise ColumnsError("a phrase was asked for, but this batch has no word order (use from_records)")
            empty = np.zeros(0, dtype=np.int32)
            order = WordOrder(np.zeros(batch.count + 1, dtype=np.int64), empty, empty)
        keep = np.ones(len(rows), dtype=np.bool_)
        refine(self._arrays, batch.rows, order, message, rows, entries, on_earth, keep)
        if self._polygons:
            self._refine_polygons(batch.boxes, rows, entries, keep)
        return keep

    def _refine_polygons(
        self,
        boxes: NDArray[np.float64],
        rows: NDArray[np.int32],
        entries: NDArray[np.int32],
        keep: NDArray[np.bool_],
    ) -> None:
        shapes = [(i, self._polygons[e]) for i, e in enumerate(entries.tolist()) if keep[i] and e in self._polygons]
        if not shapes:
            return
        chosen = np.array([i for i, _ in shapes])
        places = place_geometries(boxes[rows[chosen]])
        keep[chosen] = shapely.intersects(np.array([shape for _, shape in shapes], dtype=object), places)

    def state(self, top: int) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "forbid_from": self._forbid_from[:top],
            "forbid_count": self._forbid_count[:top],
            "phrase_from": self._phrase_from[:top],
            "phrase_count": self._phrase_count[:top],
            "circles": self._circles[:top],
            "polygon_entry": np.array(sorted(self._polygons), dtype=np.int64),
        }
        blobs = [shapely.to_wkb(self._polygons[entry]) for entry in sorted(self._polygons)]
        arrays["polygon_from"] = np.cumsum([0, *map(len, blobs)]).astype(np.int64)
        arrays["polygon_wkb"] = np.frombuffer(b"".join(blobs), dtype=np.uint8)
        arrays |= {f"forbid.{name}": array for name, array in self._forbid.state().items()}
        return arrays | {f"phrases.{name}": array for name, array in self._phrases.state().items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> _Extra:
        extra = cls()
        parts = ("values", "free_length", "free_start")
        extra._forbid = Pool.restored(*(arrays[f"forbid.{part}"] for part in parts))
        extra._phrases = Pool.restored(*(arrays[f"phrases.{part}"] for part in parts))
        extra._forbid_from, extra._forbid_count = arrays["forbid_from"], arrays["forbid_count"]
        extra._phrase_from, extra._phrase_count = arrays["phrase_from"], arrays["phrase_count"]
        extra._circles = arrays["circles"]
        start, blob = arrays["polygon_from"], arrays["polygon_wkb"].tobytes()
        extra._polygons = {
            int(entry): shapely.from_wkb(blob[start[i] : start[i + 1]])
            for i, entry in enumerate(arrays["polygon_entry"])
        }
        return extra


def place_geometries(boxes: NDArray[np.float64]) -> NDArray[np.object_]:
    """Message places as geometries: GEOS wants a degenerate box as a point or a line."""
    west, south, east, north = boxes.T
    flat = (west == east) | (south == north)
    geometries = np.empty(len(boxes), dtype=object)
    geometries[~flat] = shapely.box(west[~flat], south[~flat], east[~flat], north[~flat])
    ends = np.stack([boxes[flat][:, :2], boxes[flat][:, 2:]], axis=1)
    is_point = (ends[:, 0] == ends[:, 1]).all(axis=1)
    lines = np.empty(len(ends), dtype=object)
    lines[is_point] = shapely.points(ends[is_point, 0])
    lines[~is_point] = shapely.linestrings(ends[~is_point])
    geometries[flat] = lines
    return geometries
