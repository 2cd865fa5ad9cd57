"""The answer of a match: which message goes to which subscription slot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class Pairs(NamedTuple):
    """A set of (message, slot): no duplicates, no order promised."""

    message: NDArray[np.int32]  # [n]  position of the message in its batch
    slot: NDArray[np.int32]  # [n]  dense row of the subscription in its index

    def as_set(self) -> set[tuple[int, int]]:
        return set(zip(self.message.tolist(), self.slot.tolist(), strict=True))

    def by_message(self) -> Pairs:
        """The same pairs in message order, then slot order."""
        order = np.lexsort((self.slot, self.message))
        return Pairs(self.message[order], self.slot[order])

    def to_arrow(self) -> pa.Table:
        return pa.table({"message": self.message, "slot": self.slot})

    @staticmethod
    def once_each(message: NDArray[np.int32], slot: NDArray[np.int32]) -> Pairs:
        """Drop repeats: a subscription with several clauses or boxes is met several times."""
        keys = np.sort((message.astype(np.int64) << 32) | slot)
        keys = keys[np.diff(keys, prepend=-1) != 0]  # much faster than np.unique on large arrays
        return Pairs((keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32))
