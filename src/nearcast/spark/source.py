"""The log of a running server as rows of Spark: an offset is a message's number in the log.

Ranges of numbers are read by workers, each by itself; the same range gives the same rows whenever it is read, as
long as the log keeps it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from nearcast.client import Logged
from nearcast.errors import NearcastError
from nearcast.spark.server import LATEST, Server, flag, number

AT_A_TIME = 10_000
"""Messages in one answer of the server, and the least that a partition is made of."""

MOST_PARTITIONS = 16

_NUMBERS = ("lon", "lat", "west", "south", "east", "north", "ts", "ttl")
ROWS = pa.schema(
    [
        ("seq", pa.int64()),
        ("accepted", pa.float64()),
        ("id", pa.string()),
        ("text", pa.string()),
        ("terms", pa.list_(pa.string())),
        *((name, pa.float64()) for name in _NUMBERS),
        ("payload", pa.string()),
    ]
)


class Range(InputPartition):
    """Messages with after < seq <= up_to."""

    def __init__(self, after: int, up_to: int) -> None:
        self.after, self.up_to = after, up_to


class _Log:
    """What the reader of a table and the reader of a stream share."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._server = Server.of(options)
        self._may_lose = not flag(options, "failOnDataLoss", True)
        self._from_now = options.get("after", "").lower() == LATEST
        self._after = None if self._from_now else number(options, "after", 0)
        self._up_to = number(options, "upTo", 0)

    def _ends(self) -> tuple[int, int]:
        """Behind which number the log begins, and its last."""
        told = self._piece(0, None, 0)
        return told.first - 1, told.last

    def _piece(self, after: int, up_to: int | None, limit: int = AT_A_TIME) -> Logged:
        return self._server.ask(lambda client: client.logged(after, up_to=up_to, limit=limit))

    def _start(self) -> int:
        first, last = self._ends()
        if self._from_now:
            return last
        return first if self._after is None else self._kept(self._after, first)

    def _kept(self, after: int, first: int) -> int:
        """`after`, unless messages behind it are gone."""
        if after < first and not self._may_lose:
            raise NearcastError(
                f"messages {after + 1} to {first} asked for; the log has forgotten them (retention). "
                "failOnDataLoss=false goes on with those that are kept"
            )
        return max(after, first)

    def _check_same(self, seen: int, last: int) -> None:
        if last < seen:
            raise NearcastError(
                f"message {seen} was read before; the log of {self._server.url} ends with {last}: is it another one?"
            )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        after = partition.after
        while after < partition.up_to:
            piece = self._piece(after, partition.up_to)
            self._kept(after, piece.first - 1)
            self._check_same(partition.up_to, piece.last)
            if piece.records:
                yield _rows(piece.records)
            after = piece.position


class LogReader(_Log, DataSourceReader):
    """What the log keeps now, or the part of it between the options `after` and `upTo`."""

    def partitions(self) -> list[Range]:
        last = self._ends()[1]
        return _ranges(self._start(), last if self._up_to is None else min(self._up_to, last))


class LogStreamReader(_Log, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        if self._up_to is not None:
            raise NearcastError("option upTo given; a stream has no end (spark.read has one)")
        self._most = number(options, "maxMessagesPerTrigger", 1)
        self._target: int | None = None  # of a trigger that ends

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"seq": self._start()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._most is None else ReadMaxRows(self._most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        first, last = self._ends()
        self._check_same(start["seq"], last)
        end = last if self._target is None else min(last, self._target)
        if isinstance(limit, ReadMaxRows):
            end = min(end, max(start["seq"], first) + limit.max_rows)
        return {"seq": max(start["seq"], end)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"seq": self._ends()[1]}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ends()[1]

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        if start["seq"] >= end["seq"]:
            return []
        return _ranges(self._kept(start["seq"], self._ends()[0]), end["seq"])


def _ranges(after: int, up_to: int) -> list[Range]:
    """About equal ranges, each worth an answer of the server."""
    n = max(0, up_to - after)
    parts = min(MOST_PARTITIONS, -(-n // AT_A_TIME))
    cuts = [after + n * i // parts for i in range(parts + 1)] if parts else []
    return [Range(low, high) for low, high in pairwise(cuts)]


def _rows(records: list[dict[str, Any]]) -> pa.RecordBatch:
    """Ids are text, as in every table made of JSON; a payload is its JSON."""
    columns = {field.name: [record.get(field.name) for record in records] for field in ROWS}
    columns["id"] = [str(identity) for identity in columns["id"]]
    columns["payload"] = [None if value is None else _dumps(value) for value in columns["payload"]]
    return pa.RecordBatch.from_pydict(columns, schema=ROWS)


_dumps = partial(json.dumps, ensure_ascii=False)
