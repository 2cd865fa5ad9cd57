"""Many may read an index at once, or one may change it: who waits for whom."""

from __future__ import annotations

from threading import Condition


class Turns:
    """Readers share a turn (`with turns.reading`); a writer has one to itself (`with turns.writing`).

    A waiting writer goes before readers that come later. Not to be nested: a reader that asks for a second turn
    may wait for a writer that waits for the first. One writer at a time: they have a lock of their own.

    A reader whom no writer meets takes no lock: it enters the list of those inside, then looks whether a writer
    wants in. A writer says that it wants in, then looks who is inside. Each of these steps is whole (Python
    promises it of `append`, `pop` and a name's value), so at least one of the two sees the other.
    """

    def __init__(self) -> None:
        self.inside: list[None] = []  # one for each reader, and for a moment those that are about to step back
        self.wanted = False  # a writer waits or writes; changed under the lock only
        self._changed = Condition()
        self.reading, self.writing = _Reading(self), _Writing(self)

    def step_back(self) -> None:
        """A reader that met a writer leaves, and comes in again behind it."""
        with self._changed:
            self.inside.pop()
            self._changed.notify_all()
            while self.wanted:
                self._changed.wait()
            self.inside.append(None)

    def tell(self) -> None:
        """To a writer that waits: somebody left."""
        with self._changed:
            self._changed.notify_all()

    def begin_writing(self) -> None:
        with self._changed:
            self.wanted = True
            while self.inside:
                self._changed.wait()

    def end_writing(self) -> None:
        with self._changed:
            self.wanted = False
            self._changed.notify_all()


class _Reading:
    def __init__(self, turns: Turns) -> None:
        self._turns, self._inside = turns, turns.inside

    def __enter__(self) -> None:
        self._inside.append(None)
        if self._turns.wanted:
            self._turns.step_back()

    def __exit__(self, *_: object) -> None:
        self._inside.pop()
        if self._turns.wanted:
            self._turns.tell()


class _Writing:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __enter__(self) -> None:
        self._turns.begin_writing()

    def __exit__(self, *_: object) -> None:
        self._turns.end_writing()
