"""What a mover answers: which message came to or went from which subscription."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Changes(NamedTuple):
    """A set of changes of one step: a message enters or leaves a subscription once at most."""

    slot: NDArray[np.int32]  # [n]  of the subscription
    seq: NDArray[np.int64]  # [n]  number of the message, from 0 in order of arrival
    entered: NDArray[np.bool_]  # [n]  else it left

    def as_set(self) -> set[tuple[int, int, bool]]:
        return set(zip(self.slot.tolist(), self.seq.tolist(), self.entered.tolist(), strict=True))

    @staticmethod
    def joined(parts: list[Changes]) -> Changes:
        parts = [part for part in parts if len(part.slot)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Changes.none()
        slots, seqs, entered = zip(*parts, strict=True)
        return Changes(np.concatenate(slots), np.concatenate(seqs), np.concatenate(entered))

    @staticmethod
    def none() -> Changes:
        return Changes(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.bool_))

    @staticmethod
    def between(before: Changes, after: Changes) -> Changes:
        """From two sets of (slot, seq), both written as entered: what has to leave and to enter."""
        slot, seq = np.concatenate([before.slot, after.slot]), np.concatenate([before.seq, after.seq])
        is_after = np.concatenate([np.zeros(len(before.slot), np.bool_), np.ones(len(after.slot), np.bool_)])
        order = np.lexsort((seq, slot))
        same = (slot[order][1:] == slot[order][:-1]) & (seq[order][1:] == seq[order][:-1])
        alone = np.ones(len(order), np.bool_)
        alone[1:] &= ~same
        alone[:-1] &= ~same
        kept = order[alone]
        return Changes(slot[kept], seq[kept], is_after[kept])
