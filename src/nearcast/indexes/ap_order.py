"""What an AP-Tree knows of messages, and the order of keywords that it makes of it (VLDBJ'17 3.2.2, 3.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.indexes.pool import enlarged
from nearcast.kernels import ap_update
from nearcast.kernels.ap_cost import MIDDLE_KEY
from nearcast.kernels.ap_layout import NOTHING
from nearcast.kernels.layout import Entries

PLACES = 4096  # a sample is enough for probabilities of cells
WORDS = 10  # of a message, where none is known: VLDBJ'17 Table 2 has 9 for TWEETS, 7 for GN


class Workload(NamedTuple):
    """Messages of the past; without any the subscriptions stand for them."""

    size: int  # messages
    counts: NDArray[np.int64]  # [terms]  messages with a term
    places: NDArray[np.float64]  # [*, 2]  middles of a sample, in no order

    @classmethod
    def of_messages(cls, history: MessageBatch | None) -> Workload | None:
        if history is None or not len(history):
            return None
        return cls(len(history), np.bincount(history.terms_once()), _middles(history.boxes))

    @classmethod
    def of_entries(cls, entries: Entries, live: NDArray[np.int64]) -> Workload:
        """As many messages as the keywords of the subscriptions would make.

        3.3.1 sets p(w) = freq(w) / sum of freq, the probability of one word; a message has several.
        """
        terms = entries.terms[_term_places(entries, live)]
        return cls(len(terms) // WORDS + 1, np.bincount(terms), _middles(entries.boxes[live]))

    def count_of(self, terms: NDArray[np.int32]) -> NDArray[np.int64]:
        known = np.zeros(max(len(self.counts), int(terms.max(initial=0)) + 1), dtype=np.int64)
        known[: len(self.counts)] = self.counts
        counted: NDArray[np.int64] = known[terms]
        return counted


def _middles(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of rows in an order without pattern, the same one each time (multiples of the golden ratio)."""
    chosen = np.argsort(np.arange(len(boxes)) * 0.6180339887498949 % 1.0)[:PLACES]
    return np.ascontiguousarray((boxes[chosen, :2] + boxes[chosen, 2:]) / 2)


def _term_places(entries: Entries, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the terms of these entries are in entries.terms, one entry after the other."""
    counts = entries.term_count[numbers].astype(np.int64)
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(entries.term_from[numbers] - ends + counts, counts)


class KeywordOrder:
    """Keys: terms renumbered so that ascending keys are the order of keywords.

    The terms known at the start have keys from MIDDLE_KEY on; later ones, which are rare, get the keys before
    them where the rarest come first, else the keys after them. Keys never change until the next start.
    """

    def __init__(self, rare_first: bool) -> None:
        self.rare_first = rare_first
        self.ranks = np.full(1, NOTHING, dtype=np.int32)  # [terms]  key of a term
        self.keys = np.zeros(1, dtype=np.int32)  # beside Entries.terms: the keys of an entry, ascending
        self.chances = np.zeros(1)  # [keys]  share of messages with a key, from MIDDLE_KEY on
        self.n_later = 0

    @property
    def is_exhausted(self) -> bool:
        return self.rare_first and self.n_later >= MIDDLE_KEY

    def start(self, entries: Entries, live: NDArray[np.int64], workload: Workload) -> None:
        """An order for these entries, by the frequency of their terms in messages."""
        terms, wanted = np.unique(entries.terms[_term_places(entries, live)], return_counts=True)
        counts = workload.count_of(terms)
        order = np.lexsort((wanted, counts))
        order = order if self.rare_first else order[::-1]
        self.ranks = np.full(int(terms.max(initial=0)) + 1, NOTHING, dtype=np.int32)
        self.ranks[terms[order]] = np.arange(MIDDLE_KEY, MIDDLE_KEY + len(terms))
        self.n_later = 0
        # One message more, with a keyword of the subscriptions: no probability is 0.
        chances = (counts + wanted / max(1, wanted.sum()))[order] / (workload.size + 1)
        self.chances = np.append(np.minimum(chances, 1.0), 0.0)
        self.put(entries, live)

    def put(self, entries: Entries, new: NDArray[np.int64]) -> None:
        """Keys for new entries, and for terms that come for the first time."""
        terms = np.unique(entries.terms[_term_places(entries, new)])
        self.ranks = enlarged(self.ranks, int(terms.max(initial=0)) + 1, NOTHING)
        later = terms[self.ranks[terms] == NOTHING]
        numbers = self.n_later + np.arange(len(later))
        self.ranks[later] = MIDDLE_KEY - 1 - numbers if self.rare_first else self._end() + numbers
        self.n_later += len(later)
        self.keys = enlarged(self.keys, len(entries.terms))
        ap_update.order_keys(entries, self.ranks, new, self.keys)

    def _end(self) -> int:
        return MIDDLE_KEY + len(self.chances)

    @property
    def nbytes(self) -> int:
        return self.ranks.nbytes + self.chances.nbytes

    def state(self) -> dict[str, NDArray[Any]]:
        return {"ranks": self.ranks, "chances": self.chances, "later": np.array([self.n_later])}

    def restore(self, arrays: Mapping[str, NDArray[Any]], entries: Entries, live: NDArray[np.int64]) -> None:
        self.ranks, self.chances = arrays["ranks"], arrays["chances"]
        self.n_later = int(arrays["later"][0])
        self.put(entries, live)
