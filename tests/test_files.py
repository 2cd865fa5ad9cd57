"""All readers of files, and the side file for rows that cannot be used."""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nearcast.files import MESSAGES, FileError, Rejections, Row, in_batches, open_rows, rows, write_records
from tests.rows_read import GOOD, POINT, collection, feature, lines_of, read

# -- all readers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["m.txt", "m", "m.parquet.gz"])
def test_the_ending_says_what_a_file_is(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileError, match=r"one of \.parquet, \.csv, \.ndjson, \.jsonl, \.geojson, \.json needed"):
        read(tmp_path / name, "")


@pytest.mark.parametrize("name", ["none.ndjson", "folder.csv"])
def test_a_file_that_is_not_there_or_no_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileError, match="cannot be read"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["m.ndjson", "m.csv", "m.parquet", "m.geojson"])
def test_position_ends_at_size(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "m.geojson":
        path.write_text(collection(feature(POINT, id=1, text="a")))
    else:
        records = [{"id": "a", "text": "ramen", "lon": 1.0, "lat": 2.0}] * 5
        write_records(path, records, ("id", "text", "lon", "lat"))
    with open_rows(path, MESSAGES) as reader:
        assert reader.position == 0
        list(reader)
        assert reader.position == reader.size


def test_batches_end_by_number_or_by_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BATCH_TEXT", 10)
    texts = ["a", "b", "c", "d" * 10, "e", None, "f" * 9]
    found = in_batches((Row(n, {"text": text} if text else None) for n, text in enumerate(texts)), 3)
    assert [[row.line for row in batch] for batch in found] == [[0, 1, 2], [3], [4, 5, 6]]


# -- rejections -----------------------------------------------------------------------------------------


def test_rejections_tell_file_line_reason_and_row(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    with Rejections(path) as rejections:
        rejections.add("m.csv", Row(3, None, "", "1,2"), "two fields")
        rejections.add("m.csv", Row(4, {}, "", {"lat": float("nan"), "t": datetime(2026, 1, 1), "b": b"x"}), "bad")
        rejections.add("m.csv", Row(5, {}, "", {"id": "\ud800"}), "half\nof")
        rejections.add("m.csv", Row(6, None, "", "x" * 20_000), "long")
        rejections.add("m.csv", Row(7, {}, "", {"deep": deep}), "deep")
        rejections.add("m.csv", Row(8, None), "nothing to show")
        assert not path.exists()
    assert rejections.count == 6
    found = lines_of(path)
    assert found[0] == {"file": "m.csv", "line": 3, "reason": "two fields", "raw": "1,2"}
    assert found[1]["record"] == {"lat": "nan", "t": "2026-01-01 00:00:00", "b": "b'x'"}
    assert found[2]["record"] == {"id": "\ud800"}
    assert len(found[3]["raw"]) == 10_001
    assert "record" not in found[4]
    assert found[5] == {"file": "m.csv", "line": 8, "reason": "nothing to show"}


def test_without_rejections_there_is_no_file_not_even_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    path.write_text("old")
    with Rejections(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_rejections_of_a_failed_run_are_dropped(tmp_path: Path) -> None:
    with suppress(RuntimeError), Rejections(tmp_path / "r.ndjson") as rejections:
        rejections.add("m", Row(1, None), "bad")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_rejections_may_go_nowhere(tmp_path: Path) -> None:
    with Rejections(Path("/dev/null")) as rejections:
        rejections.add("m", Row(1, None), "bad")
    assert not Path("/dev/null").is_file()


def test_rejections_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"), Rejections(tmp_path / "no" / "r") as rejections:
        rejections.add("m", Row(1, None), "bad")


def test_an_old_side_file_that_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "r.ndjson").write_text("old")
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(FileError, match=r"cannot be removed \(Permission denied\)"), Rejections(tmp_path / "r.ndjson"):
        pass


def test_standard_input_is_ndjson(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    with open_rows(Path("-"), MESSAGES) as reader:
        assert (reader.size, reader.file) == (None, "-")
        assert [row.record for row in reader] == [json.loads(GOOD)]
