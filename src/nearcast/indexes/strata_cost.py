"""The cost model of `strata`: which heavy terms are split into classes by the second term.

A message that has a term looks through the boxes of the term's more list that its place is in: `reach` of them. Most of
those ask for further terms that the message has not. Split, it looks up the classes of its own terms instead, and
reads the part of the list that is in them. Long messages pay more for looking up, and then nothing is split.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.kernels.strata_layout import MOST_CLASSES, MOST_SPLITS

MOST_MOVED = 2  # entries that change their list for each that is inserted
LANE, LOOK_UP = 4.0, 15.0  # nanoseconds, about: a lane in reach whose further terms are looked for; a class looked up
MARGIN = 3.0  # the gain must be so many times what looking up costs: messages may be longer than those seen
TERMS = 12.0  # of a message, where none was seen
PER_TERM, LEAST_CLASSES = 8, 16  # classes for each term of a message, and at least
BOXES, PLACES = 1000, 500  # sampled for the reach


class Expected(NamedTuple):
    """What is expected of messages."""

    terms: float = TERMS  # of a message
    reach: float = 0.0  # part of the boxes that the place of a message is in


class Choice(NamedTuple):
    terms: NDArray[np.int64]  # to be split
    masks: NDArray[np.int64]  # of each: its classes - 1


def expected(history: MessageBatch | None, terms: float, boxes: NDArray[np.float64]) -> Expected:
    """By recorded messages; without them by what was known before, and places like those of the boxes."""
    some = boxes[:: -(-len(boxes) // BOXES) or 1]
    if history is not None and len(history):
        terms = len(history.terms) / len(history.boxes)
        places = history.boxes[:: -(-len(history.boxes) // PLACES) or 1]
    else:
        middles = 0.5 * some[:, :2] + 0.5 * some[:, 2:]
        places = np.tile(middles, 2)[:: -(-len(some) // PLACES) or 1]
    low, high = some[:, None, :2] <= places[None, :, 2:], some[:, None, 2:] >= places[None, :, :2]
    return Expected(terms, float((low & high).all(axis=2).mean()) if len(some) else 0.0)


def chances(asked: NDArray[np.int32], weights: NDArray[np.int32], terms: float) -> NDArray[np.float64]:
    """The part of the messages that have each of the terms asked for."""
    return np.asarray(np.minimum(1.0, weights[asked] * (terms / max(1, int(weights.sum(dtype=np.int64))))))


def classes_for(seen: Expected) -> int:
    """Enough for a message to leave most of them closed; few enough for a long one to open all."""
    wanted = max(LEAST_CLASSES, round(PER_TERM * seen.terms))
    return int(min(MOST_CLASSES, 1 << (wanted - 1).bit_length()))


def gains(
    lengths: NDArray[np.float64], passing: NDArray[np.float64], seen: Expected, heavy: int
) -> NDArray[np.float64]:
    """Nanoseconds that a split saves a message with the term, beyond the margin; negative: it does not pay.

    passing: how often the second terms of the list are in a message. heavy, unless 0: so many entries always pay.
    """
    if heavy:
        return lengths - (heavy - 1)
    closed = 1.0 - np.minimum(1.0, passing + seen.terms / classes_for(seen))
    return lengths * seen.reach * LANE * closed - MARGIN * seen.terms * LOOK_UP


def choose(
    keys: NDArray[np.int32],
    seconds: NDArray[np.int32],
    weights: NDArray[np.int32],
    seen: Expected,
    heavy: int,
) -> Choice:
    """The terms to split, of all entries by key and second term (-1: none); those that save most first."""
    lengths = np.bincount(keys[seconds >= 0], minlength=len(weights)).astype(np.float64)
    may_pay = gains(lengths, np.zeros(1), seen, heavy) > 0
    if not may_pay.any():
        return choice_of(np.zeros(0, dtype=np.int64), seen)
    chosen = np.flatnonzero((seconds >= 0) & may_pay[keys])
    passing = np.bincount(keys[chosen], weights=chances(seconds[chosen], weights, seen.terms), minlength=len(weights))
    gain = gains(lengths, passing / np.maximum(lengths, 1.0), seen, heavy)
    terms = np.flatnonzero(gain > 0)
    terms = terms[np.argsort(-gain[terms] * weights[terms], kind="stable")][:MOST_SPLITS]
    return choice_of(terms, seen)


def pays(seconds: NDArray[np.int32], weights: NDArray[np.int32], seen: Expected, heavy: int) -> bool:
    """Whether to split one term, by the second terms of its list."""
    passing = chances(seconds, weights, seen.terms).mean(keepdims=True)
    return bool(gains(np.array([float(len(seconds))]), passing, seen, heavy)[0] > 0)


def choice_of(terms: NDArray[np.int64], seen: Expected) -> Choice:
    return Choice(terms, np.full(len(terms), classes_for(seen) - 1, dtype=np.int64))
