"""Messages that live: by slot, with the time at which each ends."""

from __future__ import annotations

import heapq
from collections import deque
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.columns.seal import take_runs
from nearcast.geo import Space
from nearcast.indexes.pool import Pool, reserved
from nearcast.indexes.table import EntryTable
from nearcast.kernels.layout import Entries
from nearcast.kernels.refine import WordOrder


class _Segment(NamedTuple):
    """Messages of one batch in the order of their ends."""

    ends: NDArray[np.float64]
    slots: NDArray[np.int32]
    seqs: NDArray[np.int64]


class LiveMessages:
    """The table of live messages, laid out as that of subscriptions is: a message has one row, or several where
    its place has several coordinates. Slots and rows are used again.

    Ends are found by segments: each batch is sorted by end once, and a heap knows whose next end comes first.
    """

    def __init__(self, space: Space, *, is_counted: bool = False) -> None:
        """`is_counted`: messages also end by their number, see `before`."""
        self._is_counted = is_counted
        self.table = EntryTable()
        self._space = space
        self._seq = np.zeros(0, np.int64)  # by slot
        self._words, self._positions = Pool(), Pool()
        self._word_from = np.zeros(0, np.int64)  # by slot
        self._position_from = np.zeros(0, np.int64)
        self._word_count = np.zeros(0, np.int64)
        self._has_order = False
        self.has_boxes = False  # some message was no point
        self._ends: list[tuple[float, int, _Segment]] = []
        self._order: deque[tuple[NDArray[np.int32], NDArray[np.int64]]] = deque()  # slots and seqs as they came
        self._numbers = count()

    def __len__(self) -> int:
        return self.table.n_live

    @property
    def rows(self) -> Entries:
        """What kernels read: a row's terms are all of its message."""
        return self.table.entries

    def nbytes(self) -> dict[str, int]:
        sizes = {f"message {part}": size for part, size in self.table.nbytes().items()}
        sizes["message ends"] = 8 * len(self) + sum(20 * len(s.ends) for _, _, s in self._ends)
        sizes["message words"] = self._words.nbytes + self._positions.nbytes
        return sizes

    def add(
        self, batch: MessageBatch, seqs: NDArray[np.int64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Take messages in, each of which has terms: their rows and slots."""
        columns = SubscriptionColumns(
            batch.boxes, batch.term_from, batch.terms, batch.message, len(batch), space=self._space
        )
        rows, slots = self.table.append(columns)
        self.has_boxes |= bool((batch.boxes[:, :2] != batch.boxes[:, 2:]).any())
        top = int(slots.max(initial=-1)) + 1
        self._seq = reserved(self._seq, top)
        self._seq[slots] = seqs
        self._keep_words(batch.order, slots, top)
        by_end = np.argsort(ends, kind="stable")
        by_end = by_end[np.isfinite(ends[by_end])]
        self._push(_Segment(ends[by_end], slots[by_end], seqs[by_end]))
        if self._is_counted and len(slots):
            self._order.append((slots, seqs))
        return rows, slots

    def _keep_words(self, order: WordOrder | None, slots: NDArray[np.int32], top: int) -> None:
        if order is None and not self._has_order:
            return
        self._has_order = True
        self._word_from, self._position_from = reserved(self._word_from, top), reserved(self._position_from, top)
        self._word_count = reserved(self._word_count, top)
        self._word_count[slots] = 0
        if order is not None:
            self._word_from[slots] = self._words.put(order.word_from, order.words)
            self._position_from[slots] = self._positions.put(order.word_from, order.positions)
            self._word_count[slots] = np.diff(order.word_from)

    def _push(self, segment: _Segment) -> None:
        if len(segment.ends):
            heapq.heappush(self._ends, (float(segment.ends[0]), next(self._numbers), segment))

    # -- who ends -----------------------------------------------------------------------------------

    def due(self, now: float) -> NDArray[np.int32]:
        """Slots of the messages that end at `now` or before; they are not asked for again."""
        due: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
        while self._ends and self._ends[0][0] <= now:
            _, _, segment = heapq.heappop(self._ends)
            cut = int(np.searchsorted(segment.ends, now, side="right"))
            due.append(self._still(segment.slots[:cut], segment.seqs[:cut]))
            self._push(_Segment(segment.ends[cut:], segment.slots[cut:], segment.seqs[cut:]))
        return np.concatenate(due)

    def before(self, seq: int) -> NDArray[np.int32]:
        """Slots of the messages with a smaller number; they are not asked for again."""
        found: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
        while self._order and int(self._order[0][1][0]) < seq:
            slots, seqs = self._order.popleft()
            cut = int(np.searchsorted(seqs, seq))
            found.append(self._still(slots[:cut], seqs[:cut]))
            if cut < len(seqs):
                self._order.appendleft((slots[cut:], seqs[cut:]))
        return np.concatenate(found)

    def _still(self, slots: NDArray[np.int32], seqs: NDArray[np.int64]) -> NDArray[np.int32]:
        """Those that did not end in another way: a slot that was used again has another number."""
        return np.asarray(slots[self._seq[slots] == seqs])

    def forget(self, slots: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
        if self._has_order:
            counts = self._word_count[slots]
            self._words.free(self._word_from[slots], counts)
            self._positions.free(self._position_from[slots], counts)
            self._word_count[slots] = 0
        self._seq[slots] = -1
        self.table.release(slots, rows)

    # -- reading ------------------------------------------------------------------------------------

    def seqs(self, slots: NDArray[np.int32]) -> NDArray[np.int64]:
        return self._seq[slots]

    def batch(self, slots: NDArray[np.int32]) -> MessageBatch:
        """These messages once more, as they came: message i is that of slots[i]."""
        rows, message = self.table.rows_by_slot(slots)
        entries = self.rows
        term_from, terms = _gather(entries.term_from[rows], entries.term_count[rows], entries.terms)
        order = None
        if self._has_order:
            word_from, words = _gather(self._word_from[slots], self._word_count[slots], self._words.values)
            _, positions = _gather(self._position_from[slots], self._word_count[slots], self._positions.values)
            order = WordOrder(word_from, words, positions)
        boxes = np.ascontiguousarray(entries.boxes[rows])
        return MessageBatch(boxes, term_from, terms, message, len(slots), order)


def _gather(
    starts: NDArray[np.int64] | NDArray[np.int32], counts: NDArray[np.int32] | NDArray[np.int64], run: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Runs of a pool as a CSR pair of their own."""
    run_from = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    positions = np.arange(run_from[-1]) + np.repeat(starts - run_from[:-1], counts)
    return run_from, run[positions]


def chosen(batch: MessageBatch, keep: NDArray[np.bool_]) -> MessageBatch:
    """The messages with `keep`, as a batch of their own."""
    if keep.all():
        return batch
    message = np.arange(len(batch), dtype=np.int32) if batch.message is None else batch.message
    rows = np.flatnonzero(keep[message])
    term_from, terms = take_runs(batch.term_from, batch.terms, rows)
    renumbered = (np.cumsum(keep) - 1).astype(np.int32)[message[rows]]
    order = None
    if batch.order is not None:
        word_from, words = take_runs(batch.order.word_from, batch.order.words, np.flatnonzero(keep))
        positions = take_runs(batch.order.word_from, batch.order.positions, np.flatnonzero(keep))[1]
        order = WordOrder(word_from, words, positions)
    count = int(keep.sum())
    owner = None if batch.message is None else renumbered
    return MessageBatch(np.ascontiguousarray(batch.boxes[rows]), term_from, terms, owner, count, order)
