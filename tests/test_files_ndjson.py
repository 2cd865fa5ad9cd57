"""NDJSON: which lines are rows, and why others are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.files import rows
from tests.rows_read import GOOD, read


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
