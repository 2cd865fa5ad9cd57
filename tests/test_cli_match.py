"""`nearcast match` and `nearcast generate`, as people use them: real files, exit codes, what is printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from nearcast.cli import app, match
from nearcast.errors import CatalogueError, NearcastError
from nearcast.files import FileError, write_records
from nearcast.geo import earth
from nearcast.kernels import jit
from nearcast.records import read_message, read_subscription
from nearcast.text import analyzer

SUBSCRIPTIONS = [
    {"id": "ramen", "expression": "ramen NOT instant", "lon": 139.7, "lat": 35.66, "radius_m": 1500.0},
    {"id": "box", "expression": "jazz OR ramen", "west": 139.0, "south": 35.0, "east": 140.0, "north": 36.0},
    {"id": "far", "expression": "ramen", "west": 0.0, "south": 0.0, "east": 1.0, "north": 1.0},
]
MESSAGES = [
    {"id": "m1", "text": "Tonkotsu ramen tonight", "lon": 139.701, "lat": 35.659, "ts": 10.0},
    {"id": "m2", "text": "instant ramen", "lon": 139.701, "lat": 35.659, "ts": 20.0},
    {"id": "m3", "text": "live jazz", "lon": 139.2, "lat": 35.1, "ts": 30.0},
    {"id": "m4", "text": "nothing", "lon": 0.5, "lat": 0.5, "ts": 40.0},
]
PAIRS = {("m1", "ramen"), ("m1", "box"), ("m2", "box"), ("m3", "box")}

WISH_COLUMNS = ("id", "expression", "lon", "lat", "radius_m", "west", "south", "east", "north")
MESSAGE_COLUMNS = ("id", "text", "lon", "lat", "ts")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ndjson(name: str, rows: list[Any]) -> str:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    Path(name).write_text("".join(f"{line}\n" for line in lines))
    return name


def run(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(app, arguments, input=stdin, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def run_match(subscriptions: str, messages: str, *more: str, code: int = 0, stdin: str | None = None) -> Result:
    return run("match", "--subscriptions", subscriptions, "--messages", messages, *more, code=code, stdin=stdin)


def printed(result: Result) -> set[tuple[Any, Any]]:
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    found = [(row["message_id"], row["subscription_id"]) for row in rows]
    assert len(set(found)) == len(found)
    return set(found)


def rejected(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_bytes().splitlines()]


def files() -> set[str]:
    return {path.name for path in Path().iterdir()}


# -- formats --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["ndjson", "jsonl", "csv", "parquet"])
def test_pairs_from_each_format_go_to_standard_output(ending: str) -> None:
    write_records(Path(f"s.{ending}"), SUBSCRIPTIONS, WISH_COLUMNS)
    write_records(Path(f"m.{ending}"), MESSAGES, MESSAGE_COLUMNS)
    result = run_match(f"s.{ending}", f"m.{ending}")
    assert printed(result) == PAIRS
    assert files() == {f"s.{ending}", f"m.{ending}"}


def test_pairs_from_geojson() -> None:
    def feature(record: dict[str, Any]) -> dict[str, Any]:
        fields = {k: v for k, v in record.items() if k not in ("west", "south", "east", "north", "lon", "lat")}
        if "lon" in record:
            geometry: Any = {"type": "Point", "coordinates": [record["lon"], record["lat"]]}
        else:
            w, s, e, n = (record[side] for side in ("west", "south", "east", "north"))
            geometry = {"type": "Polygon", "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]]}
        return {"type": "Feature", "geometry": geometry, "properties": fields}

    for name, records in (("s.geojson", SUBSCRIPTIONS), ("m.json", MESSAGES)):
        Path(name).write_text(json.dumps({"type": "FeatureCollection", "features": [*map(feature, records)]}))
    assert printed(run_match("s.geojson", "m.json")) == PAIRS


def test_messages_from_standard_input() -> None:
    lines = "\n".join(json.dumps(message) for message in MESSAGES)
    result = run_match(ndjson("s.ndjson", SUBSCRIPTIONS), "-", stdin=lines)
    assert printed(result) == PAIRS


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_pairs_into_each_format(ending: str) -> None:
    out = f"p.{ending}"
    run_match(ndjson("s.ndjson", SUBSCRIPTIONS), ndjson("m.ndjson", MESSAGES), "--out", out)
    if ending == "parquet":
        found = {tuple(row.values()) for row in pq.read_table(out).to_pylist()}
    elif ending == "csv":
        header, *lines = Path(out).read_text().splitlines()
        assert header == "message_id,subscription_id"
        found = {tuple(line.replace('"', "").split(",")) for line in lines}
    else:
        found = {tuple(row.values()) for row in rejected(out)}
    assert found == PAIRS
    assert files() == {"s.ndjson", "m.ndjson", out}


def test_integer_ids_are_integers_in_parquet() -> None:
    subscriptions = ndjson("s.ndjson", [wish | {"id": n} for n, wish in enumerate(SUBSCRIPTIONS)])
    messages = ndjson("m.ndjson", [message | {"id": 7} for message in MESSAGES])  # ids of messages may repeat
    run_match(subscriptions, messages, "--out", "p.parquet")
    table = pq.read_table("p.parquet")
    assert table.schema.types == [pa.int64(), pa.int64()]
    assert table["message_id"].to_pylist() == [7] * len(PAIRS)


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_batches_change_nothing(batch: int) -> None:
    subscriptions, messages = ndjson("s.ndjson", SUBSCRIPTIONS), ndjson("m.ndjson", MESSAGES)
    assert printed(run_match(subscriptions, messages, "--batch", str(batch))) == PAIRS


def test_generated_worlds_match_as_the_reference_says() -> None:
    run("generate", "subscriptions", "300", "--out", "s.csv", "--seed", "3")
    run("generate", "messages", "200", "--out", "m.parquet", "--seed", "3")
    found = printed(run_match("s.csv", "m.parquet", "--batch", "64"))
    words = analyzer("unicode")
    wishes = [json.loads(line) for line in run("generate", "subscriptions", "300", "--seed", "3").stdout.splitlines()]
    texts = [json.loads(line) for line in run("generate", "messages", "200", "--seed", "3").stdout.splitlines()]
    wanted = [read_subscription(wish, earth, words) for wish in wishes]
    posted = [read_message(text, earth, words) for text in texts]
    assert found == {
        (message.id, wish.id)
        for message in posted
        for wish in wanted
        if wish.expression.accepts(message.tokens) and earth.intersects(wish.region, message.place)
    }


def test_an_analyzer_may_be_chosen() -> None:
    subscriptions = ndjson("s.ndjson", [SUBSCRIPTIONS[1] | {"expression": "concerts"}])
    messages = ndjson("m.ndjson", [MESSAGES[2] | {"text": "a concert"}])
    assert printed(run_match(subscriptions, messages)) == set()
    assert printed(run_match(subscriptions, messages, "--analyzer", "english")) == {("m3", "box")}


def test_subscriptions_end_by_time_and_by_number() -> None:
    subscriptions = ndjson(
        "s.ndjson", [SUBSCRIPTIONS[1] | {"id": 1, "expires": 20}, SUBSCRIPTIONS[1] | {"id": 2, "max_events": 2}]
    )
    messages = ndjson("m.ndjson", MESSAGES)
    for batch in ("1", "10"):
        found = printed(run_match(subscriptions, messages, "--batch", batch))
        assert found == {("m1", 1), ("m1", 2), ("m2", 2)}


# -- rows that cannot be used ---------------------------------------------------------------------------


def test_rejected_rows_go_to_the_side_file_and_the_rest_is_served() -> None:
    ndjson("s.ndjson", [SUBSCRIPTIONS[0], {"id": "x", "expression": "(a"}, SUBSCRIPTIONS[1]])
    ndjson("m.ndjson", [MESSAGES[0], "{'id': 1}", MESSAGES[1], MESSAGES[2] | {"lat": 91}, "", MESSAGES[2]])
    result = run_match("s.ndjson", "m.ndjson", "--out", "p.ndjson", code=3)
    assert {tuple(row.values()) for row in rejected("p.ndjson")} == PAIRS
    found = rejected("p.ndjson.rejected.ndjson")
    assert [(row["file"], row["line"]) for row in found] == [("s.ndjson", 2), ("m.ndjson", 2), ("m.ndjson", 4)]
    assert found[0]["record"] == {"id": "x", "expression": "(a"}
    assert found[1]["raw"] == "{'id': 1}"
    assert "latitudes in [-90, 90]" in found[2]["reason"]
    assert "subscriptions: 3 read, 1 rejected" in result.stderr
    assert "messages: 5 read, 2 rejected" in result.stderr
    assert "pairs: 4 in" in result.stderr
    assert "3 rejected, see p.ndjson.rejected.ndjson" in result.stderr


def test_the_side_file_may_be_named_and_an_old_one_goes_away() -> None:
    subscriptions, bad = ndjson("s.ndjson", SUBSCRIPTIONS), ndjson("bad.ndjson", ["[]"])
    run_match(subscriptions, bad, "--rejected", "side.ndjson", code=3)
    assert len(rejected("side.ndjson")) == 1
    run_match(subscriptions, bad, code=3)
    assert len(rejected("nearcast.rejected.ndjson")) == 1
    good = ndjson("m.ndjson", MESSAGES)
    run_match(subscriptions, good, "--rejected", "side.ndjson")
    run_match(subscriptions, good)
    assert files() == {"s.ndjson", "bad.ndjson", "m.ndjson"}


def test_the_later_of_two_subscriptions_with_one_id_is_rejected() -> None:
    subscriptions = ndjson(
        "s.ndjson",
        [{"id": "box"}, SUBSCRIPTIONS[1], SUBSCRIPTIONS[0], SUBSCRIPTIONS[1] | {"expression": "nothing"}],
    )
    result = run_match(subscriptions, ndjson("m.ndjson", MESSAGES), code=3)
    assert printed(result) == PAIRS
    found = rejected("nearcast.rejected.ndjson")
    assert [row["line"] for row in found] == [1, 4]
    assert found[1]["reason"] == "id: 'box' given; the subscription of line 2 has it already"


def test_empty_files_are_served() -> None:
    result = run_match(ndjson("s.ndjson", []), ndjson("m.ndjson", []), "--out", "p.csv")
    assert Path("p.csv").read_text() == "message_id,subscription_id\n"
    assert "messages: 0 read, 0 rejected" in result.stderr


# -- what cannot be done --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (["-s", "none.ndjson", "-m", "m.ndjson"], FileError, "none.ndjson: cannot be read (No such file"),
        (["-s", "s.ndjson", "-m", "m.txt"], FileError, "m.txt: the ending says what a file is"),
        (["-s", "-", "-m", "m.ndjson"], FileError, "standard input is for messages"),
        (["-s", "s.ndjson", "-m", "m.ndjson", "--index", "x"], CatalogueError, "index 'x' given; there are"),
        (["-s", "s.ndjson", "-m", "m.ndjson", "--analyzer", "x"], NearcastError, "no analyzer is called 'x'"),
        (["-s", "s.ndjson", "-m", "m.ndjson", "--out", "p.txt"], FileError, "p.txt: the ending"),
        (["-s", "s.ndjson", "-m", "m.ndjson", "--out", "no/p.csv"], FileError, "no/p.csv: cannot be written"),
        (["-s", "s.ndjson", "-m", "m.ndjson", "--out", "m.ndjson"], FileError, "given as messages and as out"),
        (["-s", "s.ndjson", "-m", "m.ndjson", "--rejected", "s.ndjson"], FileError, "subscriptions and as rejected"),
        (["-s", "s.ndjson", "-m", "cut.geojson", "--out", "p.csv"], FileError, "cut.geojson: not GeoJSON"),
    ],
)
def test_a_run_that_cannot_be_done_leaves_everything_as_it_was(
    arguments: list[str], error: type[Exception], reason: str
) -> None:
    ndjson("s.ndjson", SUBSCRIPTIONS)
    ndjson("m.ndjson", MESSAGES)
    Path("cut.geojson").write_text('{"type": "FeatureCollection", "features": [{}, {"type"')
    before = {name: Path(name).read_text() for name in files()}
    with pytest.raises(error) as caught:
        run("match", *arguments)
    assert reason in str(caught.value)
    assert {name: Path(name).read_text() for name in files()} == before


def test_a_first_run_says_that_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions, messages = ndjson("s.ndjson", SUBSCRIPTIONS), ndjson("m.ndjson", MESSAGES)
    monkeypatch.setattr(jit, "is_cold", lambda: True)
    assert "compiling kernels, once for this version …" in run_match(subscriptions, messages).stderr
    monkeypatch.setattr(jit, "is_cold", lambda: False)
    assert "compiling" not in run_match(subscriptions, messages).stderr


class _Terminal:
    @staticmethod
    def isatty() -> bool:
        return True


@pytest.mark.parametrize(("out", "is_shown"), [("p.csv", True), ("-", False)])
def test_bars_are_for_terminals_that_show_nothing_else(
    monkeypatch: pytest.MonkeyPatch, out: str, is_shown: bool
) -> None:
    assert match.progress_bars(Path(out)).disable
    monkeypatch.setattr(match.sys, "stderr", _Terminal())
    monkeypatch.setattr(match.sys, "stdout", _Terminal())
    assert match.progress_bars(Path(out)).disable is not is_shown


# -- as a process ---------------------------------------------------------------------------------------


def process(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from nearcast.cli import main; main()", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)


def test_as_a_process_some_rejected() -> None:
    ndjson("s.ndjson", SUBSCRIPTIONS)
    lines = "\n".join([json.dumps(MESSAGES[0]), "[]", json.dumps(MESSAGES[3])])
    done = process("match", "-s", "s.ndjson", "-m", "-", "--index", "scan", stdin=b"\xef\xbb\xbf" + lines.encode())
    assert done.returncode == 3, done.stderr
    found = {tuple(json.loads(line).values()) for line in done.stdout.splitlines()}
    assert found == {("m1", "ramen"), ("m1", "box")}
    summary = done.stderr.decode().splitlines()
    assert "messages: 3 read, 1 rejected" in summary
    assert summary[-1] == "1 rejected, see nearcast.rejected.ndjson"
    assert rejected("nearcast.rejected.ndjson")[0]["file"] == "-"
    assert "\x1b" not in done.stderr.decode()  # no bars where nobody looks


def test_as_a_process_an_error_is_one_line_and_code_2() -> None:
    done = process("match", "-s", "none.csv", "-m", "none.csv2", "--out", "p.csv")
    assert done.returncode == 2
    assert done.stdout == b""
    assert "none.csv: cannot be read" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert files() == set()


@pytest.mark.parametrize("arguments", [["match"], ["match", "-s", "x", "-m", "y", "--batch", "0"], ["nothing"]])
def test_wrong_usage_has_code_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2


# -- generate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["subscriptions", "messages"])
def test_generated_files_hold_the_same_in_every_format(what: str) -> None:
    lines = run("generate", what, "50", "--seed", "1").stdout.splitlines()
    assert len(lines) == 50
    records = [json.loads(line) for line in lines]
    run("generate", what, "50", "--seed", "1", "--out", "g.parquet")
    table = [{k: v for k, v in row.items() if v is not None} for row in pq.read_table("g.parquet").to_pylist()]
    assert table == records
    run("generate", what, "50", "--seed", "1", "--out", "g.csv")
    assert len(Path("g.csv").read_text().splitlines()) == 51


def test_another_seed_is_another_world() -> None:
    first, second = (run("generate", "messages", "5", "--seed", seed).stdout for seed in ("1", "2"))
    assert first != second
