"""Places of many messages at once: which are plainly right, and what the others become."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearcast.columns.messages import MessageBatch
from nearcast.columns.seal import seal, take_runs
from nearcast.errors import ColumnsError
from nearcast.geo import Box, Plane, Space

LARGEST = 1e308  # `records.number` takes what is below


def seal_places(places: ArrayLike, n: int) -> NDArray[np.float64]:
    """[n, 2] (lon, lat) or [n, 4] (west, south, east, north); nothing is said about the values."""
    sealed: NDArray[np.float64] = seal(places, np.float64, "places")
    if not n and not sealed.size:
        return np.zeros((0, 4), np.float64)
    if sealed.shape not in ((n, 2), (n, 4)):
        raise ColumnsError(
            f"places: shape {sealed.shape} given; [{n}, 2] (lon, lat) or [{n}, 4] (west, south, east, north) needed"
        )
    return sealed


def are_ordinary(boxes: NDArray[np.float64], space: Space) -> NDArray[np.bool_]:
    """[n] Boxes that are certainly right and the only way to write their place. A NaN is never ordinary."""
    west, south, east, north = boxes.T
    b = space.bounds
    ordered = (west <= east) & (south <= north)
    if isinstance(space, Plane):
        inside = (west >= b.west) & (south >= b.south) & (east <= b.east) & (north <= b.north)
        inside &= (np.abs(boxes) < LARGEST).all(axis=1)
    else:  # the border is the 180th meridian and the poles, whose places have several coordinates
        inside = (west > b.west) & (south > b.south) & (east < b.east) & (north < b.north)
    return np.asarray(ordered & inside)


def with_boxes(batch: MessageBatch, messages: NDArray[np.intp], boxes: list[tuple[Box, ...]]) -> MessageBatch:
    """The batch, whose messages have one row each, with `boxes[i]` as the rows of message `messages[i]`."""
    counts = np.ones(len(batch), np.int64)
    counts[messages] = [len(parts) for parts in boxes]
    message = np.repeat(np.arange(len(batch)), counts)
    sides = batch.boxes[message]
    for first, parts in zip((np.cumsum(counts) - counts)[messages].tolist(), boxes, strict=True):
        sides[first : first + len(parts)] = [(part.west, part.south, part.east, part.north) for part in parts]
    term_from, terms = take_runs(batch.term_from, batch.terms, message)
    owners = None if len(message) == len(batch) else message.astype(np.int32)
    return replace(batch, boxes=sides, term_from=term_from, terms=terms, message=owners)
