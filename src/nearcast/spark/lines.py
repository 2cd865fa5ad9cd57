"""Records of JSON lines that are as they should be, as columns: their texts go to the encoder together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from nearcast.records import MAX_ID
from nearcast.spark.edge import EARLIEST, LATEST, SIDES


def is_plain(record: Mapping[str, Any]) -> bool:
    """Of the types that it should have: nothing that only `records` can judge."""
    identity, text, ts = record.get("id"), record.get("text"), record.get("ts")
    is_named = (type(identity) is str and 0 < len(identity) <= MAX_ID) or (
        type(identity) is int and -(2**63) <= identity < 2**63
    )
    return (
        is_named
        and type(text) is str
        and text != ""
        and _is_number(record.get("lon"))
        and _is_number(record.get("lat"))
        and (ts is None or (_is_number(ts) and EARLIEST <= ts < LATEST))
        and record.keys().isdisjoint((*SIDES, "ttl"))
    )


def _is_number(value: object) -> bool:
    return type(value) in (float, int) and -1e15 < value < 1e15  # type: ignore[operator]


def plain_columns(records: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Ids as text: in JSON each row may have another type."""
    return pa.RecordBatch.from_pydict(
        {
            "id": [str(record["id"]) for record in records],
            "text": [record["text"] for record in records],
            "lon": pa.array([float(record["lon"]) for record in records], pa.float64()),
            "lat": pa.array([float(record["lat"]) for record in records], pa.float64()),
            "ts": pa.array([record.get("ts") for record in records], pa.float64(), from_pandas=False),
        }
    )
