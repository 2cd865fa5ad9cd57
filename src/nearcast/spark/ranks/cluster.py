"""All shards in this process, one after the other: what Spark does, without Spark. For laws, plans and measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearcast.model import Id, Message, Wish
from nearcast.spark.ranks.machine import Machine
from nearcast.spark.ranks.plan import RankPlan
from nearcast.spark.ranks.posts import Posts
from nearcast.spark.ranks.sequencer import Sequencer
from nearcast.spark.ranks.shard import Shard
from nearcast.spark.ranks.sieve import Found
from nearcast.spark.ranks.told import Told
from nearcast.spark.ranks.truth import Truth


class Sent(NamedTuple):
    """What a batch cost between shards."""

    messages: int
    looked_at: list[int]  # messages, by shard
    candidates: int  # sent from sieves to owners


class Cluster:
    """The shards of a plan on one machine."""

    def __init__(self, folder: Path, plan: RankPlan | None = None, words: Sequence[str] = ()) -> None:
        self.truth = Truth(folder)
        if plan is not None:
            plan.save(folder / "plan")
        self.plan = RankPlan.load(folder / "plan")
        self._words = words
        self.restart()

    def restart(self) -> None:
        """As after a loss of everything that is not on storage."""
        self.machine = Machine(self.truth.folder)
        self.sequencer = Sequencer(self.truth, self.plan, self._words)
        self.shards = [Shard(self.machine, number) for number in range(self.plan.settings.shards)]

    def lose(self, number: int) -> None:
        self.shards[number] = Shard(self.machine, number)

    def decide(self, batch: int, wishes: Mapping[Id, Wish | None], messages: Sequence[Message]) -> None:
        told, plan = self.sequencer, self.plan
        told.decide(batch, wishes, Posts.from_values(messages, told.lexicon, plan.idf, plan.settings.message_ids))

    def run(self, batch: int) -> tuple[list[Told], Sent]:
        """A batch that was decided: the changes by shard."""
        n = len(self.machine.segment(batch))
        looked_at = [n] * len(self.shards)
        found = [Found.none() for _ in self.shards]
        if self.plan.settings.is_sifted:
            sifted = [shard.probe(batch) for shard in self.shards]
            looked_at = [count for _, count in sifted]
            found = shared_out([each for each, _ in sifted], len(self.shards))
        told = [shard.settle(batch, each) for shard, each in zip(self.shards, found, strict=True)]
        return told, Sent(n, looked_at, sum(len(each.rows) for each in found))


def shared_out(found: Sequence[Found], shards: int) -> list[Found]:
    """What sieves found, by owner. Owners of sifted wishes are a matter of their number (see RankPlan.owners)."""
    every = Found(*(np.concatenate(column) for column in zip(*found, strict=True)))
    owner = every.wishes % shards
    return [Found(*(column[owner == number] for column in every)) for number in range(shards)]
