"""A driver of rankings that dies with its Java at a chosen point of a chosen batch (see restarts.py)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearcast.files import MESSAGES, RANKED_WISHES
from nearcast.ranking import Window
from nearcast.spark import ONCE, FileSink, rank_stream, read, read_stream, session
from nearcast.spark.ranks import stream, truth
from nearcast.spark.sinks import Parts
from tests.spark.conftest import SHORT_LIVED

POINTS = ("numbered", "decided", "halfway", "written", "finished", "cleaning")
WINDOW = Window(count=30)


def die() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)


@dataclass(frozen=True)
class MortalParts(Parts):
    """The driver dies when a shard is written."""

    group: int

    def put(self, name: str, rows: pa.RecordBatch) -> None:
        Parts.put(self, name, rows)
        os.killpg(self.group, signal.SIGKILL)


class MortalSink(FileSink):
    """Dies while it writes, or when it has."""

    point = ""
    batch = -1

    def parts(self, batch: int) -> Parts | None:
        parts = FileSink.parts(self, batch)
        assert parts is not None
        is_time = (self.point, self.batch) == ("halfway", batch)
        return MortalParts(parts.folder, os.getpgrp()) if is_time else parts

    def close(self, rejected: Any, batch: int) -> None:
        FileSink.close(self, rejected, batch)
        if (self.point, self.batch) == ("written", batch):
            die()


def _mortal(point: str, batch: int) -> None:
    """Put death where it belongs."""
    MortalSink.point, MortalSink.batch = point, batch
    if point == "numbered":  # wishes and words of the batch are there, its messages are not
        _before(truth.Segment, "save", lambda _, path, *__: path.name == f"{batch:08d}")
    elif point == "decided":
        _before(stream, "write_settled", lambda *given: given[-2] == batch)
    elif point == "finished":  # Spark does not know yet
        _before(stream, "_clean", lambda _, done: done == batch)
    elif point == "cleaning":  # the first file of what is removed is gone
        _before(truth.shutil, "rmtree", lambda path, **_: _is_removed(Path(path)))


def _is_removed(path: Path) -> bool:
    if path.parent.name != "segments" or not (path / "header.json").exists():
        return False
    (path / "header.json").unlink()
    return True


def _before(place: Any, name: str, is_time: Callable[..., bool]) -> None:
    whole = getattr(place, name)

    def wrapped(*given: Any, **named: Any) -> Any:
        if is_time(*given, **named):
            die()
        return whole(*given, **named)

    setattr(place, name, wrapped)


def main(folder: Path, distribution: str, point: str, batch: int) -> None:
    _mortal(point, batch)
    spark = session("local[2,4]", settings=SHORT_LIVED)
    messages = read_stream(spark, str(folder / "posts"), MESSAGES, "json", maxFilesPerTrigger=1)
    wishes = read(spark, str(folder / "wishes.ndjson"), RANKED_WISHES)
    query = rank_stream(
        messages,
        wishes,
        MortalSink(folder / "out"),
        folder / "checkpoint",
        window=WINDOW,
        distribution=distribution,
        shards=3,
        trigger=ONCE,
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
