"""The part of a hub that ranks: wishes for the best recent messages, and what enters and leaves their lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from nearcast.deliveries import Delivery, UnknownSubscriptionError
from nearcast.geo import Space
from nearcast.keeping.keeper import Keeper
from nearcast.keeping.rankings import RankKeeper
from nearcast.lexicon import Lexicon
from nearcast.model import Id, Wish
from nearcast.ranking import RankReport, Window
from nearcast.ranking.board import Board, RankChange, Ranked
from nearcast.records import read_wish
from nearcast.text import Analyzer


class Rankings:
    """`rank` and `ranking` of a hub. The window is the hub's."""

    space: Space
    _analyzer: Analyzer
    _window: Window
    _recorded: Lexicon | None
    _numbers: count[int]
    _keeper: Keeper | None = None
    _board: Board | None = None

    def rank(
        self,
        subscriber: Id,
        words: str,
        near: tuple[float, float],
        *,
        k: int = 10,
        alpha: float = 0.5,
        id: Id | None = None,
    ) -> Id:
        """Keep the k best recent messages about these words near this point; the wish's id.

        The score is alpha * proximity + (1 - alpha) * cosine of the words. Changes come with the deliveries of
        `publish` and `advance` as `enter` and `leave`, after the matches of their batch; `ranking` has the whole
        list. The window begins with the first wish. With a store wishes and window are there again after a restart.
        """
        identity = f"{subscriber}/{next(self._numbers)}" if id is None else id
        record = {"id": identity, "text": words, "lon": near[0], "lat": near[1], "k": k, "alpha": alpha}
        wish = read_wish({**record, "subscriber": subscriber}, self.space, self._analyzer)
        self.rank_all([wish])
        return wish.id

    def rank_all(self, wishes: Sequence[Wish]) -> None:
        """Many at once, all or none."""
        if self._board is None:
            self._board = self._new_board()
        if self._keeper is not None:
            self._board.check_new(wishes)
            RankKeeper(self._keeper).begin(wishes, self._board)
        self._board.rank(wishes)

    def _new_board(self) -> Board:
        return Board.create(self._window, self.space, recorded=self._recorded)

    def _restore_rankings(self, keeper: Keeper) -> None:
        kept = RankKeeper(keeper)
        if wishes := kept.wishes():
            self._board = self._new_board()
            kept.fill(self._board, wishes)

    def wish(self, wish: Id) -> Wish:
        return self._rankings().wish(wish)

    def wishes(self) -> list[Wish]:
        return [] if self._board is None else self._board.wishes(len(self._board))

    def wishes_of(self, subscriber: Id) -> list[Wish]:
        """The rankings that a subscriber keeps."""
        return [] if self._board is None else self._board.wishes_of(subscriber)

    @property
    def rankings(self) -> int:
        """How many are kept."""
        return 0 if self._board is None else len(self._board)

    def keeps_ranking(self, wish: Id) -> bool:
        return self._board is not None and wish in self._board

    def unrank(self, wish: Id) -> None:
        board = self._rankings()
        board.wish(wish)  # or an error, before anything is written
        if self._keeper is not None:
            RankKeeper(self._keeper).end(wish)
        board.unrank(wish)

    def ranking(self, wish: Id) -> list[Ranked]:
        """The best messages of a wish now, best first, with their scores."""
        return self._rankings().ranking(wish)

    def rank_report(self) -> RankReport:
        return self._rankings().report()

    def _rankings(self) -> Board:
        if self._board is None:
            raise UnknownSubscriptionError("this hub holds no ranking; leave one by rank")
        return self._board

    def _ranked(self, changes: list[RankChange], first_seq: int | None) -> list[Delivery]:
        return [
            Delivery(
                change.wish.id,
                change.wish.receiver,
                change.message,
                "enter" if change.entered else "leave",
                None if first_seq is None else first_seq + change.number,
                change.score,
            )
            for change in changes
        ]
