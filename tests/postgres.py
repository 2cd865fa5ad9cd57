"""A real PostgreSQL server for the tests, from the machine's own binaries; nothing is left behind."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """Folder of initdb and pg_ctl: on the PATH, or where Debian puts them."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += [Path(folder) for folder in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A server that listens on a socket only; the start of its URLs, to be followed by a database."""
    home = Path(tempfile.mkdtemp(prefix="nearcast-pg."))  # a socket's path must be short
    user = _not_root(home)
    data = home / "data"

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, capture_output=True, cwd=home, timeout=120)

    try:
        run(str(folder / "initdb"), "-D", str(data), "-U", "nearcast", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses= -k {home} -F -c max_connections=30"
        run(str(folder / "pg_ctl"), "-D", str(data), "-l", str(home / "log"), "-w", "-o", options, "start")
        try:
            yield f"postgresql://nearcast@/{{}}?host={home}"
        finally:
            run(str(folder / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _not_root(home: Path) -> str | None:
    """PostgreSQL refuses to run as root: as root, its own user or nobody runs it."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    name = "postgres" if "postgres" in names else "nobody"
    shutil.chown(home, name)
    return name
