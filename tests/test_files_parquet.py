"""Parquet: rows in pieces, times, types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.files import MESSAGES, FileError, Role, Row
from tests.rows_read import read, reasons


def read_table(path: Path, columns: dict[str, Any], role: Role = MESSAGES) -> list[Row]:
    pq.write_table(pa.table(columns), path)
    return read(path, role=role)


def test_parquet_gives_rows_numbered_from_1_without_nulls(tmp_path: Path) -> None:
    found = read_table(
        tmp_path / "m.parquet",
        {"id": [1, 2], "text": ["a", None], "lon": [1.5, None], "lat": [2.5, np.nan], "user": ["x", "y"]},
    )
    assert found[0] == Row(1, {"id": 1, "text": "a", "lon": 1.5, "lat": 2.5}, "", found[0].source)
    assert found[1].line == 2
    assert found[1].record is not None
    assert set(found[1].record) == {"id", "lat"}


@pytest.mark.parametrize("batch", [1, 1024])
def test_parquet_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr("nearcast.files.readers.PARQUET_ROWS", batch)
    columns = {"id": range(2000), "text": ["a"] * 2000, "lon": [1.0] * 2000, "lat": [1.0] * 2000}
    found = read_table(tmp_path / "m.parquet", columns)
    assert [row.line for row in found] == list(range(1, 2001))
    assert [row.record["id"] for row in found if row.record] == list(range(2000))


@pytest.mark.parametrize(
    ("column", "seconds"),
    [
        (pa.array([datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("ms")), 1.0),
        (pa.array([1_500_000_001], pa.timestamp("ns")), 1.500000001),
        (pa.array([datetime(1970, 1, 2, tzinfo=UTC)], pa.timestamp("us", tz="Asia/Tokyo")), 86400.0),
        (pa.array([date(1970, 1, 2)], pa.date32()), 86400.0),
        (pa.array([2**62], pa.timestamp("us")), 2.0**62 / 1e6),
        (pa.array([7], pa.int32()), 7),
        (pa.array(["1970-01-02"]), "1970-01-02"),
    ],
)
def test_times_of_parquet_are_seconds(tmp_path: Path, column: pa.Array, seconds: Any) -> None:
    found = read_table(tmp_path / "m.parquet", {"id": [1], "text": ["a"], "lon": [1], "lat": [1], "ts": column})
    assert found[0].record is not None
    assert found[0].record["ts"] == seconds


def test_other_types_of_parquet(tmp_path: Path) -> None:
    found = read_table(
        tmp_path / "m.parquet",
        {
            "id": pa.array(["a", "a"]).dictionary_encode(),
            "terms": pa.array([[1, 2], []], pa.list_(pa.int32())),
            "lon": pa.array([Decimal("1.5"), None], pa.decimal128(9, 6)),
            "lat": pa.array([2.5, 2.5], pa.float32()),
        },
    )
    assert found[0].record == {"id": "a", "terms": [1, 2], "lon": 1.5, "lat": 2.5}
    assert found[1].record == {"id": "a", "terms": [], "lat": 2.5}


def test_text_of_parquet_that_is_not_utf8_costs_only_its_row(tmp_path: Path) -> None:
    broken = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    found = read_table(tmp_path / "m.parquet", {"id": [1, 2, 3], "text": broken, "lon": [1.0] * 3, "lat": [1.0] * 3})
    assert reasons(found) == {2: "bytes that are not UTF-8"}
    assert [row.record["text"] for row in found if row.record] == ["a", "c"]


def test_parquet_without_the_columns_or_not_parquet(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"lon,lat or west,south,east,north is missing"):
        read_table(tmp_path / "m.parquet", {"id": [1], "text": ["a"]})
    with pytest.raises(FileError, match=r"m\.parquet: cannot be read \(Parquet"):
        read(tmp_path / "m.parquet", "id,text\n")
