"""The ranked key of an entry: its least frequent keyword (VLDBJ'17 3.1: ranked-key inverted list)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import kernel, primitive
from nearcast.kernels.postings import ALWAYS, N_SLOTS, SLOT_SHIFT
from nearcast.kernels.quadtree import cell_at, steps

NO_TERM = -1


class Ranks(NamedTuple):
    """Term t is at t + 1; terms beyond the end, never seen when the ranks were made, at 0.

    Fixed between two builds, so that an entry has the same key when it is removed as when it was inserted.
    """

    rank: NDArray[np.int32]  # [n + 1]  0 for the unseen, then from the rarest term on
    chance: NDArray[np.float64]  # [n + 1]  part of all messages that have the term; above 0


@primitive
def place_of(ranks, term):
    return np.int64(term) + 1 if term + 1 < len(ranks.rank) else np.int64(0)


@primitive
def key_of(ranks, entries, entry):
    """(key, what): the rarest term of an entry, and its second word in `postings`, with the rarest other term."""
    key, other = np.int64(NO_TERM), np.int64(NO_TERM)
    key_rank, other_rank = np.int64(0), np.int64(0)
    low = entries.term_from[entry]
    for i in range(low, low + entries.term_count[entry]):
        term = np.int64(entries.terms[i])
        rank = np.int64(ranks.rank[place_of(ranks, term)])
        if key == NO_TERM or rank < key_rank:
            other, other_rank = key, key_rank
            key, key_rank = term, rank
        elif other == NO_TERM or rank < other_rank:
            other, other_rank = term, rank
    slot = np.int64(ALWAYS) if other == NO_TERM else other & (N_SLOTS - 1)
    return key, slot << SLOT_SHIFT | entry


@kernel
def sort_keys(ranks, grid, entries, chosen, keys, codes):
    """Key and smallest cell of the middle of each chosen entry: for building in a good order."""
    for i in range(len(chosen)):
        keys[i] = key_of(ranks, entries, chosen[i])[0]
        box = steps(grid, entries.boxes, chosen[i])
        codes[i] = cell_at(grid.depth[0], (box[0] + box[2]) >> 1, (box[1] + box[3]) >> 1)
