"""Rows of Spark published into a running server.

Every row of a batch that Spark commits has been published at least once. It has been published twice if its task,
or the whole batch, was tried again after the server had taken it: the message is the same then, with another number
in the log. Rows of a partition are published in their order.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from nearcast.client import Accepted, ServerError
from nearcast.errors import NearcastError
from nearcast.files import MESSAGES
from nearcast.files.readers import plain_column
from nearcast.spark.edge import RAW, is_raw
from nearcast.spark.server import Server, number

AT_A_TIME = 10_000
BYTES_AT_A_TIME = 8 << 20
"""Of one request; a server takes 100,000 rows and 32 MiB unless told otherwise."""

NOTHING_USABLE = 422


@dataclass(frozen=True, slots=True)
class Published(WriterCommitMessage):
    """What became of the rows of a partition."""

    accepted: int
    rejected: int


class Publisher:
    """A batch or a stream of rows with the columns of a message (and `payload`), or with JSON in `value`."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise NearcastError("mode overwrite given; a log only grows: append needed")
        self._server = Server.of(options)
        self._rows = number(options, "rowsPerRequest", 1) or AT_A_TIME
        self._aside = options.get("rejected")
        if not is_raw(schema.names):
            MESSAGES.check(schema.names, "the table")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        accepted = rejected = 0
        for batch in iterator:
            for lines in requests(lines_of(batch), self._rows):
                told = self._publish(lines)
                accepted, rejected = accepted + told.accepted, rejected + told.rejected
                self._keep_aside(lines, told)
        return Published(accepted, rejected)

    def _publish(self, lines: list[bytes]) -> Accepted:
        """Where not one row can be used the server answers with an error: it is the reason of all then."""
        try:
            return self._server.ask(lambda client: client.publish_lines(b"\n".join(lines)))
        except ServerError as error:
            if error.status != NOTHING_USABLE:
                raise
            reasons = [{"line": line, "reason": str(error)} for line in range(1, len(lines) + 1)]
            return Accepted(0, len(lines), reasons, None, None, 0)

    def _keep_aside(self, lines: list[bytes], told: Accepted) -> None:
        """Rows that the server refused, with its reasons; whole files, each under a name of its own."""
        if self._aside is None or not told.rejected:
            return
        rows = [
            {"reason": one["reason"], "source": lines[one["line"] - 1].decode(errors="backslashreplace")}
            for one in told.rejections
        ]
        untold = told.rejected - len(rows)
        if untold:
            rows.append({"reason": f"{untold:,} more rows that the server did not name", "source": ""})
        folder = Path(self._aside)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{uuid.uuid4().hex}"
        part.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        os.replace(part, folder / f"{part.name[1:]}.json")


class BatchPublisher(Publisher, DataSourceArrowWriter):
    """`df.write.format("nearcast").mode("append")`."""


class StreamPublisher(Publisher, DataSourceStreamArrowWriter):
    """`df.writeStream.format("nearcast")`."""


def requests(lines: list[bytes], rows: int) -> Iterator[list[bytes]]:
    """Lines in lots that the server takes at a time."""
    lot: list[bytes] = []
    size = 0
    for line in lines:
        if lot and (len(lot) >= rows or size + len(line) > BYTES_AT_A_TIME):
            yield lot
            lot, size = [], 0
        lot.append(line)
        size += len(line)
    if lot:
        yield lot


def lines_of(batch: pa.RecordBatch) -> list[bytes]:
    """A line of JSON for each row; blank ones are no rows."""
    if is_raw(batch.schema.names):
        values = batch[RAW].cast(pa.binary()).to_pylist()
        return [b" ".join(line.splitlines()) for line in values if line is not None and line.strip()]
    names = [name for name in batch.schema.names if name in (*MESSAGES.columns, "payload")]
    plain = pa.record_batch([plain_column(batch[name], name) for name in names], names)
    return [_line(record) for record in plain.to_pylist()]


def _line(record: Mapping[str, Any]) -> bytes:
    given = {name: value for name, value in record.items() if value is not None}
    if isinstance(given.get("payload"), str):
        given["payload"] = _payload(given["payload"])
    return json.dumps(given, ensure_ascii=False, default=str).encode()


def _payload(text: str) -> Any:
    """JSON, as the log gives it out; anything else is left for the server to refuse."""
    try:
        return json.loads(text)
    except ValueError:
        return text
