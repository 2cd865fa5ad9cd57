"""Postings by term: lists, the shortest first, and their parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def term_lists(
    terms: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Terms ascending, the number of each one's list (shortest first), the list of every posting, list_from."""
    order = np.argsort(terms, kind="stable")
    ascending = terms[order]
    first = np.flatnonzero(np.diff(ascending, prepend=-1))
    keys, lengths = ascending[first], np.diff(first, append=len(terms))
    by_length = np.argsort(lengths, kind="stable")
    list_of = np.empty(len(keys), np.int32)
    list_of[by_length] = np.arange(len(keys))
    lists = np.empty(len(terms), np.int32)
    lists[order] = np.repeat(list_of, lengths)
    return keys, list_of, lists, np.concatenate([[0], np.cumsum(lengths[by_length])]).astype(np.int64)


def parts(list_from: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Where the parts of each list start, when each is cut into parts of this size."""
    return np.concatenate([[0], np.cumsum(-(-np.diff(list_from) // size))]).astype(np.int64)
