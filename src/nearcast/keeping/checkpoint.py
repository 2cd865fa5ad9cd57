"""A checkpoint: the index as a snapshot, and which subscription sits in which slot. Only makes opening quicker.

Two snapshots in one folder that is put in place by a rename. The lexicon is in the store; a checkpoint says how
many words it had and their checksum, so that an index never meets a lexicon that is not its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearcast import indexes, snapshot
from nearcast.errors import SnapshotError
from nearcast.lexicon import Lexicon

NONE = -1
"""In place of a registration's number: the slot is free."""


def save(folder: Path, index: indexes.EntryIndex, numbers: NDArray[np.int64], lexicon: Lexicon) -> None:
    """`numbers[slot]` is the registration in each slot. An earlier checkpoint stays until this one is whole."""
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        index.save(beside / "index")
        meta = {"words": len(lexicon), "crc32": _checksum(lexicon, len(lexicon))}
        snapshot.save(beside / "slots", {"numbers": numbers}, meta)
        if folder.exists():
            os.rename(folder, beside / "old")
        os.rename(beside / "index", _made(folder) / "index")
        os.rename(beside / "slots", folder / "slots")  # last: without it there is no checkpoint
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def load(folder: Path, lexicon: Lexicon) -> tuple[indexes.EntryIndex, NDArray[np.int64]] | None:
    """The index, mapped into memory, and its numbers by slot; None if there is none of this lexicon."""
    try:
        arrays, meta = snapshot.load(folder / "slots")
        n_words = int(meta["words"])
        if n_words > len(lexicon) or _checksum(lexicon, n_words) != meta["crc32"]:
            return None
        return indexes.load(folder / "index"), arrays["numbers"]
    except (SnapshotError, KeyError):
        return None


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _checksum(lexicon: Lexicon, n_words: int) -> int:
    return zlib.crc32("\n".join(lexicon.word(term) for term in range(n_words)).encode())
