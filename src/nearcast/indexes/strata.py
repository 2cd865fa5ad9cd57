"""`strata`: nearcast's own index, see docs/strata.md and `kernels.strata_layout`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast.columns import MessageBatch, Pairs, SubscriptionColumns
from nearcast.errors import CatalogueError, SnapshotError
from nearcast.indexes import strata_cost
from nearcast.indexes.base import EntryIndex
from nearcast.indexes.pool import reserved
from nearcast.indexes.report import IndexReport
from nearcast.indexes.strata_arrays import Arrays
from nearcast.indexes.table import in_parts
from nearcast.indexes.turns import Turns
from nearcast.kernels import (
    strata_build,
    strata_classes,
    strata_insert,
    strata_keys,
    strata_match,
    strata_measure,
    strata_move,
    strata_remove,
    strata_steps,
)
from nearcast.kernels.layout import COUNTERS, Found, Rows
from nearcast.kernels.strata_layout import HOT, LANES, MORE, MOST_SPLITS, N_LEAVES, N_RUNS, N_SPLITS, NONE

SMALL = 16_384  # entries: up to here the index is built anew when it has doubled
SAMPLE = 100_000  # boxes that the frame is chosen from
LEAST_ROOM = 4096
LAYOUT, NO_LAYOUT = 3, np.zeros(1)  # of the arrays in a snapshot; the first one had no number
PART = 1024  # subscriptions that the table takes in, or forgets, in one turn
CHUNK = 128  # entries changed in one turn: after `load` each may meet several pages of a file for the first time
ALLOWED = {
    "leaf": (2, LANES),
    "fanout": (4, LANES),
    "small": (0, 1 << 30),
    "chunk": (1, 1 << 30),
    "heavy": (0, 1 << 30),
}


class Anatomy(NamedTuple):
    """What the lists look like, by list: two a term, of clauses with this term only and of the others."""

    lengths: NDArray[np.int64]  # [n_keys, 2]  entries
    levels: NDArray[np.int64]  # [n_keys, 2]  of the tree; 0 is a run (or nothing)
    weights: NDArray[np.int32]  # [n_keys]     how often the term is expected, relative to the others


class Strata(EntryIndex):
    """Lists by the rarest term, each a tree of packed boxes; changed in place.

    Threads may match at once, and while another one inserts or removes: changes are made chunk by chunk, and a
    match comes before or after a chunk. What is being inserted is found from its chunk on.

    leaf, fanout: entries of a leaf and children of a branch, at most; small: up to so many entries the index is
    built anew when it has doubled; chunk: entries that are changed in one turn; heavy: terms with so many entries of
    several terms are split by the second term, 0: where the cost model says that it pays.
    """

    name = "strata"
    counts = np.int16  # two bytes less a subscription

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        leaf: int = LANES,
        fanout: int = LANES,
        small: int = SMALL,
        chunk: int = CHUNK,
        heavy: int = 0,
    ) -> None:
        super().__init__(history=history)
        self._given = _checked({"leaf": leaf, "fanout": fanout, "small": small, "chunk": chunk, "heavy": heavy})
        self._small, self._chunk, self._heavy = small, chunk, heavy
        self._moving = np.zeros(0, dtype=np.int64)  # entries that wait to be moved to classes
        self._declined: dict[int, int] = {}  # by term: how long its list was when splitting it did not pay
        self._loaded = False  # the kernels that change an index
        self._arrays = Arrays(leaf, fanout)
        self._frame = np.array([0.0, 0.0, 1.0, 1.0])  # west, south, 1 / width, 1 / height
        self._framed = 0  # entries that the frame was chosen for
        self._place = np.zeros(0, dtype=np.int32)  # by entry: its lane
        self._weights = _frequencies(history)  # by term: how often it is expected in messages
        self._n_weights = len(self._weights)  # what is behind is room
        self._seen = strata_cost.Expected()
        self._spare: list[strata_steps.Scratch] = []
        self._per_row = 0.0  # pairs found for a row of late
        self._changing, self._counting, self._turns = Lock(), Lock(), Turns()

    # -- taking turns -------------------------------------------------------------------------------

    def insert(self, columns: SubscriptionColumns) -> NDArray[np.int32]:
        with self._changing:
            self.table.check(columns)
            is_anew = self._is_made_anew(len(columns.boxes))
            with self._turns.writing:
                claimed = self.table.claim(columns)
            for part, added in in_parts(columns, claimed, len(columns) if is_anew else PART):
                with self._turns.writing:
                    self.table.fill(part, added)
                (self._make_anew if is_anew else self._add)(added.entries)
            return claimed.slots

    def remove(self, slots: ArrayLike) -> None:
        with self._changing:
            chosen = np.atleast_1d(np.asarray(slots, dtype=np.int32))
            self.table.entries_of(chosen)  # all are in use, or nothing is done
            for first in range(0, len(chosen), PART):
                part = chosen[first : first + PART]
                entries = self.table.entries_of(part)
                self._drop(entries)
                with self._turns.writing:
                    self.table.release(part, entries)

    def relocate(self, entries: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
        with self._changing:
            for first in range(0, len(entries), self._chunk):
                part = slice(first, first + self._chunk)
                with self._turns.writing:
                    self._move(entries[part], np.ascontiguousarray(boxes[part]))
                    self.table.relocate(entries[part], boxes[part])

    def match(self, batch: MessageBatch) -> Pairs:
        with self._turns.reading:
            rows, entries = self._probe(batch.rows)
            return self.table.settle(batch, rows, entries)

    def report(self) -> IndexReport:
        with self._turns.reading:
            return super().report()

    def save(self, path: Path) -> None:
        with self._changing:
            super().save(path)

    # -- changing -----------------------------------------------------------------------------------

    def _is_made_anew(self, coming: int) -> bool:
        """Many come, or the index is small and has outgrown its frame."""
        before = self.table.n_entries
        return coming >= before or (before + coming >= 2 * self._framed and before <= self._small)

    def _make_anew(self, entries: NDArray[np.int64]) -> None:
        with self._turns.writing:
            self._make_place(entries)
            self._build(self.table.live_entries())
        if self.table.n_entries > self._small:
            self._load_kernels()

    def _add(self, entries: NDArray[np.int64]) -> None:
        self._load_kernels()
        for chunk in self._chunks(entries):
            with self._turns.writing:
                self._make_place(chunk)
                self._insert(chunk)
        self._regroup(strata_cost.MOST_MOVED * len(entries))

    def _chunks(self, entries: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        return (entries[first : first + self._chunk] for first in range(0, len(entries), self._chunk))

    def _make_place(self, entries: NDArray[np.int64]) -> None:
        self._weigh(entries, 1)
        self._place = reserved(self._place, int(entries.max()) + 1)

    def _weigh(self, entries: NDArray[np.int64], step: int) -> None:
        highest = strata_keys.count_terms(self.entries, entries, self._weights, np.int32(step))
        if highest >= len(self._weights):
            known = len(self._weights)
            self._weights = reserved(self._weights, highest + 1)
            strata_keys.count_terms(self.entries, entries, self._weights[:known], np.int32(-step))
            strata_keys.count_terms(self.entries, entries, self._weights, np.int32(step))
        self._n_weights = max(self._n_weights, highest + 1)
        self._arrays.know_terms(highest + 1)

    def _build(self, numbers: NDArray[np.int64]) -> None:
        """All lists anew."""
        entries, n = self.entries, len(numbers)
        self._frame, self._framed = _frame_of(entries.boxes, numbers), n
        self._arrays = self._arrays.emptied()
        self._moving = self._moving[:0]
        self._declined.clear()
        keys, seconds = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        boxes, others = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64)
        strata_keys.describe(entries, numbers, self._weights, self._frame, keys, seconds, boxes, others)
        lists = self._lists(numbers, keys, seconds)
        del keys, seconds
        ends = np.zeros(2 * self._arrays.n_rows + 1, dtype=np.int64)
        strata_build.count_lists(lists, ends)
        into = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64)
        strata_build.sort_by_list(lists, numbers, boxes, others, ends, *into)
        del lists, boxes, others
        ends = ends[:-1]
        needed = np.zeros(2, dtype=np.int64)
        strata_build.room_needed(self._arrays.view, ends, needed)
        self._arrays.make_room(int(needed[0]), int(needed[1]))
        stack = _new_stack()
        opened = np.empty(strata_build.MAX_LEVELS, dtype=np.int64)
        strata_build.lay_out(self._arrays.view, ends, *into, self._place, stack, opened)
        terms = reserved(np.zeros(0, dtype=np.int32), len(entries.terms))
        top = strata_keys.arrange_terms(self._arrays.view, entries, self._place, terms)
        self.table.move_terms(terms, top)

    def _lists(
        self, numbers: NDArray[np.int64], keys: NDArray[np.int32], seconds: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """The list of each entry, once the cost model has split the heavy terms."""
        some = self.entries.boxes[numbers[:: -(-len(numbers) // strata_cost.BOXES)]]
        self._seen = strata_cost.expected(self.history, self._seen.terms, some)
        self._split(strata_cost.choose(keys, seconds, self._known_weights, self._seen, self._heavy))
        self._arrays.make_rows(int((np.bincount(keys) > 0).sum()))
        lists = np.empty(len(keys), dtype=np.int64)
        strata_classes.lists_for(self._arrays.view, keys, seconds, lists)
        return lists

    @property
    def _known_weights(self) -> NDArray[np.int32]:
        """Without the room behind them, which may be large."""
        return self._weights[: self._n_weights]

    def _split(self, choice: strata_cost.Choice) -> None:
        self._arrays.make_rows(int((choice.masks + 3).sum()) // 2 + len(choice.masks))
        strata_classes.split_terms(self._arrays.view, choice.terms, choice.masks)

    def _load_kernels(self) -> None:
        """What changes an index, called with nothing to do: nobody waits for its loading in the middle of a turn."""
        if self._loaded:
            return
        self._loaded = True
        nothing, view = np.zeros(0, dtype=np.int64), self._arrays.view
        strata_insert.insert(view, self.entries, nothing, 0, self._weights, self._frame, self._place)
        strata_remove.remove(view, self.entries, nothing, self._place)
        strata_classes.split_terms(view, nothing, nothing)
        strata_classes.entries_of_list(view, 0, _new_stack(), nothing)

    def _insert(self, numbers: NDArray[np.int64]) -> None:
        entries, done = self.entries, 0
        while done < len(numbers):
            self._arrays.make_room()
            done = strata_insert.insert(
                self._arrays.view, entries, numbers, done, self._weights, self._frame, self._place
            )

    def _move(self, numbers: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
        done = 0
        while done < len(numbers):
            self._arrays.make_room()
            done = strata_move.move(self._arrays.view, self.entries, numbers, done, boxes, self._frame, self._place)

    def _regroup(self, most: int) -> None:
        """Split a term whose list grew, if that pays; move entries to classes, at most so many in this call."""
        state = self._arrays.view.state
        term, state[HOT] = int(state[HOT]), NONE
        if term >= 0 and state[N_SPLITS] < MOST_SPLITS:
            self._consider(term)
        now, self._moving = self._moving[:most], self._moving[most:]
        for chunk in self._chunks(now):
            with self._turns.writing:
                live = chunk[self.entries.term_count[chunk] > 0]
                strata_remove.remove(self._arrays.view, self.entries, live, self._place)
                self._insert(live)

    def _consider(self, term: int) -> None:
        """Split the term if the cost model says so; its entries are moved later, and found all the while."""
        numbers = self._more_of(term)
        n = len(numbers)
        if n < 2 * self._declined.get(term, 0):
            return
        keys, seconds = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        boxes, others = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64)
        strata_keys.describe(self.entries, numbers, self._weights, self._frame, keys, seconds, boxes, others)
        if not strata_cost.pays(seconds, self._known_weights, self._seen, self._heavy):
            self._declined[term] = n
            return
        with self._turns.writing:
            self._split(strata_cost.choice_of(np.array([term]), self._seen))
        self._moving = np.concatenate([self._moving, numbers])

    def _more_of(self, term: int) -> NDArray[np.int64]:
        """The entries of several terms in the list of a term that is not split."""
        view = self._arrays.view
        found = np.empty(self.table.n_entries, dtype=np.int64)
        stack = _new_stack()
        lst = 2 * int(view.rows[term]) + MORE
        return found[: strata_classes.entries_of_list(view, lst, stack, found)].copy()

    def _drop(self, entries: NDArray[np.int64]) -> None:
        for chunk in self._chunks(entries):
            with self._turns.writing:
                self._weigh(chunk, -1)
                strata_remove.remove(self._arrays.view, self.entries, chunk, self._place)

    # -- matching -----------------------------------------------------------------------------------

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Several threads may be here at once: work room is theirs alone, counters are added at the end."""
        arrays, entries, n_rows = self._arrays.view, self.entries, len(rows.boxes)
        scratch = self._scratch()
        counters = np.zeros(len(COUNTERS), dtype=np.int64)
        parts: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        first, least = 0, LEAST_ROOM
        while first < n_rows:
            room = max(least, int(1.3 * self._per_row * (n_rows - first)))
            found = Found(np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32))
            following, n = strata_match.probe(arrays, entries, rows, first, self._frame, scratch, found, counters)
            parts.append((found.rows[:n], found.entries[:n]))
            if following > first:
                self._per_row = n / (following - first)
            least, first = room * 2, following
        self._spare.append(scratch)
        found_rows, found_entries = _joined(parts)
        with self._counting:
            self._counters += counters
            self._n_rows += n_rows
            self._n_found += len(found_rows)
        return found_rows, found_entries

    def _scratch(self) -> strata_steps.Scratch:
        try:
            return self._spare.pop()
        except IndexError:
            return strata_steps.new_scratch()

    # -- reporting and saving -----------------------------------------------------------------------

    def _bytes(self) -> dict[str, int]:
        top = len(self.entries.term_count)
        return self._arrays.nbytes() | {
            "places": self._place[:top].nbytes,
            "weights": self._weights[: self._arrays.n_terms].nbytes,
        }

    def _details(self) -> dict[str, Any]:
        state = self._arrays.view.state
        splits = int(state[N_SPLITS])
        return {
            "keys": self._arrays.n_rows,
            "runs": int(state[N_RUNS]),
            "leaves": int(state[N_LEAVES]),
            "split": splits,
        }

    def anatomy(self) -> Anatomy:
        """Every list measured; reads the whole structure once."""
        n, view = self._arrays.n_terms, self._arrays.view
        by_list = np.zeros((2, 2 * self._arrays.n_rows), dtype=np.int64)
        strata_measure.measure_lists(view, by_list[0], by_list[1])
        lengths, levels = np.zeros((n, 2), dtype=np.int64), np.zeros((n, 2), dtype=np.int64)
        strata_measure.by_term(view, by_list[0], by_list[1], lengths, levels)
        return Anatomy(lengths, levels, self._weights[:n])

    def _options(self) -> dict[str, Any]:
        return dict(self._given)

    def _state(self) -> dict[str, NDArray[Any]]:
        return self._arrays.state() | {
            "place": self._place[: len(self.entries.term_count)],
            "weights": self._known_weights,
            "frame": self._frame,
            "framed": np.array([self._framed]),
            "layout": np.array([LAYOUT]),
            "seen": np.array(self._seen),
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if int(arrays.get("layout", NO_LAYOUT)[0]) != LAYOUT:
            raise SnapshotError("a strata index of an earlier layout was saved; this version must build it anew")
        self._arrays = Arrays.restored(arrays)
        self._place, self._weights, self._frame = arrays["place"], arrays["weights"], arrays["frame"]
        self._n_weights = len(self._weights)
        self._framed = int(arrays["framed"][0])
        self._seen = strata_cost.Expected(*map(float, arrays["seen"]))


def _new_stack() -> NDArray[np.int64]:
    """Room to walk a tree: branches that wait, each with its level."""
    return np.empty((256, 2), dtype=np.int64)


def _checked(options: dict[str, int]) -> dict[str, int]:
    for option, value in options.items():
        least, most = ALLOWED[option]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise CatalogueError(f"strata: {option} {value!r} given; a whole number from {least} to {most} is allowed")
    return options


def _joined(
    parts: list[tuple[NDArray[np.int32], NDArray[np.int32]]],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    if len(parts) == 1:
        return parts[0]
    empty = np.zeros(0, dtype=np.int32)
    return np.concatenate([empty, *(p[0] for p in parts)]), np.concatenate([empty, *(p[1] for p in parts)])


def _frequencies(history: MessageBatch | None) -> NDArray[np.int32]:
    if history is None:
        return np.zeros(0, dtype=np.int32)
    return np.bincount(history.terms_once()).astype(np.int32)


def _frame_of(boxes: NDArray[np.float64], numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where nearly all centres lie: cells are even inside, and grow outside."""
    sample = boxes[numbers[:: -(-len(numbers) // SAMPLE)]]
    centres = 0.5 * sample[:, :2] + 0.5 * sample[:, 2:]
    low, high = np.quantile(centres, [0.001, 0.999], axis=0)
    extent = np.where(high - low > 1e-300, high - low, 1.0) * 1.1
    low = low - 0.05 * extent
    return np.array([*low, *(1.0 / extent)])
