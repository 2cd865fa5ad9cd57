"""Shelves of the window's messages, oldest first: a queue of parts that are laid out once; see `kernels.rank_shelf`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.indexes.pool import reserved
from nearcast.kernels import rank_shelf, rank_strata
from nearcast.kernels.rank_layout import BASE, NEXT, OLDEST, SHELVED, Posts
from nearcast.kernels.rank_shelf import N_BOUNDS, N_ENTRY, N_FIELDS, N_PART, Desk, Shelves
from nearcast.kernels.rank_strata import BLOCK, GROUP
from nearcast.ranking.postings import parts, term_lists

SEAL_FROM = 2048  # messages: fewer are quickly read through their chains
SHARE = 128  # of the window, from which on messages are put on a shelf
FAN = 8  # shelves of about one size that become one
LARGEST = 8  # shelves of a window, at least
WAITING = 4096  # groups that a search compares before it reads any


class _Tops(NamedTuple):
    """How far the arrays are filled."""

    keys: int = 0
    lists: int = 0
    postings: int = 0
    blocks: int = 0
    groups: int = 0

    def plus(self, other: _Tops, sign: int = 1) -> _Tops:
        return _Tops(*(a + sign * b for a, b in zip(self, other, strict=True)))


class _Part(NamedTuple):
    """A shelf: its messages, and where it lies."""

    first: int  # seq
    end: int
    low: _Tops
    high: _Tops


class ShelfStore:
    """Makes shelves of rows that have arrived. A shelf goes when all of it has left the window."""

    def __init__(self, origin: NDArray[np.float64], space: NDArray[np.float64]) -> None:
        self.seal_from = SEAL_FROM
        self._space = space
        self._parts: list[_Part] = []
        self._keys, self._list_of = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self._lists = np.zeros((1, 3), np.int64)
        self._fields, self._ids = np.zeros(0, np.float32), np.zeros(0, np.int32)
        self._bounds, self._groups = np.zeros((0, N_BOUNDS), np.float32), np.zeros((0, N_BOUNDS), np.float32)
        self._table = np.zeros((0, N_PART), np.int64)
        self._desk = Desk(
            np.zeros((16, N_ENTRY), np.int64),
            np.zeros((16, 2), np.float32),
            np.zeros(1, np.float32),
            np.zeros((WAITING, 2), np.int64),
            np.zeros(WAITING, np.float32),
            np.zeros(BLOCK, np.float32),
            np.zeros(3, np.float32),
            origin,
        )

    @property
    def shelves(self) -> Shelves:
        return Shelves(
            self._table,
            self._keys,
            self._list_of,
            self._lists,
            self._fields,
            self._ids,
            self._bounds,
            self._groups,
        )

    def desk(self, terms: int) -> Desk:
        """Room to search for a wish of so many terms."""
        needed = terms * max(1, len(self._parts))
        if needed > len(self._desk.lists):
            lists, weights = np.zeros((2 * needed, N_ENTRY), np.int64), np.zeros((2 * needed, 2), np.float32)
            self._desk = self._desk._replace(lists=lists, weights=weights)
        return self._desk

    @property
    def nbytes(self) -> int:
        top = self._tops
        each = top.keys * 8 + top.lists * 24 + top.postings * 4 * (N_FIELDS + 2)
        return each + (top.blocks + top.groups) * 4 * N_BOUNDS

    def sizes(self) -> list[int]:
        return [part.end - part.first for part in self._parts]

    @property
    def _tops(self) -> _Tops:
        return self._parts[-1].high if self._parts else _Tops()

    # -- as messages come and go --------------------------------------------------------------------

    def follow(self, posts: Posts, state: NDArray[np.int64]) -> None:
        """Make a shelf of what has arrived since the last one, if it is enough; forget what left the window."""
        self._forget(int(state[OLDEST]))
        in_window = int(state[NEXT] - state[OLDEST])
        first, end = int(max(state[SHELVED], state[OLDEST])), int(state[NEXT])
        if end - first < max(self.seal_from, in_window // SHARE):
            return
        first = self._joined(first, end, in_window, int(state[OLDEST]))
        self._seal(posts, first, end, int(state[BASE]))
        state[SHELVED] = end

    def _joined(self, first: int, end: int, in_window: int, oldest: int) -> int:
        """Take the latest shelves down that shall be one with the next; the first message of it."""
        largest = max(self.seal_from, in_window // LARGEST)
        while True:
            size, n = end - first, 0
            while n < len(self._parts) and self._parts[-1 - n].end - self._parts[-1 - n].first < 2 * size:
                n += 1
            if n < FAN - 1 or end - self._parts[-n].first > 2 * largest:
                return first
            first = max(self._parts[-n].first, oldest)
            del self._parts[-n:]

    def renumber(self, base: int) -> None:
        """Seqs are less by `base` from now on."""
        rank_shelf.renumber(self.shelves, base)
        self._parts = [part._replace(first=part.first - base, end=part.end - base) for part in self._parts]
        self._tabulate()

    def _forget(self, oldest: int) -> None:
        gone = next((i for i, part in enumerate(self._parts) if part.end > oldest), len(self._parts))
        if not gone:
            return
        self._parts = self._parts[gone:]
        low = self._parts[0].low if self._parts else _Tops()
        if 2 * low.postings > self._tops.postings:
            self._move_down(low)
        self._tabulate()

    def _move_down(self, low: _Tops) -> None:
        """Use the room of forgotten shelves again."""
        top = self._tops
        n = top.plus(low, -1)
        for array in (self._keys, self._list_of):
            array[: n.keys] = array[low.keys : top.keys].copy()
        self._lists[: n.lists] = self._lists[low.lists : top.lists] - [low.postings, low.blocks, low.groups]
        self._fields[: N_FIELDS * n.postings] = self._fields[N_FIELDS * low.postings : N_FIELDS * top.postings].copy()
        self._ids[: 2 * n.postings] = self._ids[2 * low.postings : 2 * top.postings].copy()
        self._bounds[: n.blocks] = self._bounds[low.blocks : top.blocks].copy()
        self._groups[: n.groups] = self._groups[low.groups : top.groups].copy()
        self._parts = [p._replace(low=p.low.plus(low, -1), high=p.high.plus(low, -1)) for p in self._parts]

    def _tabulate(self) -> None:
        rows = [(p.low.keys, p.high.keys, p.low.lists, p.end) for p in self._parts]
        self._table = np.array(rows, np.int64).reshape(-1, N_PART)

    # -- layout -------------------------------------------------------------------------------------

    def _seal(self, posts: Posts, first: int, end: int, base: int) -> None:
        """A shelf of the messages first to end, behind all others."""
        rows = slice(first - base, end - base)
        low, high = posts.term_from[rows.start], posts.term_from[rows.stop]
        keys, list_of, lists, list_from = term_lists(posts.terms[low:high])
        n, into = int(high - low), np.zeros(3, np.float32)
        fields, owner, bits = (
            np.zeros((N_FIELDS, n), np.float32),
            np.zeros(n, np.int32),
            np.zeros(end - first, np.int32),
        )
        reach = rank_shelf.describe(
            posts, rows.start, rows.stop, lists, self._desk.origin, self._space, fields, owner, bits, into
        )
        order = np.argsort(lists, kind="stable").astype(np.int64)
        rank_strata.split(fields, order, list_from, np.zeros((128, 2), np.int64))
        block_from, group_from = parts(list_from, BLOCK), parts(list_from, BLOCK * GROUP)
        top = self._tops
        new = top.plus(_Tops(len(keys), len(list_from), n, int(block_from[-1]), int(group_from[-1])))
        self._make_room(new)
        self._keys[top.keys : new.keys], self._list_of[top.keys : new.keys] = keys, list_of
        starts = np.column_stack([list_from, block_from, group_from]) + [top.postings, top.blocks, top.groups]
        self._lists[top.lists : new.lists] = starts
        self._parts.append(_Part(first, end, top, new))
        self._tabulate()
        rank_shelf.lay(fields, owner, bits, order, first, self.shelves, top.lists, len(keys))
        self._desk.reach[0] = max(self._desk.reach[0], np.float32(reach))

    def _make_room(self, tops: _Tops) -> None:
        self._keys, self._list_of = reserved(self._keys, tops.keys), reserved(self._list_of, tops.keys)
        self._lists = reserved(self._lists, tops.lists)
        self._fields = reserved(self._fields, N_FIELDS * tops.postings)
        self._ids = reserved(self._ids, 2 * tops.postings)
        self._bounds, self._groups = reserved(self._bounds, tops.blocks), reserved(self._groups, tops.groups)
