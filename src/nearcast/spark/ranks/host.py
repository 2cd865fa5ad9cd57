"""The process of a machine that holds its shards: one window in memory for all of them, one thread for each.

Spark gives a task to whichever Python worker is free, and a worker that has never seen a shard would have to make it
anew. So tasks ask this process, through a socket in a folder that only its user may enter. Whoever asks first
starts it; it ends when nobody has asked for a while. It holds nothing that is not on storage.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from nearcast.errors import NearcastError
from nearcast.snapshot import HEADER
from nearcast.spark.ranks.machine import Machine
from nearcast.spark.ranks.shard import Shard

IDLE_SECONDS = 600.0
STARTING_SECONDS = 120.0
TRIES = 3
QUIT = "quit"

_started: list[subprocess.Popen[bytes]] = []  # by this process; looked at again, so that none stays a zombie


def ask(folder: Path, what: str, *arguments: Any) -> Any:
    """What the host of this folder answers; it is started where there is none, and again where it died."""
    place = _place(folder)
    for attempt in range(TRIES):
        try:
            with Client(str(place / "socket"), "AF_UNIX", authkey=_key(place)) as connection:
                connection.send((what, *arguments))
                is_well, answer = connection.recv()
        except (OSError, EOFError):
            if attempt == TRIES - 1:
                raise
            _start(folder, place)
            continue
        if not is_well:
            raise NearcastError(f"ranking of {folder} failed:\n{answer}")
        return answer
    raise AssertionError


def stop(folder: Path) -> None:
    """End the host of this folder on this machine, if there is one."""
    place = _place(folder)
    try:
        with Client(str(place / "socket"), "AF_UNIX", authkey=_key(place)) as connection:
            connection.send((QUIT,))
            connection.recv()
    except (OSError, EOFError):
        pass


def _place(folder: Path) -> Path:
    """Where the socket is: short, because the names of sockets must be."""
    name = hashlib.sha256(str(Path(folder).absolute()).encode()).hexdigest()[:24]
    home = Path(tempfile.gettempdir()) / f"nearcast-{os.getuid()}"
    home.mkdir(exist_ok=True, mode=0o700)
    if home.stat().st_uid != os.getuid() or home.stat().st_mode & 0o077:
        raise NearcastError(f"{home} must belong to this user alone")
    place = home / name
    place.mkdir(exist_ok=True)
    return place


def _key(place: Path) -> bytes:
    path = place / "key"
    if not path.exists():
        part = place / f".key.{secrets.token_hex(4)}"
        part.touch(mode=0o600)
        part.write_bytes(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):  # whoever comes second takes the first one's
            os.link(part, path)
        part.unlink()
    return path.read_bytes()


def _start(folder: Path, place: Path) -> None:
    """One process, however many ask for it."""
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _answers(place):
            return
        (place / "socket").unlink(missing_ok=True)
        with (place / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "nearcast.spark.ranks.host", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _started[:] = [*(child for child in _started if child.poll() is None), process]
        until = time.monotonic() + STARTING_SECONDS
        while not _answers(place):
            if process.poll() is not None or time.monotonic() > until:
                raise NearcastError(f"the host of {folder} did not start, see {place / 'log'}")
            time.sleep(0.05)


def _answers(place: Path) -> bool:
    try:
        with Client(str(place / "socket"), "AF_UNIX", authkey=_key(place)) as connection:
            connection.send(("ping",))
            return bool(connection.recv()[0])
    except (OSError, EOFError):
        return False


class Host:
    """Shards by number; a shard answers one question at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._all = Lock()
        self._begin()
        self.last_asked = time.monotonic()

    def _begin(self) -> None:
        self._plan = self._plan_there()
        self._machine = Machine(self._folder)
        self._shards: dict[int, Shard] = {}
        self._locks: defaultdict[int, Lock] = defaultdict(Lock)

    def _plan_there(self) -> tuple[int, int]:
        """Which plan lies in the folder: it may have been removed and begun anew."""
        told = (self._folder / "plan" / HEADER).stat()
        return told.st_ino, told.st_mtime_ns

    def answer(self, what: str, *arguments: Any) -> Any:
        if what == "ping":
            return os.getpid()
        batch, number, *rest = arguments
        with self._all:
            if self._plan_there() != self._plan:
                self._begin()
            machine, shards, lock = self._machine, self._shards, self._locks[number]
        with lock:
            shard = shards.get(number)
            if shard is None:
                shard = shards[number] = Shard(machine, number)
            if what == "probe":
                return shard.probe(batch)
            told = shard.settle(batch, *rest)
            ids = machine.book(batch).ids(told.wish), machine.message_ids(told.message)
            return told, *ids, machine.message_ids(told.because)

    def converse(self, connection: Connection) -> None:
        with connection:
            try:
                asked = connection.recv()
                self.last_asked = time.monotonic()
                if asked[0] == QUIT:
                    connection.send((True, None))
                    os._exit(0)
                try:
                    connection.send((True, self.answer(*asked)))
                except Exception:  # told to whoever asked
                    connection.send((False, traceback.format_exc()))
            except (OSError, EOFError):
                pass
            self.last_asked = time.monotonic()


def main(folder: Path) -> None:
    place = _place(folder)
    with Listener(str(place / "socket"), "AF_UNIX", authkey=_key(place)) as listener:
        host = Host(folder)
        Thread(target=_end_when_idle, args=(host,), daemon=True).start()
        while True:
            try:
                connection = listener.accept()
            except (OSError, EOFError):  # somebody who did not know the key, or left
                continue
            Thread(target=host.converse, args=(connection,), daemon=True).start()


def _end_when_idle(host: Host) -> None:
    while time.monotonic() - host.last_asked < IDLE_SECONDS:
        time.sleep(1.0)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
