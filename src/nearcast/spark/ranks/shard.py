"""One shard: a sieve and an owner, brought to where the truth is and one batch further."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.rank_layout import NEVER, Candidates
from nearcast.ranking import Changes
from nearcast.spark.ranks.machine import Machine
from nearcast.spark.ranks.owner import Owner
from nearcast.spark.ranks.sieve import Found, Sieve
from nearcast.spark.ranks.told import FIRST_RESULT, Told, told_order
from nearcast.spark.ranks.truth import BASE_EVERY, ShardState, WishChange


class Sifting:
    """The sieve of a shard, following what owners publish."""

    def __init__(self, machine: Machine, number: int) -> None:
        self._machine, self._number = machine, number
        self.batch = -1  # states up to this one are in
        self.sieve = Sieve(machine.plan.settings.space)
        self._listens = np.zeros(0, np.bool_)  # by term

    def probe(self, batch: int) -> tuple[Found, int]:
        """What the messages of a batch may enter, by the thresholds before it; and how many had to be looked at."""
        self._follow(batch - 1)
        coming = self._machine.coming(batch)
        if coming is not None:
            self._drop(coming.gone)
        columns = self._machine.segment(batch).columns
        wanted = np.zeros(len(columns), np.bool_)
        known = columns.terms < len(self._listens)
        heard = np.zeros(len(columns.terms), np.bool_)
        heard[known] = self._listens[columns.terms[known]]
        row = np.repeat(np.arange(len(columns)), np.diff(columns.term_from))
        wanted[row[heard]] = True
        if not wanted.any():
            return Found.none(), 0
        rows = np.flatnonzero(wanted).astype(np.int32)
        found = self.sieve.find(columns.cut(wanted))
        return found._replace(rows=rows[found.rows]), len(rows)

    def _follow(self, batch: int) -> None:
        for shard in range(self._machine.plan.settings.shards):
            for state, _ in self._machine.states(shard, self.batch, batch):
                self._take(state, batch)
        self.batch = batch

    def _take(self, state: ShardState, batch: int) -> None:
        ours = (state.kept >> np.uint64(self._number)) & np.uint64(1) == 1
        here = np.fromiter((wish in self.sieve for wish in state.wish.tolist()), np.bool_, len(state.wish))
        self._drop(state.wish[here & ~ours])
        self.sieve.set_thresholds(state.wish[here & ours], state.theta[here & ours])
        new = np.flatnonzero(ours & ~here)
        new = new[np.isin(state.wish[new], self._machine.book(batch).live(batch))] if len(new) else new
        order = new[np.argsort(state.wish[new])]
        wishes, theta = state.wish[order], state.theta[order]
        if len(wishes):
            self.sieve.put(wishes, self._machine.book(batch).take(wishes), theta)
        self._listen(state, ours, batch)

    def _listen(self, state: ShardState, ours: NDArray[np.bool_], batch: int) -> None:
        chosen = np.flatnonzero(ours)
        if not len(chosen):
            return
        chosen = chosen[np.argsort(state.wish[chosen])]
        plan, columns = self._machine.plan, self._machine.book(batch).take(state.wish[chosen])
        terms = plan.groups_of(self._number, columns, plan.in_prefix(columns, state.theta[chosen]))
        if len(terms) and int(terms.max()) >= len(self._listens):
            self._listens = np.append(self._listens, np.zeros(2 * int(terms.max()) + 1, np.bool_))
        self._listens[terms] = True

    def _drop(self, wishes: NDArray[np.int64]) -> None:
        self.sieve.drop(np.array([wish for wish in wishes.tolist() if wish in self.sieve], np.int64))


class Shard:
    """Rankings of the wishes that this shard owns."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.machine, self.number = machine, number
        self.sifting = Sifting(machine, number)
        self.rebuilt = 0
        self._batch: int | None = None  # done up to this one
        self._stamp = ""  # of the state that was written with it
        self._last: Told | None = None

    # -- a batch ------------------------------------------------------------------------------------

    def probe(self, batch: int) -> tuple[Found, int]:
        if batch - 1 < self.sifting.batch:
            self.sifting = Sifting(self.machine, self.number)
        return self.sifting.probe(batch)

    def settle(self, batch: int, found: Found, looked_at: int | None = None) -> Told:
        """The batch, once: asked again it gives the same answer. `looked_at` is for the report only."""
        if self._batch == batch and self._last is not None and self._is_ours(batch):
            return self._last
        if self._batch != batch - 1 or not self._is_ours(batch - 1):
            self._rebuild(batch)
        self._last = None
        self.machine.forget(self.owner.oldest)  # other shards may be at this batch still, at none before
        parts = self._change_wishes(batch)
        segment = self.machine.segment(batch)
        changes = self.owner.settle(segment.columns, self._candidates(found))
        parts.append((changes, changes.step.astype(np.int64) + segment.first))
        told = self._numbered(parts)
        self._write(batch, looked_at)
        self._batch, self._last = batch, told
        return told

    def _is_ours(self, batch: int) -> bool:
        """Is the state on storage the one that we wrote? Another try of the batch may have come later."""
        told = self.machine.truth.told(batch, self.number) if batch >= 0 else None
        return batch < 0 or (told is not None and told["stamp"] == self._stamp)

    def _change_wishes(self, batch: int) -> list[tuple[Changes, NDArray[np.int64]]]:
        coming = self.machine.coming(batch)
        if coming is None:
            return []
        gone = np.array([self._slot_of[w] for w in coming.gone.tolist() if w in self._slot_of], np.int32)
        if len(gone):
            self.owner.unsubscribe(gone)
            for wish in self._wish_of[gone].tolist():
                del self._slot_of[wish]
        came = self._ours(coming)
        if not len(came):
            return []
        slots = self.owner.subscribe(self.machine.book(batch).take(came))
        self._enter(came, slots)
        return [_first_results(self.owner, slots)]

    def _ours(self, coming: WishChange) -> NDArray[np.int64]:
        numbers = coming.first + np.arange(len(coming.columns), dtype=np.int64)
        return np.asarray(numbers[self.machine.plan.owners(numbers, coming.columns.points) == self.number])

    def _candidates(self, found: Found) -> Candidates:
        """Slots for wishes, by row and each pair once: several sieves may have found the same."""
        here = np.fromiter((wish in self._slot_of for wish in found.wishes.tolist()), np.bool_, len(found.wishes))
        slots = np.fromiter((self._slot_of[w] for w in found.wishes[here].tolist()), np.int32, int(here.sum()))
        rows, scores = found.rows[here], found.scores[here]
        order = np.lexsort((slots, rows))
        rows, slots, scores = rows[order], slots[order], scores[order]
        first = np.ones(len(rows), np.bool_)
        first[1:] = (rows[1:] != rows[:-1]) | (slots[1:] != slots[:-1])
        return Candidates(rows[first].astype(np.int32), slots[first], scores[first])

    def _numbered(self, parts: list[tuple[Changes, NDArray[np.int64]]]) -> Told:
        columns = zip(Changes.none(), *(changes for changes, _ in parts), strict=True)
        every = Changes(*(np.concatenate(column) for column in columns))
        because = np.concatenate([np.zeros(0, np.int64), *(because for _, because in parts)])
        order = told_order(every, because)
        slot = every.slot[order]
        new = np.flatnonzero(np.diff(slot, prepend=-1))
        counts = np.diff(new, append=len(slot))
        seq = self._told[slot] + np.arange(len(slot)) - np.repeat(new, counts) + 1
        self._touched = slot[new]
        self._told[self._touched] += counts
        return Told(
            self._wish_of[slot], seq, every.entered[order], every.seq[order], every.score[order], because[order]
        )

    # -- state --------------------------------------------------------------------------------------

    def _write(self, batch: int, looked_at: int | None) -> None:
        """Thresholds for the sieves and counts, of what changed; from time to time of all."""
        whole = batch % BASE_EVERY == 0
        plan, owner = self.machine.plan, self.owner
        changed, _ = owner.publish()
        slots = owner.table.live() if whole else np.union1d(changed, self._touched).astype(np.int32)
        slots = slots[np.argsort(self._wish_of[slots])]
        wishes, theta = self._wish_of[slots], owner.table.buffers.theta[slots]
        if plan.settings.is_sifted and len(slots):
            columns = self.machine.book(batch).take(wishes)
            needed = plan.sieves(columns, plan.in_prefix(columns, theta))
            self._kept[slots] = needed if whole else self._kept[slots] | needed
        self._stamp = uuid.uuid4().hex
        meta = {"whole": whole, "stamp": self._stamp, "looked_at": looked_at} | self._figures()
        state = ShardState(wishes, theta.copy(), self._kept[slots], self._told[slots])
        state.save(self.machine.truth.state(batch, self.number), meta)

    def _figures(self) -> dict[str, Any]:
        report = self.owner.report()
        return {
            "live": report.live,
            "sifted": len(self.sifting.sieve),
            "refills": report.refills,
            "rebuilt": self.rebuilt,
            "buffered": report.buffered,
            "oldest": self.owner.oldest,
        }

    def _rebuild(self, batch: int) -> None:
        """As it was before the batch, from the truth."""
        self.rebuilt += 1
        settings, machine = self.machine.plan.settings, self.machine
        self.owner = Owner(settings.window, settings.space, is_sifted=settings.is_sifted)
        self._slot_of: dict[int, int] = {}
        self._wish_of = np.zeros(0, np.int64)
        self._told = np.zeros(0, np.int64)
        self._kept = np.zeros(0, np.uint64)
        window = machine.window(batch)
        self.owner.begin_from(window[0].first if window else machine.segment(batch).first)
        for segment in window:
            self.owner.load(segment.columns)
        self._restore(batch)
        self._batch = batch - 1
        states = machine.states(self.number, batch - 2, batch - 1)
        self._stamp = states[-1][1]["stamp"] if states else ""

    def _restore(self, batch: int) -> None:
        live = self.machine.book(batch - 1).live(batch - 1) if batch > 0 else np.zeros(0, np.int64)
        if not len(live):
            return
        book = self.machine.book(batch - 1)
        numbers = live[self.machine.plan.owners(live, book.take(live).points) == self.number]
        columns = book.take(numbers)
        n = len(numbers)
        published, kept, told = np.full(n, NEVER), np.zeros(n, np.uint64), np.zeros(n, np.int64)
        for state, _ in self.machine.states(self.number, -1, batch - 1):
            still = np.isin(state.wish, numbers)
            at = np.searchsorted(numbers, state.wish[still])
            published[at], kept[at], told[at] = state.theta[still], state.kept[still], state.told[still]
        slots = self.owner.restore(columns, published)
        self._enter(numbers, slots)
        self._kept[slots], self._told[slots] = kept, told

    def _enter(self, wishes: NDArray[np.int64], slots: NDArray[np.int32]) -> None:
        more = self.owner.table.top - len(self._wish_of)
        if more > 0:
            self._wish_of = np.append(self._wish_of, np.zeros(more, np.int64))
            self._told = np.append(self._told, np.zeros(more, np.int64))
            self._kept = np.append(self._kept, np.zeros(more, np.uint64))
        self._wish_of[slots], self._told[slots], self._kept[slots] = wishes, 0, 0
        self._slot_of.update(zip(wishes.tolist(), slots.tolist(), strict=True))


def _first_results(owner: Owner, slots: NDArray[np.int32]) -> tuple[Changes, NDArray[np.int64]]:
    """Everything that is in the rankings of new wishes entered them, best first."""
    best = owner.rankings(slots)
    n = len(best.slot)
    changes = Changes(np.zeros(n, np.int32), best.slot, best.seq, np.ones(n, np.bool_), best.score)
    return changes, np.full(n, FIRST_RESULT, np.int64)
