"""Pivotal-token sets of quadtree nodes: the greedy choice, cover and non-cover sets (CIKM'15 4.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import pivotal_tokens as kernels
from nearcast.kernels.layout import Entries
from nearcast.kernels.pivotal_quadtree import NONE

Tokens = NDArray[np.int32]
Sets = dict[int, tuple[Tokens, Tokens]]  # node to (cover set, non-cover set), ascending

_NOTHING = np.zeros(0, dtype=np.int32)


def choose(entries: Entries, run_from: NDArray[np.int64], run: NDArray[np.int32]) -> list[Tokens]:
    """For each run of entries a small set of tokens that every one of them has a part of."""
    counts = entries.term_count[run].astype(np.int64)
    totals = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])[run_from]
    longest, most = int(np.diff(run_from).max(initial=0)), int(np.diff(totals).max(initial=0))
    top = int(entries.terms.max(initial=0)) + 1
    scratch = kernels.greedy_scratch(top, longest, most)
    chosen_from = np.zeros(len(run_from), dtype=np.int64)
    chosen = np.empty(len(run), dtype=np.int32)
    kernels.choose(entries, run_from, run, scratch, chosen_from, chosen)
    return [np.sort(chosen[chosen_from[i] : chosen_from[i + 1]]) for i in range(len(run_from) - 1)]


def cover_sets(child: NDArray[np.int32], nodes: list[int], listed: NDArray[np.int64], chosen: list[Tokens]) -> Sets:
    """Sets of these nodes (each before the nodes below it), of which listed[i] has a list with chosen[i].

    A token covers a node if every leaf below it that has subscriptions has the token in its set; it is
    kept at the highest node that it covers, and removed below. The other tokens of the leaves are in the
    non-cover sets of all nodes above. A leaf's own set is its non-cover set.
    """
    own = dict(zip(listed.tolist(), chosen, strict=True))
    cover: dict[int, Tokens] = {}
    rest: dict[int, Tokens] = {}
    for node in reversed(nodes):
        tokens = own.get(node, _NOTHING)
        if child[node] == NONE:
            cover[node], rest[node] = tokens, _NOTHING
            continue
        below = [c for c in range(child[node], child[node] + 4) if len(cover[c]) + len(rest[c])]
        common = _common([cover[c] for c in below])
        every = np.unique(np.concatenate([tokens, *(part for c in below for part in (cover[c], rest[c]))]))
        cover[node], rest[node] = common, _without(every, common)
        for c in below:
            cover[c] = _without(cover[c], common)
    leaves = {node for node in nodes if child[node] == NONE}
    return {n: (_NOTHING, cover[n]) if n in leaves else (cover[n], rest[n]) for n in nodes}


def _common(sets: list[Tokens]) -> Tokens:
    common = sets[0] if sets else _NOTHING
    for other in sets[1:]:
        common = np.intersect1d(common, other, assume_unique=True)
    return common


def _without(tokens: Tokens, others: Tokens) -> Tokens:
    return np.setdiff1d(tokens, others, assume_unique=True) if len(others) else tokens
