"""Many may read an index at once, or one may change it: who waits for whom."""

from __future__ import annotations

from threading import Condition, Lock


class Turns:
    """Readers share a turn (`with turns.reading`); a writer has one to itself (`with turns.writing`).

    A waiting writer goes before readers that come later, and at its end lets in all that came meanwhile, before it
    or another one may write again: nobody waits for more than one turn of the other side. Not to be nested: a reader
    that asks for a second turn may wait for a writer that waits for the first. One writer at a time: they have a lock
    of their own.

    A reader whom no writer meets takes no lock: it enters the list of those inside, then looks whether a writer
    wants in. A writer says that it wants in, then looks who is inside. Each of these steps is whole (Python
    promises it of `append`, `pop` and a name's value), so at least one of the two sees the other.
    """

    def __init__(self) -> None:
        self.inside: list[None] = []  # one for each reader, and for a moment those that are about to step back
        self.wanted = False  # a writer waits or writes; changed under the lock only
        self._lock = Lock()
        self._left, self._ended = Condition(self._lock), Condition(self._lock)  # a reader left; a writer's turn ended
        self._waiting = 0  # readers that wait for the end of a writer's turn
        self._turn = 0  # of writers: how many have ended
        self.reading, self.writing = _Reading(self), _Writing(self)

    def step_back(self) -> None:
        """A reader that met a writer leaves, and is let in again at the end of its turn."""
        with self._lock:
            self.inside.pop()
            self._left.notify()
            if not self.wanted:
                self.inside.append(None)
                return
            self._waiting += 1
            self._wait_for_end(self._turn)

    def _wait_for_end(self, turn: int) -> None:
        try:
            while self._turn == turn:
                self._ended.wait()
        except BaseException:  # interrupted: whoever let it in must not wait for it to leave
            if self._turn == turn:
                self._waiting -= 1
            else:
                self.inside.pop()
                self._left.notify()
            raise

    def tell(self) -> None:
        """To a writer that waits: somebody left."""
        with self._lock:
            self._left.notify()

    def begin_writing(self) -> None:
        with self._lock:
            self.wanted = True
            while self.inside:
                self._left.wait()

    def end_writing(self) -> None:
        """Those that waited are inside from now on, also before they wake up."""
        with self._lock:
            self.wanted = False
            self.inside.extend([None] * self._waiting)
            self._waiting = 0
            self._turn += 1
            self._ended.notify_all()


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
