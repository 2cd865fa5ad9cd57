"""The side file: every row that was not served, where it stands and why."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from nearcast.files.rows import FileError, Row
from nearcast.files.writers import complete

LONGEST_RAW = 10_000
"""Characters shown of a row that is no record."""


class Rejections:
    """NDJSON of `file`, `line`, `reason` and `record` (or `raw`, where there is no record to show).

    The file exists only if there are any; one that an earlier run left is removed at the start, so that it
    cannot be taken for this run's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._handle: BinaryIO | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        try:
            if self.path.is_file():
                self.path.unlink()
        except OSError as error:
            raise FileError(f"{self.path}: cannot be removed ({error.strerror})") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.__exit__(kind, error, trace)

    def add(self, file: str, row: Row, reason: str) -> None:
        self.count += 1
        shown = {"file": file, "line": row.line, "reason": reason, **shown_source(row.source)}
        line = json.dumps(shown, ensure_ascii=False, default=str) + "\n"
        # Half a surrogate pair cannot be written; with a backslash it is what JSON escapes it to.
        self._opened().write(line.encode(errors="backslashreplace"))

    def _opened(self) -> BinaryIO:
        if self._handle is None:
            is_special = self.path.exists()  # /dev/null: a file was removed at the start
            target = self.path if is_special else self._closing.enter_context(complete(self.path))
            self._handle = self._closing.enter_context(target.open("wb"))
        return self._handle


def shown_source(source: Any) -> dict[str, Any]:
    if isinstance(source, str):
        return {"raw": source if len(source) <= LONGEST_RAW else source[:LONGEST_RAW] + "…"}
    if not isinstance(source, Mapping):
        return {}
    record = {name: _printable(value) for name, value in source.items()}
    try:
        json.dumps(record, allow_nan=False, default=str)
    except (ValueError, RecursionError):
        return {}
    return {"record": record}


def _printable(value: Any) -> Any:
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
