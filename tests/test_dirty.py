"""Bad and odd rows of real sources: each is served unchanged or rejected with a reason, and none does harm."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nearcast.cli import app
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.geo import earth
from nearcast.lexicon import Lexicon
from nearcast.records import read_message
from nearcast.text import analyzer

SAMPLE = Path(__file__).parents[2] / "shared" / "data" / "dirty_sample.jsonl"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not SAMPLE.is_file(), reason=f"{SAMPLE} is not here"),
]

SERVED_AND_REJECTED = {
    # places
    "column_shift_text_in_lat": (0, 35),
    "missing_coordinates": (0, 30),
    "no_coordinates_long_text": (0, 10),
    "unparsable_coordinates": (0, 12),
    "out_of_range": (0, 7),
    "swapped_lat_lon_out_of_range": (0, 14),
    "swapped_lat_lon_in_range": (13, 0),  # wrong, but nobody can know
    "boundary_valid": (7, 0),
    "null_island": (1, 0),
    "null_island_negative_zero": (1, 0),
    "lat_as_string": (1, 11),  # " 37.77 " is plainly a number; "1e2" is one, but no latitude
    "lat_wrong_type": (0, 3),
    "missing_lat": (0, 1),
    "missing_lon": (0, 1),
    "gps_outlier": (0, 15),  # the places are legal, but there is no text
    # texts
    "empty_text": (0, 12),
    "null_text": (0, 12),
    "missing_text": (0, 1),
    "text_wrong_type": (0, 5),
    "blank_text": (6, 4),  # white space is rejected; "...", "#" or a zero-width space is text without a word
    "emoji_or_punctuation_only_no_tokens": (20, 0),
    "html_entities": (12, 0),
    "html_tags": (20, 0),
    "html_line_breaks": (8, 0),
    "html_script": (1, 0),
    "url_only": (8, 0),
    "rtl_script": (12, 0),
    "cjk_no_spaces": (12, 0),
    "zero_width_or_bidi_controls": (12, 0),
    "repeated_tokens": (8, 0),
    "elongated_token": (8, 0),
    "mojibake_replacement_char": (8, 0),
    "long_text": (6, 0),
    "very_long_text": (4, 0),
    "nul_byte": (1, 0),
    "control_chars": (1, 0),
    "bidi_override": (1, 0),
    "bom_prefix": (1, 0),
    "combining_flood": (1, 0),
    "nfc_nfd_pair": (1, 0),
    "turkish_i": (1, 0),
    "german_ss": (1, 0),
    "fullwidth": (1, 0),
    "ligature": (1, 0),
    "zwj_emoji": (1, 0),
    "hashtags_mentions": (1, 0),
    "sql_like": (1, 0),
    "json_in_text": (1, 0),
    "csv_injection": (1, 0),
    "path_like": (1, 0),
    "regex_meta": (1, 0),
    "one_token_100k": (1, 0),
    "many_tokens_20k": (1, 0),
    "same_token_5k": (1, 0),
    "only_stopwords": (1, 0),
    "numbers": (1, 0),
    # ids, times, whole records
    "id_lost_precision_scientific": (1, 11),  # 6 lines in the id column, 5 times of the form 19-09-2022
    "odd_id": (5, 6),
    "missing_id": (0, 1),
    "duplicate_id": (2, 0),
    "odd_timestamp": (7, 6),
    "empty_record": (0, 1),
    "extra_fields": (1, 0),
    "raw_line": (0, 13),  # and one blank line, which is no row
}

AS_CSV = SERVED_AND_REJECTED | {
    "text_wrong_type": (1, 1),  # in CSV 12345 is text; what CSV cannot hold is left out
    "odd_id": (8, 2),  # in CSV every id is text
    "lat_wrong_type": (0, 0),
    "raw_line": (0, 0),
}


def sample() -> list[dict[str, Any]]:
    """The rows, in order. Real ones lost their id on the way here: the row's number stands in for it."""
    rows = [json.loads(line) for line in SAMPLE.read_bytes().split(b"\n") if line]
    for row in rows:
        if row["origin"] != "synthetic" and row["record"].get("id") is None:
            row["record"]["id"] = row["n"]
    return rows


def counted(kinds: Iterable[str], rejected: Iterable[str]) -> dict[str, tuple[int, int]]:
    every, bad = Counter(kinds), Counter(rejected)
    return {kind: (every[kind] - bad[kind], bad[kind]) for kind in every}


def test_records_to_columns() -> None:
    rows = [row for row in sample() if "record" in row]
    records = [row["record"] for row in rows]
    batch, ids, rejected = MessageBatch.from_records(records, Lexicon())
    found = counted((row["kind"] for row in rows), (rows[r.row]["kind"] for r in rejected))
    assert found == {kind: n for kind, n in SERVED_AND_REJECTED.items() if kind != "raw_line"}
    assert all(r.reason.strip() for r in rejected)
    bad = {r.row for r in rejected}
    served = [record for n, record in enumerate(records) if n not in bad]
    assert ids == [record["id"] for record in served]
    assert len(batch) == len(served)
    texts = [read_message(record, earth, analyzer("unicode")).text for record in served]
    assert texts == [record["text"] for record in served]


def test_records_as_subscriptions() -> None:
    wishes = [
        {**row["record"], "expression": row["record"].get("text"), "radius_m": 1000}
        for row in sample()
        if "record" in row
    ]
    columns, ids, rejected = SubscriptionColumns.from_records(wishes, Lexicon())
    assert len(columns) == len(ids) == len(wishes) - len(rejected) > 100
    assert all(r.reason.strip() for r in rejected)


def run_match(tmp_path: Path, messages: Path, wanted: list[dict[str, Any]]) -> tuple[set[tuple[Any, int]], list[Any]]:
    """The pairs, and the rejected rows of the messages."""
    (tmp_path / "s.ndjson").write_text("\n".join(json.dumps(wish) for wish in wanted))
    out = tmp_path / "p.ndjson"
    arguments = ["match", "-s", str(tmp_path / "s.ndjson"), "-m", str(messages), "--out", str(out)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 3, result.output
    pairs = {tuple(json.loads(line).values()) for line in out.read_bytes().splitlines()}
    side = out.with_name("p.ndjson.rejected.ndjson").read_bytes()
    rejected = [json.loads(line) for line in side.splitlines()]
    assert {row["file"] for row in rejected} == {str(messages)}
    assert all(row["reason"].strip() for row in rejected)
    return pairs, rejected


def wishes_for(words: dict[int, list[str]]) -> list[dict[str, Any]]:
    """For every served row with a word, who wants that word anywhere: proof that the text came through."""
    anywhere = {"west": -180, "south": -90, "east": 180, "north": 90}
    return [{"id": n, "terms": [found[-1]], **anywhere} for n, found in words.items() if found]


def words_of(rows: list[dict[str, Any]]) -> dict[int, list[str]]:
    return {row["n"]: analyzer("unicode").words(row["record"]["text"]) for row in rows}


def expected_pairs(rows: list[dict[str, Any]], as_text: bool) -> set[tuple[Any, int]]:
    words = {n: set(found) for n, found in words_of(rows).items()}
    wanted = {wish["id"]: wish["terms"][0] for wish in wishes_for(words_of(rows))}
    ids = {row["n"]: str(row["record"]["id"]) if as_text else row["record"]["id"] for row in rows}
    return {(ids[n], wish) for n, found in words.items() for wish, word in wanted.items() if word in found}


def test_lines_through_the_command(tmp_path: Path) -> None:
    rows = sample()
    lines = [row["raw"] if "raw" in row else json.dumps(row["record"]) for row in rows]
    path = tmp_path / "m.ndjson"
    path.write_text("\n".join(lines), encoding="utf-8")
    _, rejected = run_match(tmp_path, path, [])
    bad = {row["line"] for row in rejected}
    found = counted((row["kind"] for row in rows if row.get("raw") != ""), (rows[line - 1]["kind"] for line in bad))
    assert found == SERVED_AND_REJECTED
    served = [row for line, row in enumerate(rows, 1) if line not in bad and "record" in row]
    pairs, _ = run_match(tmp_path, path, wishes_for(words_of(served)))
    assert pairs == expected_pairs(served, as_text=False)
    for row in rejected:
        source = rows[row["line"] - 1]
        assert row.get("record") == source.get("record") or row.get("raw") == source.get("raw")


def test_csv_through_the_command(tmp_path: Path) -> None:
    columns = ("id", "text", "lon", "lat", "ts")
    rows = [
        row
        for row in sample()
        if "record" in row and not any(isinstance(row["record"].get(name), bool | list | dict) for name in columns)
    ]
    path = tmp_path / "m.csv"
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    numbers = {}  # the line where a row starts, to the row; a quoted text may have several lines
    for number, row in enumerate(rows):
        numbers[text.getvalue().count("\n") + 1] = number
        writer.writerow(row["record"])
    path.write_bytes(text.getvalue().encode())
    _, rejected = run_match(tmp_path, path, [])
    bad = {numbers[row["line"]] for row in rejected}
    found = counted((row["kind"] for row in rows), (rows[n]["kind"] for n in bad))
    assert found == {kind: n for kind, n in AS_CSV.items() if n != (0, 0)}
    served = [row for n, row in enumerate(rows) if n not in bad]
    for row in served:
        row["record"]["text"] = str(row["record"]["text"])
    pairs, _ = run_match(tmp_path, path, wishes_for(words_of(served)))
    assert pairs == expected_pairs(served, as_text=True)
