"""Numbers of wishes and messages back to their ids, as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model import Id
from nearcast.spark.storage import IdKind

KINDS = {"string": pa.large_string(), "long": pa.int64()}


def id_array(ids: Sequence[Id] | pa.Array, kind: IdKind) -> pa.Array:
    if isinstance(ids, pa.Array):
        return ids.cast(KINDS[kind])
    return pa.array(ids if kind == "long" else [str(identity) for identity in ids], KINDS[kind])


def looked_up(parts: Sequence[pa.Array], firsts: NDArray[np.int64], numbers: NDArray[np.int64]) -> pa.Array:
    """[len(numbers)] by number; null for a negative one. Part i has the ids from number firsts[i] on. One without any
    shares its first number with the next."""
    if not parts:
        return pa.nulls(len(numbers))
    part = np.where(numbers < 0, -1, np.searchsorted(firsts, numbers, side="right") - 1)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(len(parts) + 1))
    found = [
        ids.take(pa.array(numbers[order[ends[i] : ends[i + 1]]] - firsts[i]))
        for i, ids in enumerate(parts)
        if ends[i] < ends[i + 1]
    ]
    if not found:
        return pa.nulls(len(numbers))
    place = np.empty(len(numbers), np.int64)
    place[order] = np.arange(len(numbers)) - ends[0]
    return pa.concat_arrays(found).take(pa.array(place, mask=place < 0))
