"""The truth of an index: its entries, their slots, and the exact last part of a match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch, Pairs, SubscriptionColumns
from nearcast.columns.parts import cut_subscriptions
from nearcast.errors import CatalogueError, ColumnsError
from nearcast.geo import Space, earth, plane
from nearcast.indexes.conditions import ConditionTable
from nearcast.indexes.pool import FreeNumbers, Pool, reserved
from nearcast.kernels.layout import Entries

NO_ENTRY = -1
MOST_TERMS = 2**31 - 1  # runs of terms start at 32-bit positions
CountType: TypeAlias = type[np.int16] | type[np.int32]


class Added(NamedTuple):
    entries: NDArray[np.int64]  # numbers of the new entries, in the order of the columns' rows
    slots: NDArray[np.int32]  # slots of the new subscriptions, in the order of the columns


class EntryTable:
    """Entries by number, subscriptions by slot. Freed numbers and freed term runs are used again.

    A slot's generation grows when it is freed, so that whoever kept a slot can see that it changed hands.

    As long as every subscription is one entry (`_several` is false), slots and entries are handed out and
    freed alike: slot s is entry s, and the arrays that lead from one to the other stay empty. Arrays grow
    by `reserved`, so that a large table never makes an insertion wait for a copy of itself.

    `counts` is the type of `Entries.term_count`, always the same for one kind of index: kernels have one signature.
    """

    def __init__(self, counts: CountType = np.int32) -> None:
        self.space: Space | None = None
        self._numbers = FreeNumbers()
        self._slots = FreeNumbers()
        self._terms = Pool()
        self._boxes = np.zeros((0, 4), dtype=np.float64)
        self._term_from = np.zeros(0, dtype=np.int32)
        self._term_count: NDArray[Any] = np.zeros(0, dtype=counts)
        self._slot_of = np.zeros(0, dtype=np.int32)
        self._next_entry = np.zeros(0, dtype=np.int32)  # chain of the entries of one slot
        self._first_entry = np.zeros(0, dtype=np.int32)  # by slot; NO_ENTRY: the slot is free
        self.generation = np.zeros(0, dtype=np.int32)  # by slot; those behind its end are in their first life
        self._several = False  # some subscription has more than one entry
        self._extra: ConditionTable | None = None

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

    def rows_by_slot(self, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32] | None]:
        """The entries of these slots, one slot after the other; which slot (by its place) each belongs to, or None
        where every subscription is one entry."""
        if not self._several:
            return slots.astype(np.int64), None
        place, at = np.arange(len(slots)), self._first_entry[slots]
        places, chains = [], []
        while len(at):
            places.append(place)
            chains.append(at)
            following = self._next_entry[at]
            place, at = place[following != NO_ENTRY], following[following != NO_ENTRY]
        owner = np.concatenate([np.zeros(0, dtype=np.int64), *places])
        order = np.argsort(owner, kind="stable")
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *chains])
        return rows[order], owner[order].astype(np.int32)

    def slots_of(self, entries: NDArray[Any]) -> NDArray[np.int32]:
        return self._slot_of[entries] if self._several else entries.astype(np.int32)

    def _in_use(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        known, free = (self._first_entry, NO_ENTRY) if self._several else (self._term_count, 0)
        return np.asarray(known[slots] != free)

    def nbytes(self) -> dict[str, int]:
        used = self._numbers.top
        sizes = {
            "boxes": self._boxes[:used].nbytes,
            "terms": int(self._terms.nbytes + self._term_from[:used].nbytes + self._term_count[:used].nbytes),
            "slots": self.generation[: self._slots.top].nbytes,
        }
        if self._several:
            sizes["slots"] += self._slot_of[:used].nbytes + self._next_entry[:used].nbytes
            sizes["slots"] += self._first_entry[: self._slots.top].nbytes
        return sizes | ({"conditions": self._extra.nbytes} if self._extra else {})

    # -- writing ------------------------------------------------------------------------------------

    def check(self, columns: SubscriptionColumns) -> None:
        """Raises where `append` could not take all of them."""
        if self.space is not None and self.space != columns.space:
            raise ColumnsError(f"columns of {columns.space} given to an index of {self.space}")
        self._countable(np.diff(columns.term_from))
        if self._terms.top + len(columns.terms) > MOST_TERMS:
            raise CatalogueError(f"more than {MOST_TERMS:,} terms in one index: use several (shards)")

    def append(self, columns: SubscriptionColumns) -> Added:
        self.check(columns)
        added = self.claim(columns)
        self.fill(columns, added)
        return added

    def claim(self, columns: SubscriptionColumns) -> Added:
        """Numbers for all of the columns, which were checked; until `fill` they are as good as free."""
        self.space = columns.space
        if columns.owner is not None and not self._several:
            self._tell_slots_apart()
        entries, slots = self._numbers.take(len(columns.boxes)), self._slots.take(len(columns))
        self._make_room()
        return Added(entries, slots.astype(np.int32))

    def fill(self, columns: SubscriptionColumns, added: Added) -> None:
        """Write columns, or a part of them, to their numbers."""
        entries, slots = added
        rows = _as_slice(entries)
        self._boxes[rows] = columns.boxes
        self._term_from[rows] = self._terms.put(columns.term_from, columns.terms)
        self._term_count[rows] = np.diff(columns.term_from)
        if self._several:
            self._link(entries, slots, columns.owner)
        if columns.conditions is not None and self._extra is None:
            self._extra = ConditionTable()
        if self._extra is not None:
            self._extra.put(entries, self._numbers.top, columns.conditions)

    def move_terms(self, terms: NDArray[np.int32], top: int) -> None:
        """All term runs are in terms[:top] from now on, and `term_from` says where: the caller saw to it."""
        self._terms = Pool()
        self._terms.values, self._terms.top = terms, top

    def relocate(self, entries: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
        """Entries stay what they are, in other boxes."""
        self._boxes[entries] = boxes

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

    def _countable(self, counts: NDArray[np.int64]) -> None:
        most = np.iinfo(self._term_count.dtype).max
        if counts.max(initial=0) > most:
            row = int(counts.argmax())
            raise CatalogueError(f"row {row}: a clause of {counts[row]:,} required terms given; {most:,} at most")

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

    def _link(self, entries: NDArray[np.int64], slots: NDArray[np.int32], owner: NDArray[np.int32] | None) -> None:
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
            keep = self.holds(batch, rows, message, entries)
            message, entries = message[keep], entries[keep]
        if self._several:
            return Pairs.once_each(message, self._slot_of[entries])
        return Pairs(message, entries) if batch.message is None else Pairs.once_each(message, entries)

    @property
    def has_several(self) -> bool:
        """Whether some subscription has, or had, more than one entry."""
        return self._several

    @property
    def has_conditions(self) -> bool:
        """Whether some entry says more than a box and required terms."""
        return self._extra is not None

    def holds(
        self, batch: MessageBatch, rows: NDArray[np.int32], message: NDArray[np.int32], entries: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Which candidates keep the further conditions of their entries."""
        if self._extra is None:
            return np.ones(len(rows), dtype=np.bool_)
        return self._extra.holds(batch, rows, message, entries, self.space == earth)

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
    def restored(cls, arrays: Mapping[str, NDArray[Any]], counts: CountType = np.int32) -> EntryTable:
        table = cls(counts)
        table._boxes, table._term_from = arrays["boxes"], arrays["term_from"]
        table._term_count, table._slot_of = arrays["term_count"].astype(counts, copy=False), arrays["slot_of"]
        table._next_entry, table._first_entry = arrays["next_entry"], arrays["first_entry"]
        table.generation = arrays["generation"]
        table._numbers = FreeNumbers.restored(arrays["numbers"])
        table._slots = FreeNumbers.restored(arrays["slots"])
        table._several = bool(arrays["several"][0])
        table.space = _space_restored(arrays["space"])
        table._terms = Pool.restored(*(arrays[f"terms.{name}"] for name in ("values", "free_length", "free_start")))
        if "extra.circles" in arrays:
            extra = {name[6:]: array for name, array in arrays.items() if name.startswith("extra.")}
            table._extra = ConditionTable.restored(extra)
        return table


def in_parts(columns: SubscriptionColumns, added: Added, size: int) -> Iterator[tuple[SubscriptionColumns, Added]]:
    """Columns of at most so many subscriptions, and their numbers, for `fill`."""
    entries, slots = added
    for part in cut_subscriptions(columns, size):
        yield part, Added(entries[: len(part.boxes)], slots[: len(part)])
        entries, slots = entries[len(part.boxes) :], slots[len(part) :]


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
