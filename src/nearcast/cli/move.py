"""`nearcast move`: files of moving subscriptions, their moves, and messages in; what enters and leaves out."""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from nearcast.cli.match import (
    AT_A_TIME,
    STANDARD,
    Reading,
    exit_if_rejected,
    opened,
    progress_bars,
    record_of,
    say_if_cold,
    side_file,
)

if TYPE_CHECKING:  # heavy: loaded when the command runs
    from nearcast.files import Row
    from nearcast.model import Message, Move
    from nearcast.moving.tracker import MoveChange, Tracker

DEFAULT_LIFE = 3600.0


def move(
    subscriptions: Annotated[Path, typer.Option("--subscriptions", "-s", help="Files as for match: where all begin.")],
    moves: Annotated[Path, typer.Option("--moves", help="Rows of id, ts and a region, in the order of ts.")],
    messages: Annotated[Path, typer.Option("--messages", "-m", help="Files as for match, with ts, in its order.")],
    seconds: Annotated[float, typer.Option(help="How long a message lives that has no ttl of its own.")] = DEFAULT_LIFE,
    mover: Annotated[str | None, typer.Option(help="Name of the mover; the fastest by default.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="NDJSON; - is standard output.")] = STANDARD,
    rejected: Annotated[
        Path | None,
        typer.Option(help="Side file for rows that cannot be used.", show_default="OUT.rejected.ndjson"),
    ] = None,
    analyzer: Annotated[str, typer.Option(help="How text becomes words: unicode, or a language.")] = "unicode",
    step: Annotated[float, typer.Option(min=0.0, help="Seconds that are one step; 0 tells every change.")] = 0.0,
) -> None:
    """Follow subscriptions as they move; write which messages enter and leave their regions.

    A change has subscription_id, operation (enter or leave), message_id and ts: when it happened. Moves and messages
    are taken in the order of their ts; with --step, those of so many seconds come together, and what enters
    and leaves within a step is not told.
    """
    from nearcast.files import MOVES, SUBSCRIPTIONS, Rejections, check_apart
    from nearcast.moving.tracker import Tracker
    from nearcast.records import read_subscription
    from nearcast.text import analyzer as analyzer_named

    started = time.perf_counter()
    side = rejected or side_file(out)
    check_apart(subscriptions=subscriptions, moves=moves, messages=messages, out=out, rejected=side)
    tracker, analysis = Tracker.create(seconds=seconds, mover=mover), analyzer_named(analyzer)
    say_if_cold()
    n_changes = 0
    with Rejections(side) as rejections, opened(out) as sink, progress_bars(out, False) as bars:
        reading = Reading(analysis, rejections, bars)
        for wanted in reading.apart(subscriptions, SUBSCRIPTIONS, read_subscription):
            tracker.follow(wanted)
        timed = reading.timed_messages(messages, AT_A_TIME, "moves need the time of every message")
        posted = chain.from_iterable(timed)
        moved = chain.from_iterable(reading.values(moves, MOVES, _move_reader(tracker), AT_A_TIME))
        for now, some_moves, some_messages in _steps(moved, posted, step):
            changes = _play(tracker, now, some_moves, some_messages)
            n_changes += len(changes)
            _write(sink, changes, now)
    reading.summary(n_changes, time.perf_counter() - started, "changes")
    report = tracker.report()
    typer.echo(f"{report.moves:,} moves; {report.late:,} messages came after their end", err=True)
    exit_if_rejected(rejections, side)


# -- reading ------------------------------------------------------------------------------------------------


def _move_reader(tracker: Tracker) -> Callable[[Row], Move]:
    from nearcast.errors import RowError
    from nearcast.geo import earth
    from nearcast.records import read_move

    def read_one_move(row: Row) -> Move:
        one = read_move(record_of(row), earth)
        if one.id not in tracker:
            raise RowError(f"id: {one.id!r} given; no such subscription")
        return one

    return read_one_move


# -- steps --------------------------------------------------------------------------------------------------


def _steps(
    moves: Iterator[Move], messages: Iterator[Message], step: float
) -> Iterator[tuple[float, list[Move], list[Message]]]:
    """Both streams in the order of time: the time at the end of a step, its moves, its messages."""
    from nearcast.model import Move

    some_moves: list[Move] = []
    some_messages: list[Message] = []
    latest, until = -float("inf"), -float("inf")
    both: list[Iterator[Move | Message]] = [iter(moves), iter(messages)]
    for event in heapq.merge(*both, key=lambda one: one.ts or 0.0):
        assert event.ts is not None
        if (some_moves or some_messages) and (step == 0.0 or event.ts >= until):
            yield latest, some_moves, some_messages
            some_moves, some_messages = [], []
        if not (some_moves or some_messages):
            until = event.ts + step
        latest = max(latest, event.ts)
        if isinstance(event, Move):
            some_moves.append(event)
        else:
            some_messages.append(event)
    if some_moves or some_messages:
        yield latest, some_moves, some_messages


def _play(tracker: Tracker, now: float, moves: list[Move], messages: list[Message]) -> list[MoveChange]:
    """Ends first, then moves, then arrivals; the last move of a subscription in a step is the one that counts."""
    changes = tracker.advance(now)
    if moves:
        changes += tracker.move({one.id: one.region for one in moves})
    if messages:
        changes += tracker.arrive(messages)
    return changes


def _write(sink: IO[str], changes: list[MoveChange], now: float) -> None:
    for change in changes:
        record = {
            "subscription_id": change.subscription.id,
            "operation": "enter" if change.entered else "leave",
            "message_id": change.message.id,
            "ts": now,
        }
        sink.write(json.dumps(record, ensure_ascii=False) + "\n")
    sink.flush()
