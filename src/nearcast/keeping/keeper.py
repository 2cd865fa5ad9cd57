"""`Keeper`: what a hub writes down, and how it comes back. Order of writing: log, then truth, then index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast import indexes
from nearcast.columns import SubscriptionColumns
from nearcast.geo import Space, earth
from nearcast.keeping import checkpoint
from nearcast.keeping.rematch import Rematch, Valid
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Message, Subscription
from nearcast.store import Store, StoreError
from nearcast.store.codec import message_bytes, space_bytes, space_from, subscription_bytes, subscription_from
from nearcast.store.truth import Ending, Kept
from nearcast.text import Analyzer, analyzer

DEFAULT_ANALYSIS = "unicode"


class Restored(NamedTuple):
    """A subscription that came back: its slot in the index, its number in the store, events counted so far."""

    wish: Subscription
    slot: int
    number: int
    spent: int


class Keeper:
    """One tenant's part of a store. `clock` gives the time at which messages are accepted."""

    def __init__(
        self, store: Store, tenant: str, space: Space | None, analysis: str | None, clock: Callable[[], float]
    ) -> None:
        self.store, self.tenant, self._clock = store, tenant, clock
        self.space, self.analysis = self._agreed(space, analysis)
        self._analyzer: Analyzer = analyzer(self.analysis)
        self.was_warm = False  # the index came from a checkpoint

    def _agreed(self, space: Space | None, analysis: str | None) -> tuple[Space, str]:
        """What the store was made with; a new store takes what is asked for."""
        told = self.store.settings.get(self.tenant, "space"), self.store.settings.get(self.tenant, "analyzer")
        if told[0] is None or told[1] is None:
            chosen = space or earth, analyzer(analysis or DEFAULT_ANALYSIS).name
            self.store.settings.put(self.tenant, {"space": space_bytes(chosen[0]), "analyzer": chosen[1].encode()})
            return chosen
        kept = space_from(told[0]), told[1].decode()
        if space is not None and space != kept[0]:
            raise StoreError(f"space {space} asked for; the store was made with {kept[0]}")
        if analysis is not None and analyzer(analysis).name != kept[1]:
            raise StoreError(f"analyzer {analysis!r} asked for; the store was made with {kept[1]!r}")
        return kept

    # -- writing ------------------------------------------------------------------------------------

    @property
    def next_seq(self) -> int:
        return self.store.log.last_seq + 1

    def append(self, messages: Sequence[Message]) -> int:
        """Into the log, in one transaction; the sequence number of the first."""
        bodies = [(self.tenant, message_bytes(message)) for message in messages]
        return self.store.log.append(bodies, self._clock())

    def begin(self, wishes: Sequence[Subscription], instead_of: Iterable[int]) -> list[int]:
        """Valid from the next message on; those with the given numbers end there. The new numbers."""
        rows = [(wish.id, wish.receiver, subscription_bytes(wish, self._analyzer)) for wish in wishes]
        endings = [Ending(number, self.next_seq) for number in instead_of]
        return self.store.subscriptions.change(self.tenant, rows, self.next_seq, endings)

    def end(self, number: int) -> None:
        self.store.subscriptions.change(self.tenant, (), self.next_seq, [Ending(number, self.next_seq)])

    def count_events(self, spent: dict[int, int], endings: Iterable[Ending], counted: int) -> None:
        self.store.subscriptions.count_events(self.tenant, spent, endings, counted)

    def save(self, index: indexes.EntryIndex, lexicon: Lexicon, slots: dict[int, int]) -> None:
        """The lexicon into the store, the index (number by slot given) into a folder beside it."""
        self.count_events({}, (), self.store.log.last_seq)
        self.store.settings.put(self.tenant, {"lexicon": _arrow_bytes(lexicon)})
        if self._folder is not None:
            numbers = np.full(max(slots, default=-1) + 1, checkpoint.NONE, dtype=np.int64)
            numbers[list(slots.keys())] = list(slots.values())
            checkpoint.save(self._folder, index, numbers, lexicon)

    @property
    def _folder(self) -> Path | None:
        if self.store.beside is None:
            return None
        tenant = f".{self.tenant.encode().hex()}" if self.tenant else ""
        return Path(f"{self.store.beside}{tenant}.index")

    # -- coming back --------------------------------------------------------------------------------

    def lexicon(self) -> Lexicon:
        recorded = self.store.settings.get(self.tenant, "lexicon")
        if recorded is None:
            return Lexicon(self.analysis)
        return Lexicon.from_arrow(pa.ipc.open_stream(recorded).read_all())

    def restore(self, lexicon: Lexicon, empty: indexes.EntryIndex) -> tuple[indexes.EntryIndex, list[Restored]]:
        """The index of the live subscriptions: from the checkpoint and what changed since, or built anew."""
        kept = self.store.subscriptions.live(self.tenant)
        wishes = {row.number: self._wish(row) for row in kept}
        index, slots = self._from_checkpoint(lexicon, empty, wishes)
        missing = [number for number in wishes if number not in slots]
        columns = SubscriptionColumns.from_values([wishes[n] for n in missing], lexicon, space=self.space)
        slots |= zip(missing, index.insert(columns).tolist(), strict=True)
        self._count_again(kept, wishes)
        live = {row.number: row.spent for row in self.store.subscriptions.live(self.tenant)}
        gone = [slots[row.number] for row in kept if row.number not in live]
        if gone:
            index.remove(gone)
        return index, [Restored(wishes[number], slots[number], number, spent) for number, spent in live.items()]

    def _from_checkpoint(
        self, lexicon: Lexicon, empty: indexes.EntryIndex, wishes: dict[int, Subscription]
    ) -> tuple[indexes.EntryIndex, dict[int, int]]:
        """An index and, by number, the slots of those that are live in it; the others are removed from it."""
        loaded = checkpoint.load(self._folder, lexicon) if self._folder is not None else None
        if loaded is None or loaded[0].name != empty.name:
            return empty, {}
        self.was_warm = True
        index, numbers = loaded
        is_live = np.isin(numbers, np.fromiter(wishes, dtype=np.int64, count=len(wishes)))
        over = np.flatnonzero(~is_live & (numbers != checkpoint.NONE))
        if len(over):
            index.remove(over)
        return index, _by_number(numbers, np.flatnonzero(is_live))

    def _wish(self, row: Kept) -> Subscription:
        return subscription_from(row.id, row.subscriber, row.body, self._analyzer)

    def _count_again(self, kept: Sequence[Kept], wishes: dict[int, Subscription]) -> None:
        """Events of limited subscriptions that were logged but not counted when the last process ended."""
        limited = {row.number: row for row in kept if wishes[row.number].max_events is not None}
        if not limited:
            return
        spent = {number: row.spent for number, row in limited.items()}
        endings: list[Ending] = []
        counted = int(self.store.settings.get(self.tenant, "counted") or b"0")
        after = max(counted, min(row.from_seq for row in limited.values()) - 1)
        valid = [Valid(wishes[row.number], row.number, row.from_seq) for row in limited.values()]
        last = self.store.log.last_seq
        for chunk in self.rematch(valid).chunks(after, last):
            for found in chunk.found:
                for wanted in found.wanted:
                    most = wanted.wish.max_events or 0
                    spent[wanted.number] += 1
                    if spent[wanted.number] == most:
                        endings.append(Ending(wanted.number, found.seq + 1))
        self.count_events(spent, endings, last)

    # -- looking back -------------------------------------------------------------------------------

    def rematch(self, wanted: Sequence[Valid]) -> Rematch:
        return Rematch(self.store.log, self.tenant, wanted, self.space, self.analysis)

    def past_of(self, subscriber: Id, after: int) -> Rematch:
        """The subscriber's own subscriptions, as each was valid, to be matched with what came behind `after`."""
        rows = self.store.subscriptions.of(self.tenant, subscriber, after)
        return self.rematch([Valid(self._wish(row), row.number, row.from_seq, row.to_seq) for row in rows])


def _by_number(numbers: NDArray[np.int64], slots: NDArray[np.intp]) -> dict[int, int]:
    return dict(zip(numbers[slots].tolist(), slots.tolist(), strict=True))


def _arrow_bytes(lexicon: Lexicon) -> bytes:
    table, sink = lexicon.to_arrow(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
