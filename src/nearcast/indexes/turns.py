"""Many may read an index at once, or one may change it: who waits for whom."""

from __future__ import annotations

from threading import Condition, Lock


class Turns:
    """Readers share a turn (`with turns.reading`); a writer has one to itself (`with turns.writing`).

    A waiting writer goes before readers that come later. Not to be nested: a reader that asks for a second turn
    may wait for a writer that waits for the first. One writer at a time: they have a lock of their own.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._readers = 0
        self._wanted = False  # a writer waits or writes
        self.reading, self.writing = _Reading(self), _Writing(self)

    def begin_reading(self) -> None:
        with self._lock:
            while self._wanted:
                self._changed.wait()
            self._readers += 1

    def end_reading(self) -> None:
        with self._lock:
            self._readers -= 1
            if self._wanted:
                self._changed.notify_all()

    def begin_writing(self) -> None:
        with self._lock:
            self._wanted = True
            while self._readers:
                self._changed.wait()

    def end_writing(self) -> None:
        with self._lock:
            self._wanted = False
            self._changed.notify_all()


class _Reading:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __enter__(self) -> None:
        self._turns.begin_reading()

    def __exit__(self, *_: object) -> None:
        self._turns.end_reading()


class _Writing:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __enter__(self) -> None:
        self._turns.begin_writing()

    def __exit__(self, *_: object) -> None:
        self._turns.end_writing()
