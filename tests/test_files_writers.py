"""Files that are written: whole or not there; pairs and records come back."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.columns import Pairs
from nearcast.files import SUBSCRIPTIONS, FileError, check_apart, complete, open_pairs, write_records, writers
from nearcast.model import Id
from tests.rows_read import lines_of, pairs, read


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("before")
    with suppress(RuntimeError), complete(out) as part:
        part.write_text("half")
        raise RuntimeError
    assert out.read_text() == "before"
    with complete(out) as part:
        part.write_text("all")
        assert out.read_text() == "before"
    assert out.read_text() == "all"
    assert list(tmp_path.iterdir()) == [out]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with complete(tmp_path / "link") as part:
        part.write_text("all")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "all"


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot be written \(No such file"), complete(tmp_path / "no" / "x"):
        pass
    with pytest.raises(FileError, match="is not a file"), complete(tmp_path):
        pass
    with pytest.raises(FileError, match=r"cannot be written \(No space"), complete(tmp_path / "x"):
        raise OSError(28, "No space left on device")


def test_files_must_be_apart(tmp_path: Path) -> None:
    check_apart(a=tmp_path / "a", b=tmp_path / "b", c=Path("-"), d=Path("-"))
    with pytest.raises(FileError, match=r"given as messages and as out; two files needed"):
        check_apart(messages=tmp_path / "a", out=tmp_path / "x" / ".." / "a")


def write_pairs(out: Path, slots: list[Id], *batches: tuple[list[Id], Pairs]) -> None:
    with open_pairs(out) as writer:
        writer.begin(slots)
        for ids, found in batches:
            writer.write(ids, found)
        assert writer.count == sum(len(found.slot) for _, found in batches)


def read_pairs(out: Path) -> list[tuple[Any, Any]]:
    if out.suffix == ".ndjson":
        return [(line["message_id"], line["subscription_id"]) for line in lines_of(out)]
    if out.suffix == ".csv":
        with out.open(newline="") as handle:
            return [(row["message_id"], row["subscription_id"]) for row in csv.DictReader(handle)]
    table = pq.read_table(out)
    return list(zip(table["message_id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_pairs_of_text_ids(tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"p.{ending}"
    odd = 'a "b",\nc\u2028 é'
    write_pairs(out, ["x", odd], (["m"], pairs((0, 1), (0, 0))), (["n", odd], pairs((1, 0))), (["o"], pairs()))
    assert read_pairs(out) == [("m", odd), ("m", "x"), (odd, "x")]


def test_integer_ids_stay_integers(tmp_path: Path) -> None:
    batches = [([5, -(2**63)], pairs((1, 0))), ([6], pairs((0, 1)))]
    for ending in ("ndjson", "parquet"):
        write_pairs(tmp_path / f"p.{ending}", [1, 2**63 - 1], *batches)
        assert read_pairs(tmp_path / f"p.{ending}") == [(-(2**63), 1), (6, 2**63 - 1)]
    assert pq.read_schema(tmp_path / "p.parquet").types == [pa.int64(), pa.int64()]
    write_pairs(tmp_path / "p.csv", [1, 2], *batches)
    assert (tmp_path / "p.csv").read_text() == f"message_id,subscription_id\n{-(2**63)},1\n6,2\n"


def test_the_first_text_id_turns_a_column_of_parquet_to_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "ROW_GROUP", 2)
    out = tmp_path / "p.parquet"
    write_pairs(out, [1, "b"], ([5, 6], pairs((0, 0), (1, 1), (1, 0))), ([7, "x"], pairs((0, 0))), ([8], pairs((0, 1))))
    assert read_pairs(out) == [("5", "1"), ("6", "b"), ("6", "1"), ("7", "1"), ("8", "b")]
    assert list(tmp_path.iterdir()) == [out]


def test_ids_of_messages_without_a_match_count_for_the_type(tmp_path: Path) -> None:
    write_pairs(tmp_path / "p.parquet", [1], (["x"], pairs()))
    assert pq.read_schema(tmp_path / "p.parquet").types == [pa.string(), pa.int64()]


def test_small_batches_share_a_row_group(tmp_path: Path) -> None:
    write_pairs(tmp_path / "p.parquet", [1], *[([n], pairs((0, 0))) for n in range(100)])
    assert pq.ParquetFile(tmp_path / "p.parquet").num_row_groups == 1


def test_mixed_ids_in_ndjson_stay_as_they_are(tmp_path: Path) -> None:
    write_pairs(tmp_path / "p.ndjson", [1, "1"], ([2, "2"], pairs((0, 1), (1, 0))))
    assert read_pairs(tmp_path / "p.ndjson") == [(2, "1"), ("2", 1)]


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_no_pairs_still_make_a_file_and_a_failure_makes_none(tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"p.{ending}"
    with pytest.raises(RuntimeError), open_pairs(out):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    write_pairs(out, [])
    assert read_pairs(out) == []


def test_pairs_need_an_ending(tmp_path: Path) -> None:
    with (
        pytest.raises(FileError, match=r"one of \.parquet, \.csv, \.ndjson, \.jsonl needed"),
        open_pairs(tmp_path / "pairs.xlsx"),
    ):
        pass


RECORDS = [
    {"id": "a", "expression": 'x "y z"', "lon": 1.5, "lat": 2.0, "radius_m": 5.0},
    {"id": "b", "expression": "é,\n", "west": 1.0, "south": 0.0, "east": 2.0, "north": 3.0},
]


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_records_come_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"s.{ending}"
    write_records(path, RECORDS, SUBSCRIPTIONS.columns[:2] + SUBSCRIPTIONS.columns[4:11])
    found = [row.record for row in read(path, role=SUBSCRIPTIONS)]
    as_text = [{name: str(value) for name, value in record.items()} for record in RECORDS]
    assert found == (as_text if ending == "csv" else RECORDS)
