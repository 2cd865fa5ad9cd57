"""CSV: fields as written, lines that are too long, quotes that never end."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.files import MESSAGES, SUBSCRIPTIONS, FileError, Role, rows
from tests.rows_read import read, reasons

HEADER = "id,text,lon,lat\n"


def test_csv_keeps_every_field_as_written(tmp_path: Path) -> None:
    body = '007,"a ""b"", c\r\nd\re",1.50, 2 \n8,x\x00y,,3\n'
    found = read(tmp_path / "m.csv", "\ufeff" + HEADER + body)
    assert [row.record for row in found] == [
        {"id": "007", "text": 'a "b", c\r\nd\re', "lon": "1.50", "lat": " 2 "},
        {"id": "8", "text": "x\x00y", "lat": "3"},  # an empty field is no value
    ]
    assert [row.line for row in found] == [2, 4]


def test_csv_leaves_out_columns_that_nobody_reads_and_blank_lines(tmp_path: Path) -> None:
    found = read(tmp_path / "m.CSV", "\nuser, id ,text,lon,lat\n\nbo,1,a,2,3\n\n")
    assert [row.record for row in found] == [{"id": "1", "text": "a", "lon": "2", "lat": "3"}]
    assert found[0].line == 4


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,a,2", "3 fields given; the header has 4"),
        ("1,a,2,3,4", "5 fields given; the header has 4"),
        ('1,"a"b,2,3', "not CSV: ',' expected after '\"'"),
        ("1,a\rb,2,3", "not CSV: new-line character"),
        (b"1,\xff,2,3", "bytes that are not UTF-8"),
        ('1,"open\n2,"b",2,3', "(lines 2 to 3)"),
    ],
)
def test_a_bad_csv_row_has_a_reason_and_the_next_is_served(tmp_path: Path, row: bytes | str, reason: str) -> None:
    bad = row.encode() if isinstance(row, str) else row
    found = read(tmp_path / "m.csv", HEADER.encode() + bad + b"\n9,good,1,2\n")
    assert found[0].line == 2
    assert reason in found[0].reason
    assert found[0].source.encode(errors="replace")[:2] == b"1,"
    assert [row.record for row in found[1:]] == [{"id": "9", "text": "good", "lon": "1", "lat": "2"}]


def test_a_quotation_mark_that_is_never_closed_is_one_rejected_row(tmp_path: Path) -> None:
    found = read(tmp_path / "m.csv", HEADER + '1,a,2,3\n2,"open,2,3\n3,c,2,3\n')
    assert reasons(found) == {3: "not CSV: unexpected end of data (lines 3 to 4)"}


def test_long_fields_and_lines_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * 500_000  # the csv module's own limit is 131,072
    assert read(tmp_path / "m.csv", f"{HEADER}1,{long},2,3\n")[0].record["text"] == long  # type: ignore[index]
    monkeypatch.setattr(rows, "MAX_LINE", 1000)
    found = read(tmp_path / "m.csv", f"{HEADER}1,{long},2,3\n2,b,2,3\n")
    assert "bytes in one line" in found[0].reason
    assert len(found[0].source) <= 1000
    assert found[1].record is not None


@pytest.mark.parametrize(
    ("content", "role", "reason"),
    [
        ("", MESSAGES, "id is missing. Columns given: none. Messages need: id; text or terms; lon,lat or west,"),
        ("1,ramen,2,3\n", MESSAGES, "id is missing. Columns given: 1, ramen, 2, 3."),
        ("id,text,lon\n", MESSAGES, "lon,lat or west,south,east,north is missing"),
        ("id,text,latitude,longitude\n", MESSAGES, "Columns given: id, text, latitude, longitude"),
        ("id;text;lon;lat\n", MESSAGES, "id is missing"),
        ("id,region\n", SUBSCRIPTIONS, "expression or terms is missing"),
        ("id,terms,lon,lat\n", SUBSCRIPTIONS, "region or west,south,east,north or lon,lat,radius_m is missing"),
        ("id,id,text,lon,lat\n", MESSAGES, "column 'id' is there 2 times"),
        ('"id,text\n', MESSAGES, "the header cannot be read"),
        (b"id,te\xffxt\n", MESSAGES, "the header cannot be read (bytes that are not UTF-8)"),
    ],
)
def test_a_header_is_needed(tmp_path: Path, content: bytes | str, role: Role, reason: str) -> None:
    with pytest.raises(FileError) as caught:
        read(tmp_path / "m.csv", content, role)
    assert reason in str(caught.value)


@given(st.lists(st.tuples(*[st.text(st.characters(codec="utf-8"), max_size=8)] * 4), max_size=5))
def test_csv_written_by_python_comes_back(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, ...]]
) -> None:
    names = ("id", "text", "lon", "lat")
    text = io.StringIO(newline="")
    csv.writer(text).writerows([names, *table])
    found = read(tmp_path_factory.getbasetemp() / "any.csv", text.getvalue())
    wanted = [{n: v for n, v in zip(names, fields, strict=True) if v} for fields in table]
    assert [row.record for row in found] == wanted
