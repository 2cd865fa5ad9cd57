"""`nearcast rank`: files of wishes and messages in, changes of rankings out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from nearcast.cli.match import (
    AT_A_TIME,
    STANDARD,
    Reading,
    exit_if_rejected,
    opened,
    progress_bars,
    say_if_cold,
    side_file,
)

if TYPE_CHECKING:  # heavy: loaded when the command runs
    from nearcast.model import Message, Wish
    from nearcast.ranking.board import Board, RankChange

SHOWN_WISHES, SHOWN_TEXT = 4, 60


def rank(
    wishes: Annotated[Path, typer.Option("--wishes", "-w", help="Rows of id, text, lon, lat, k, alpha.")],
    messages: Annotated[Path, typer.Option("--messages", "-m", help="Files as for match; - is NDJSON from input.")],
    count: Annotated[int | None, typer.Option(help="The window is the last so many messages.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Or: the window is so many seconds of ts.")] = None,
    ranker: Annotated[str | None, typer.Option(help="Name of the ranker; the fastest by default.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="NDJSON; - is standard output.")] = STANDARD,
    rejected: Annotated[
        Path | None,
        typer.Option(help="Side file for rows that cannot be used.", show_default="OUT.rejected.ndjson"),
    ] = None,
    analyzer: Annotated[str, typer.Option(help="How text becomes words: unicode, or a language.")] = "unicode",
    batch: Annotated[int, typer.Option(min=1, help="Messages at a time; 1 answers a live stream.")] = AT_A_TIME,
    live: Annotated[bool, typer.Option(help="Show the first rankings while they change.")] = False,
) -> None:
    """Keep the k best recent messages of every wish; write who enters and who leaves.

    A change has wish_id, operation (enter or leave), message_id, score and because_of: the message that
    brought it. Without --count and --seconds the window is the last 10,000 messages. All words weigh the same.
    """
    from nearcast.files import RANKED_WISHES, Rejections, check_apart
    from nearcast.ranking import Window
    from nearcast.ranking.board import Board
    from nearcast.records import read_wish
    from nearcast.text import analyzer as analyzer_named

    started = time.perf_counter()
    side = rejected or side_file(out)
    check_apart(wishes=wishes, messages=messages, out=out, rejected=side)
    window = Window(10_000) if count is None and seconds is None else Window(count, seconds)
    board, analysis = Board.create(window, ranker=ranker), analyzer_named(analyzer)
    say_if_cold()
    n_changes = 0
    view = _View(board) if live else None
    with Rejections(side) as rejections, opened(out) as sink, progress_bars(out, live) as bars:
        reading = Reading(analysis, rejections, bars)
        for wanted in reading.apart(wishes, RANKED_WISHES, read_wish):
            board.rank(wanted)
        with view or nullcontext():
            for posted in _messages(reading, messages, batch, is_timed=seconds is not None):
                changes = board.arrive(posted)
                n_changes += len(changes)
                _write(sink, changes, posted)
                if view:
                    view.show()
    reading.summary(n_changes, time.perf_counter() - started, "changes")
    if board.report().late:
        typer.echo(f"{board.report().late:,} messages were late and dropped", err=True)
    exit_if_rejected(rejections, side)


def _messages(reading: Reading, path: Path, most: int, *, is_timed: bool) -> Iterator[list[Message]]:
    if is_timed:
        return reading.timed_messages(path, most, "a window of seconds needs the time of every message")
    return reading.messages(path, most)


def _write(sink: IO[str], changes: list[RankChange], posted: list[Message]) -> None:
    for change in changes:
        record = {
            "wish_id": change.wish.id,
            "operation": "enter" if change.entered else "leave",
            "message_id": change.message.id,
            "score": change.score,
            "because_of": posted[change.number].id,
        }
        sink.write(json.dumps(record, ensure_ascii=False) + "\n")
    sink.flush()


class _View(Live):
    """The first rankings, on standard error."""

    def __init__(self, board: Board) -> None:
        super().__init__(console=Console(stderr=True), auto_refresh=False)
        self._board = board

    def show(self) -> None:
        self.update(Group(*(self._table(wish) for wish in self._board.wishes(SHOWN_WISHES))), refresh=True)

    def _table(self, wish: Wish) -> Table:
        table = Table(title=f"{wish.id}: {' '.join(wish.words)}", title_justify="left", expand=True)
        table.add_column("score", width=7)
        table.add_column("message")
        for message, score in self._board.ranking(wish.id):
            text = message.text or " ".join(token.word for token in message.tokens)
            table.add_row(f"{score:.4f}", text[:SHOWN_TEXT])
        return table
