"""Files: which rows come out, with which line and reason; and that what is written is whole or not there."""

from __future__ import annotations

import csv
import io
import json
import sys
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import indexes
from nearcast.columns import MessageBatch, Pairs, SubscriptionColumns
from nearcast.errors import RowError
from nearcast.files import (
    MESSAGES,
    SUBSCRIPTIONS,
    Endings,
    FileError,
    Rejections,
    Role,
    Row,
    Wishes,
    check_apart,
    complete,
    geojson,
    in_batches,
    open_pairs,
    open_rows,
    rows,
    write_records,
    writers,
)
from nearcast.geo import Circle, box, earth, from_geojson, to_geojson
from nearcast.lexicon import Lexicon
from nearcast.model import Id
from nearcast.records import read_message, read_subscription
from nearcast.text import analyzer

GOOD = '{"id": 1, "text": "ramen", "lon": 1, "lat": 2}'


def read(path: Path, content: bytes | str | None = None, role: Role = MESSAGES) -> list[Row]:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with open_rows(path, role) as reader:
        return list(reader)


def reasons(found: list[Row]) -> dict[int, str]:
    return {row.line: row.reason for row in found if row.record is None}


# -- NDJSON ---------------------------------------------------------------------------------------------


def test_ndjson_gives_objects_with_their_lines_and_skips_blank_ones(tmp_path: Path) -> None:
    found = read(tmp_path / "m.ndjson", f"{GOOD}\n\n \t\r\n{GOOD}\r\n{GOOD}")
    assert [row.line for row in found] == [1, 4, 5]
    assert all(row.record == json.loads(GOOD) for row in found)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": 1, "lat": NaN}', "NaN is no number"),
        ('{"id": 1, "lat": -Infinity}', "-Infinity is no number"),
        ('{"lat": 1, "lat": 2}', "the key 'lat' is given twice"),
        ('{"a": {"b": 1, "b": 1}}', "the key 'b' is given twice"),
        (GOOD + GOOD, "more data after the value (at character 47)"),
        (GOOD + ",", "more data after the value"),
        ("{'id': 1}", "not JSON: Expecting property name"),
        ('{"id": 1,}', "not JSON"),
        ('{"id": 01}', "not JSON"),
        ('{"text": "cut', "not JSON: Unterminated string"),
        ('{"text": "tab\there"}', "not JSON: Invalid control character"),
        ("[]", "a JSON array; an object with named fields needed"),
        ("null", "a JSON null; an object"),
        ("true", "a JSON boolean; an object"),
        ('"id"', "a JSON string; an object"),
        ("5", "a JSON number; an object"),
        (b'{"text": "\xff"}', "bytes that are not UTF-8 (at byte 11)"),
        (b'{"text": "\xed\xa0\x80"}', "bytes that are not UTF-8"),
        ('{"text": "\\ud83d"}', "half a surrogate pair"),
        ('{"\\udc00": 1}', "half a surrogate pair"),
        ("\ufeff" + GOOD, "a byte order mark; it may stand only at the start of the file"),
        ("[" * 100_000, "nested too deeply"),
        ('{"id": ' + "1" * 5000 + "}", "an integer with too many digits"),
        ("\x00", "not JSON"),
    ],
)
def test_a_bad_line_has_a_reason_and_the_next_is_served(tmp_path: Path, line: bytes | str, reason: str) -> None:
    bad = line.encode() if isinstance(line, str) else line
    found = read(tmp_path / "m.jsonl", b"\n".join([GOOD.encode(), bad, GOOD.encode()]))
    assert [row.line for row in found if row.record] == [1, 3]
    assert reason in found[1].reason
    assert isinstance(found[1].source, str)


def test_ndjson_takes_what_the_standard_allows(tmp_path: Path) -> None:
    text = '{"text": "\\ud83d\\ude00 \\u2028 \u2028 \\ud83d\\ude00", "x": 1e5, "": {}, "lat": -0.0}'
    found = read(tmp_path / "m.ndjson", "\ufeff" + text)
    assert found[0].record == {"text": "😀 \u2028 \u2028 😀", "x": 1e5, "": {}, "lat": 0.0}


def test_a_line_has_a_longest_length_and_the_rest_of_it_is_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_LINE", 100)
    fits = json.dumps({"text": "x" * 88})
    assert len(fits) == 100
    found = read(tmp_path / "m.ndjson", f"{fits}\n{GOOD}{' ' * 250}\n{GOOD}\n{GOOD}{' ' * 150}")
    assert [row.line for row in found if row.record is None] == [2, 4]
    assert "bytes in one line" in found[1].reason
    assert found[2].record == json.loads(GOOD)


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=5))
def test_any_bytes_are_rows_or_reasons(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.ndjson"
    found = read(path, b"\n".join(lines))
    assert all(row.record is not None or row.reason for row in found)
    assert {row.line for row in found} == {
        n for n, line in enumerate(lines, 1) if (line.removeprefix(rows.BOM) if n == 1 else line).strip(b" \t\r")
    }


# -- CSV ------------------------------------------------------------------------------------------------

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


# -- Parquet --------------------------------------------------------------------------------------------


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


# -- GeoJSON --------------------------------------------------------------------------------------------

POINT = {"type": "Point", "coordinates": [1.5, 2.5]}
BOX = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]]}
TRIANGLE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 1], [0, 0]]]}


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def collection(*features: Any, **more: Any) -> str:
    return json.dumps({"type": "FeatureCollection", **more, "features": features})


def places(found: list[Row]) -> list[Any]:
    words = analyzer("unicode")
    return [read_message(row.record, earth, words).place for row in found if row.record]


def test_features_are_messages(tmp_path: Path) -> None:
    across = to_geojson(box(170, 0, -170, 1))
    line = {
        "type": "Feature",
        "id": 4,
        "bbox": [1, 1, 1, 2],
        "geometry": None,
        "properties": {"box": True, "text": "a"},
    }
    found = read(
        tmp_path / "m.geojson",
        collection(
            feature(POINT, id="a", text="ramen", lon=99, radius_m=5, extra=[1]),
            feature(BOX, id=2, text="ramen", ts=5),
            feature(across, id=3, text="ramen"),
            line,
            feature(None, id=5, text="a", lon=1, lat=2),
            bbox=[0, 0, 1, 1],
            name="x",
        ),
    )
    assert [row.line for row in found] == [1, 2, 3, 4, 5]
    assert [row.record["id"] for row in found if row.record] == ["a", 2, 3, 4, 5]
    assert places(found) == [
        box(1.5, 2.5, 1.5, 2.5),
        box(0, 0, 2, 1),
        box(170, 0, -170, 1),
        box(1, 1, 1, 2),
        box(1, 2, 1, 2),
    ]


def test_features_are_subscriptions(tmp_path: Path) -> None:
    found = read(
        tmp_path / "s.json",
        collection(
            {**feature(POINT, expression="ramen", radius_m=500, lon=0), "id": 7},
            feature(TRIANGLE, id="b", expression="ramen", west=3),
            feature({"type": "MultiPolygon", "coordinates": [BOX["coordinates"]]}, id="c", terms=["x"]),
        ),
        SUBSCRIPTIONS,
    )
    read_in = [read_subscription(row.record or {}, earth, analyzer("unicode")) for row in found]
    assert [wish.id for wish in read_in] == [7, "b", "c"]
    assert read_in[0].region == Circle(1.5, 2.5, 500.0)
    assert read_in[1].region == from_geojson(TRIANGLE)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (feature(TRIANGLE, id=1, text="a"), "a Polygon that is a box along the axes"),
        (feature({"type": "Polygon", "coordinates": [*BOX["coordinates"], [[0.5, 0.5], [1, 0.5], [1, 0.6]]]}), "a box"),
        (feature({"type": "MultiPolygon", "coordinates": [BOX["coordinates"]]}), "a box along the axes"),
        (feature({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}), "got type 'LineString'"),
        (feature({"type": "Point", "coordinates": ["1", 2]}), "longitude must be a number"),
        (feature(7), "GeoJSON region is an object"),
        ({"type": "Feature", "geometry": POINT, "properties": [1]}, "properties: an object or null needed"),
        (POINT, "no Feature"),
        (5, "no Feature"),
        (None, "no Feature"),
    ],
)
def test_a_bad_feature_has_a_reason_and_the_next_is_served(tmp_path: Path, bad: Any, reason: str) -> None:
    found = read(tmp_path / "m.geojson", collection(bad, feature(POINT, id=1, text="a")))
    assert reason in found[0].reason
    assert found[0].source == bad
    assert places(found) == [box(1.5, 2.5, 1.5, 2.5)]


def test_features_that_are_json_by_form_only(tmp_path: Path) -> None:
    good = json.dumps(feature(POINT, id=1, text="a"))
    bad = [
        good.replace("1.5", "NaN"),
        good.replace('"id": 1', '"id": 1, "id": 2'),
        good.replace('"a"', '"\\ud800"'),
    ]
    content = '{"type": "FeatureCollection", "features": [' + ",\n".join([*bad, "BYTES", good]) + "]}"
    content_bytes = content.encode().replace(b"BYTES", good.replace('"a"', '"?"').encode().replace(b"?", b"\xff"))
    found = read(tmp_path / "m.geojson", b"\xef\xbb\xbf" + content_bytes)
    assert [row.reason.split(" (")[0] for row in found] == [
        "not JSON: NaN is no number there",
        "the key 'id' is given twice",
        "half a surrogate pair",
        "bytes that are not UTF-8",
        "",
    ]


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_features_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(geojson, "CHUNK", chunk)
    features = [feature(POINT, id=n, text="ramen " * n) for n in range(20)]
    content = json.dumps({"features": features, "n": 12345, "type": "FeatureCollection"}, indent=1) + "\n\n"
    assert [row.source for row in read(tmp_path / "m.geojson", content)] == features


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "{ expected (at character 1)"),
        ("[]", "{ expected"),
        ("{}", "type None given; a GeoJSON FeatureCollection with features needed"),
        (json.dumps(feature(POINT)), "type 'Feature' given"),
        ('{"type": "FeatureCollection"}', "with features needed"),
        ('{"type": "FeatureCollection", "features": {}}', "[ expected (at character 43)"),
        ('{"type": "FeatureCollection", "features": []} x', "the end expected"),
        ('{"type": "FeatureCollection" "features": []}', ", expected"),
        ('{"type": "FeatureCollection", "features": [1 2]}', ", expected"),
        ('{"type": "FeatureCollection", "features": [{"a": }]}', "Expecting value"),
        ('{"type": "FeatureCollection", "features": [{"type"', "not GeoJSON"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        (GOOD + "\n" + GOOD, "the end expected"),
    ],
)
def test_what_is_no_geojson(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(FileError) as caught:
        read(tmp_path / "m.geojson", content)
    assert reason in str(caught.value)


def test_a_feature_has_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geojson, "MAX_LINE", 1000)
    monkeypatch.setattr(geojson, "CHUNK", 100)
    with pytest.raises(FileError, match="does not end within 1,000 characters"):
        read(tmp_path / "m.geojson", collection(feature(POINT, text="x" * 5000)))


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


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


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


# -- writers --------------------------------------------------------------------------------------------


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


def pairs(*found: tuple[int, int]) -> Pairs:
    message, slot = np.array(found, dtype=np.int32).reshape(-1, 2).T
    return Pairs(np.ascontiguousarray(message), np.ascontiguousarray(slot))


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


# -- wishes ---------------------------------------------------------------------------------------------


def test_batches_of_subscriptions_join_to_what_they_are_at_once() -> None:
    words = analyzer("unicode")
    sources = [
        {"expression": "a", "west": 0, "south": 0, "east": 5, "north": 5},
        {"expression": "a OR b", "west": 0, "south": 0, "east": 5, "north": 5},
        {"expression": "b NOT c", "west": 170, "south": 0, "east": -170, "north": 5},
        {"expression": '"a b"', "lon": 1, "lat": 1, "radius_m": 300_000},
        {"expression": "c", "region": TRIANGLE},
        {"expression": "c a", "west": 0, "south": 0, "east": 9, "north": 9},
    ]
    values = [read_subscription({"id": n, **source}, earth, words) for n, source in enumerate(sources)]
    texts = ["a", "b", "c", "a b", "b a", "a c", "a b c"]
    posted = [
        read_message({"id": n, "text": text, "lon": lon, "lat": 0.5}, earth, words)
        for n, (text, lon) in enumerate((text, lon) for text in texts for lon in (1, 1.5, 175, 4))
    ]
    whole = Lexicon()
    wanted = indexes.build("scan", SubscriptionColumns.from_values(values, whole)).match(
        MessageBatch.from_values(posted, whole)
    )
    for size in (1, 2, 4, 6):
        lexicon = Lexicon()
        wishes = Wishes(lexicon)
        for start in range(0, len(values), size):
            wishes.add(values[start : start + size])
        found = indexes.build("scan", wishes.columns()).match(MessageBatch.from_values(posted, lexicon))
        assert found.as_set() == wanted.as_set()
        assert wishes.ids == list(range(6))
    assert len(wanted.slot) > 20


def test_batches_of_plain_subscriptions_join_to_plain_columns() -> None:
    wishes = Wishes(Lexicon())
    for n in range(3):
        record = {"id": n, "expression": "a", "west": 0, "south": 0, "east": n, "north": 1}
        wishes.add([read_subscription(record, earth, analyzer("unicode"))])
    columns = wishes.columns()
    assert (columns.owner, columns.conditions, len(columns)) == (None, None, 3)
    assert columns.boxes[:, 2].tolist() == [0, 1, 2]


def test_no_subscriptions_are_columns_too() -> None:
    assert len(Wishes(Lexicon()).columns()) == 0


def test_an_id_belongs_to_its_first_line() -> None:
    wishes = Wishes(Lexicon())
    wishes.claim("1", 4)
    with pytest.raises(RowError, match="id: 1 given; the subscription of line 4 has it already"):
        wishes.claim(1, 9)
    wishes.claim(2, 9)


def test_subscriptions_end_as_in_the_hub() -> None:
    endings = Endings(np.array([np.inf, 10.0, np.inf, 10.0]), np.array([np.inf, np.inf, 2.0, 1.0]))
    every = pairs(*((message, slot) for message in (2, 1, 0) for slot in (0, 1, 2, 3)))
    first = endings.apply(every, [9.0, None, 10.0])
    assert first.as_set() == {(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3)}
    assert endings.apply(pairs((0, 0), (0, 1), (0, 2), (0, 3)), [1.0]).as_set() == {(0, 0), (0, 1)}
    assert len(endings.apply(pairs(), []).slot) == 0


def test_subscriptions_without_an_end_cost_nothing() -> None:
    every = pairs((0, 0))
    assert Endings(np.array([np.inf]), np.array([np.inf])).apply(every, [None]) is every


def test_standard_input_is_ndjson(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    with open_rows(Path("-"), MESSAGES) as reader:
        assert (reader.size, reader.file) == (None, "-")
        assert [row.record for row in reader] == [json.loads(GOOD)]
