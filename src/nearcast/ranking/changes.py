"""What a ranker answers: who entered and who left which ranking."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.rank_settle import Out


class Changes(NamedTuple):
    """Changes of rankings, step by step. A step is an arrival and the expiries that it brings.

    Within a step, a message enters or leaves a ranking once at most.
    """

    step: NDArray[np.int32]  # [n]  row of the batch, ascending
    slot: NDArray[np.int32]  # [n]
    seq: NDArray[np.int64]  # [n]  number of the message, from 0 in order of arrival
    entered: NDArray[np.bool_]  # [n]  else it left
    score: NDArray[np.float64]  # [n]

    def netted(self) -> Changes:
        """Without messages that entered and left (or left and came back) within one step."""
        order = np.lexsort((self.seq, self.slot, self.step))
        step, slot, seq = self.step[order], self.slot[order], self.seq[order]
        same = (step[1:] == step[:-1]) & (slot[1:] == slot[:-1]) & (seq[1:] == seq[:-1])
        gone = np.zeros(len(order), np.bool_)
        gone[1:] |= same
        gone[:-1] |= same
        keep = np.ones(len(order), np.bool_)
        keep[order[gone]] = False
        return Changes(self.step[keep], self.slot[keep], self.seq[keep], self.entered[keep], self.score[keep])

    @staticmethod
    def joined(parts: list[Changes]) -> Changes:
        if len(parts) == 1:
            return parts[0]
        columns: Any = zip(Changes.none(), *parts, strict=True)
        return Changes(*(np.concatenate(column) for column in columns))

    @staticmethod
    def none() -> Changes:
        return Changes(
            np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0)
        )

    @staticmethod
    def taken(out: Out, n: int, past: int) -> Changes:
        seqs = out.seqs[:n].astype(np.int64) + past
        return Changes(out.steps[:n].copy(), out.slots[:n].copy(), seqs, out.entered[:n].copy(), out.scores[:n].copy())


class Ranking(NamedTuple):
    """The current best of one wish, best first; of equal scores the newer first."""

    seq: NDArray[np.int64]
    score: NDArray[np.float64]
