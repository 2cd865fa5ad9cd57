"""Messages with their words as text: what statistics are made from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from nearcast.errors import NearcastError, RowError
from nearcast.files import MESSAGES, Row
from nearcast.records import read_message
from nearcast.spark.edge import refused, rows_of
from nearcast.spark.storage import Settings
from nearcast.text import Analyzer, analyzer

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("words", pa.list_(pa.string())),
        *((side, pa.float64()) for side in ("west", "south", "east", "north")),
        ("ts", pa.float64()),
        ("reason", pa.string()),
        ("source", pa.string()),
    ]
)


def words_of(batch: pa.RecordBatch, settings: Settings) -> pa.RecordBatch:
    """One row of `SCHEMA` for each row: a message, or a reason."""
    analysis = analyzer(settings.analyzer)
    rows = [_record(row, settings, analysis) for _, row in rows_of(batch, MESSAGES)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _record(row: Row, settings: Settings, analysis: Analyzer) -> dict[str, Any]:
    try:
        if row.record is None:
            raise RowError(row.reason)
        message = read_message(row.record, settings.space, analysis)
    except NearcastError as error:
        return refused(row, str(error))._asdict()
    place = message.place
    return {
        "id": str(message.id),
        "words": list(dict.fromkeys(token.word for token in message.tokens)),
        "west": place.west,
        "south": place.south,
        "east": place.east,
        "north": place.north,
        "ts": message.ts,
    }
