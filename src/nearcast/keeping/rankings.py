"""Rankings that outlive their process: the wishes from the store, their window from the log."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from nearcast.keeping.keeper import Keeper
from nearcast.model import Id, Message, Wish
from nearcast.ranking.board import Board
from nearcast.store.codec import message_from
from nearcast.text import analyzer

CHUNK = 10_000  # messages that are read at a time
PLACE = "ranking window"  # the setting that says where the window begins in the log, and its time


class RankKeeper:
    """Writes for the board of a hub, and fills a new one."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def begin(self, wishes: Sequence[Wish], board: Board) -> None:
        if not board.arrived:
            self.note(board)  # the window begins with the next message
        self._keeper.store.wishes.begin(self._keeper.tenant, wishes)

    def end(self, wish: Id) -> None:
        self._keeper.store.wishes.end(self._keeper.tenant, [wish])

    def note(self, board: Board) -> None:
        """Where the window begins: reading the log again may start there."""
        oldest = self._keeper.next_seq if board.oldest_seq is None else board.oldest_seq
        now = board.now if math.isfinite(board.now) else None
        self._keeper.store.settings.put(self._keeper.tenant, {PLACE: json.dumps([oldest, now]).encode()})

    def wishes(self) -> list[Wish]:
        return self._keeper.store.wishes.live(self._keeper.tenant)

    def fill(self, board: Board, wishes: Sequence[Wish]) -> None:
        """The window as it was, then the wishes: rankings are what they were when the last process ended.

        What the log has forgotten is missing; keep it as long as the window.
        """
        told = self._keeper.store.settings.get(self._keeper.tenant, PLACE)
        oldest, now = json.loads(told) if told else (self._keeper.next_seq, None)
        for messages, seqs in self._logged(oldest):
            board.load(messages, seqs)
        if now is not None and now > board.now:
            board.advance(now)
        board.rank(wishes)

    def _logged(self, first: int) -> Iterator[tuple[list[Message], list[int]]]:
        keeper, analysis = self._keeper, analyzer(self._keeper.analysis)
        log, after = keeper.store.log, first - 1
        while rows := log.read(keeper.tenant, after, log.last_seq, CHUNK):
            yield [message_from(row.body, analysis) for row in rows], [row.seq for row in rows]
            after = rows[-1].seq
