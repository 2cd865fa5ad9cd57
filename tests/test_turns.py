"""Turns: readers together, a writer alone, nobody forgotten."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from nearcast.indexes.turns import Turns


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads change so often that they meet everywhere."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_reader_never_sees_half_a_change(hasty_threads: None) -> None:
    turns, pair, torn = Turns(), [0, 0], []

    def read() -> None:
        for _ in range(1500):
            with turns.reading:
                first = pair[0]
                sum(range(20))
                torn.append(first != pair[1])

    def write() -> None:
        for _ in range(400):
            with turns.writing:
                pair[0] += 1
                sum(range(20))
                pair[1] += 1

    threads = [threading.Thread(target=work) for work in (read, read, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert len(torn) == 4500
    assert not any(torn)
    assert pair == [400, 400]
    assert turns.inside == []


def test_readers_share_and_a_writer_waits_for_the_last() -> None:
    turns, order = Turns(), []
    within, wanted = threading.Barrier(2), threading.Event()

    def read() -> None:
        with turns.reading:
            within.wait(60)
            wanted.wait(60)
            order.append("read")

    def write() -> None:
        with turns.writing:
            order.append("write")

    reader = threading.Thread(target=read)
    reader.start()
    with turns.reading:
        within.wait(60)  # both are inside
    writer = threading.Thread(target=write)
    writer.start()
    wanted.set()
    reader.join(60)
    writer.join(60)
    assert order == ["read", "write"]


def test_an_error_inside_ends_the_turn() -> None:
    turns = Turns()
    for turn in (turns.reading, turns.writing):
        with pytest.raises(ValueError, match="no"), turn:
            raise ValueError("no")
    with turns.writing:
        assert turns.inside == []


def test_a_writer_lets_those_in_that_waited_before_it_writes_again() -> None:
    turns, order = Turns(), []

    def read() -> None:
        with turns.reading:
            order.append("read")

    turns.begin_writing()
    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    while turns._waiting < len(readers):
        time.sleep(0.001)
    turns.end_writing()
    with turns.writing:  # at once: none of them may have woken up yet
        order.append("write")
    for reader in readers:
        reader.join(60)
    assert order == ["read", "read", "read", "write"]
    assert turns.inside == []


def test_an_interrupted_reader_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    with turns.writing:
        monkeypatch.setattr(turns._ended, "wait", _interrupt)
        with pytest.raises(KeyboardInterrupt), turns.reading:
            pass
    with turns.writing:
        assert turns.inside == []


def _interrupt() -> None:
    raise KeyboardInterrupt
