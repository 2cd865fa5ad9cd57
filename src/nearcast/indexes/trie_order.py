"""The global token order of the CIKM'15 indexes: a key for every term that some subscription has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.indexes.pool import enlarged
from nearcast.kernels.layout import Entries
from nearcast.kernels.token_trie import NONE

ORDERS = ("rare", "frequent", "alphabetical")
_KEYS = 2**31 - 1  # no key is above it
_SCRAMBLE = 1_640_531_527  # odd: multiplied modulo 2**31 it permutes the terms


def terms_of(entries: Entries, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The terms of the entries in the order of numbers, as a CSR pair."""
    counts = entries.term_count[numbers].astype(np.int64)
    run_from = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    positions = np.arange(run_from[-1]) + np.repeat(entries.term_from[numbers] - run_from[:-1], counts)
    return run_from, entries.terms[positions]


def frequencies(history: MessageBatch | None, terms: NDArray[np.int32]) -> NDArray[np.int64]:
    """How often each term occurs: in past messages if there are any, else in the subscriptions' terms."""
    size = int(terms.max(initial=-1)) + 1
    counted = terms if history is None or not len(history.terms) else history.terms_once()
    return np.bincount(counted, minlength=size).astype(np.int64)


def rarest_terms(entries: Entries, numbers: NDArray[np.int64], frequency: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rarest term of each entry; one that was never counted is the rarest."""
    run_from, terms = terms_of(entries, numbers)
    counted = np.concatenate([frequency, np.zeros(max(0, int(terms.max()) + 1 - len(frequency)), dtype=np.int64)])
    return np.minimum.reduceat((counted[terms] << 31) | terms, run_from[:-1]) & _KEYS


class TrieOrder:
    """Keys are 0 or more; a subscription's path goes from its highest key to its lowest (CIKM'15 3.1).

    rare: the rarest term comes first; frequent: the most frequent one; alphabetical: an order that knows
    nothing of frequencies, as the alphabet does. Terms that come later are first in the first two.
    """

    def __init__(self, order: str) -> None:
        self.order = order
        self.n = 0  # D of section 3.3: distinct tokens
        self.key_of: NDArray[np.int32] = np.zeros(0, dtype=np.int32)  # by term; NONE: in no subscription

    def learn(self, terms: NDArray[np.int32], frequency: NDArray[np.int64]) -> None:
        """Order these terms, and forget all others."""
        known = np.unique(terms)
        by_use = known[np.argsort(frequency[known], kind="stable")]
        self.key_of, self.n = np.zeros(0, dtype=np.int32), 0
        self._give(by_use[::-1] if self.order == "rare" else by_use)

    def include(self, terms: NDArray[np.int32]) -> None:
        """Give keys to terms that have none."""
        known = np.unique(terms)
        inside = known[known < len(self.key_of)]
        fresh = known[known >= len(self.key_of)]
        self._give(np.concatenate([inside[self.key_of[inside] == NONE], fresh]))

    def _give(self, terms: NDArray[np.int32]) -> None:
        self.key_of = enlarged(self.key_of, int(terms.max(initial=-1)) + 1, NONE)
        keys = np.arange(self.n, self.n + len(terms), dtype=np.int64)
        if self.order == "alphabetical":
            keys = (terms.astype(np.int64) * _SCRAMBLE) & _KEYS
        self.key_of[terms] = keys
        self.n += len(terms)

    def paths(self, entries: Entries, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The keys of each entry, from the highest to the lowest, as a CSR pair."""
        path_from, terms = terms_of(entries, numbers)
        rows = np.repeat(np.arange(len(numbers), dtype=np.int64), np.diff(path_from))
        ordered = np.sort((rows << 31) | (_KEYS - self.key_of[terms].astype(np.int64)))
        return path_from, (_KEYS - (ordered & _KEYS)).astype(np.int32)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"key_of": self.key_of, "n": np.array([self.n], dtype=np.int64)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.key_of, self.n = arrays["key_of"], int(arrays["n"][0])
