"""The best messages of a search: a heap whose first entry is the worst of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive


class Heap(NamedTuple):
    """Room for the best messages; the worst of them is first."""

    scores: NDArray[np.float64]
    seqs: NDArray[np.int32]


@primitive
def _is_before(heap, i, j):
    """Is entry i worse than entry j?"""
    if heap.scores[i] != heap.scores[j]:
        return heap.scores[i] < heap.scores[j]
    return heap.seqs[i] < heap.seqs[j]


@primitive
def _swap(heap, i, j):
    score, seq = heap.scores[i], heap.seqs[i]
    heap.scores[i], heap.seqs[i] = heap.scores[j], heap.seqs[j]
    heap.scores[j], heap.seqs[j] = score, seq


@primitive
def sink(heap, n):
    """Put the first entry where it belongs."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            return
        if child + 1 < n and _is_before(heap, child + 1, child):
            child += 1
        if not _is_before(heap, child, i):
            return
        _swap(heap, i, child)
        i = child


@primitive
def offer(heap, n, reach, score, seq):
    """Keep the entry if it is among the best `reach`; how many are kept."""
    if n < reach:
        heap.scores[n], heap.seqs[n] = score, seq
        i = n
        while i > 0 and _is_before(heap, i, (i - 1) >> 1):
            _swap(heap, i, (i - 1) >> 1)
            i = (i - 1) >> 1
        return n + 1
    if score > heap.scores[0] or (score == heap.scores[0] and seq > heap.seqs[0]):
        heap.scores[0], heap.seqs[0] = score, seq
        sink(heap, n)
    return n


@primitive
def best_first(heap, n):
    """Sort the heap."""
    for last in range(n - 1, 0, -1):
        _swap(heap, 0, last)
        sink(heap, last)
