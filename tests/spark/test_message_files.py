"""Messages that workers read from files, on a real Spark: the same pairs and rejections as through tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from nearcast.cli import app
from nearcast.files import MESSAGES
from nearcast.spark import Built, build, files, match, outcome, pairs_of, read, rejected_of, splits
from nearcast.spark.layouts import LAYOUTS, REPLICATED
from tests.spark.test_match import POSTS, TRUTH, WISHES, frame, pairs

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def small_tasks() -> Iterator[None]:
    """As many as there are cores, though there are few rows."""
    with patch.multiple(splits, LEAST_ROWS=1, OPENING=0):
        yield


@pytest.fixture(scope="module")
def made(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(frame(spark, WISHES), tmp_path_factory.mktemp("storage"), layout=REPLICATED)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    names = sorted({name for row in rows for name in row})
    return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])


def posts_table() -> pa.Table:
    return table_of(POSTS)


def with_column(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def rejections(found: Any) -> Counter[tuple[str, str]]:
    return Counter((row["reason"], row["source"]) for row in rejected_of(found).collect())


@pytest.mark.parametrize("rows_a_group", [1, 7, 1000])
def test_pairs_are_those_of_the_reference_whatever_the_row_groups(
    rows_a_group: int, spark: Any, made: Built, tmp_path: Path
) -> None:
    pq.write_table(posts_table(), tmp_path / "posts.parquet", row_group_size=rows_a_group)
    found = match(files(tmp_path / "posts.parquet"), made)
    assert found.rdd.getNumPartitions() == 2
    assert found.schema == match(read(spark, str(tmp_path / "posts.parquet"), MESSAGES), made).schema
    assert pairs(found) == TRUTH


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_that_route_rows_have_them_from_spark(layout: str, spark: Any, tmp_path: Path) -> None:
    pq.write_table(posts_table(), tmp_path / "posts.parquet", row_group_size=9)
    posts = files(tmp_path / "posts.parquet")
    options = {"storage": tmp_path / "storage", "layout": layout, "shards": 3}
    assert pairs(match(posts, frame(spark, WISHES), **options)) == TRUTH


def test_folders_of_files_with_columns_of_their_own(made: Built, tmp_path: Path) -> None:
    """Points in some files, boxes in others; categories; a file without rows."""
    is_point = [row.get("lon") is not None for row in POSTS]
    for name, chosen in (("points", True), ("boxes", False)):
        table = posts_table().filter(pa.array([flag is chosen for flag in is_point]))
        table = table.drop_columns([column for column in table.column_names if table[column].null_count == len(table)])
        pq.write_table(table.slice(0, 5), tmp_path / f"{name}-a.parquet")
        texts = table["text"].combine_chunks().dictionary_encode()
        pq.write_table(with_column(table, "text", texts).slice(5), tmp_path / f"{name}-b.parquet")
        pq.write_table(table.slice(0, 0), tmp_path / f"{name}-none.parquet")
    assert pairs(match(files(tmp_path), made)) == TRUTH
    assert match(files(*tmp_path.glob("*none*")), made).count() == 0


ODD = {
    "id": ["a", "", None, "d", "e", "f", "g", "h"],
    "text": ["x", "x", "x", " ", None, "x", "x", "x"],
    "lon": [0.5, 0.5, 0.5, 0.5, 0.5, None, 500.0, 0.5],
    "lat": [0.5] * 8,
    "ts": pa.array([3, 1, 1, 1, 1, 1, 1, None], pa.timestamp("us", "UTC")),
    "ttl": pa.array([None, None, None, None, None, None, None, -1.0]),
}


def test_odd_rows_are_rejected_with_the_reasons_and_sources_of_a_table(spark: Any, made: Built, tmp_path: Path) -> None:
    pq.write_table(pa.table(ODD), tmp_path / "odd.parquet", row_group_size=3)
    found = outcome(files(tmp_path / "odd.parquet"), made)
    through = outcome(read(spark, str(tmp_path / "odd.parquet"), MESSAGES), made)
    assert rejections(found) == rejections(through)
    assert len(rejected_of(found).collect()) == 7
    assert pairs(pairs_of(found)) == pairs(pairs_of(through))


@pytest.mark.parametrize("kind", [pa.int16(), pa.uint32(), pa.uint64(), pa.string(), pa.large_string()])
def test_ids_are_of_the_kind_that_a_table_has(kind: pa.DataType, spark: Any, made: Built, tmp_path: Path) -> None:
    table = posts_table()
    pq.write_table(with_column(table, "id", table["id"].cast(kind)), tmp_path / "a.parquet")
    found = match(files(tmp_path), made)
    assert found.schema == match(read(spark, str(tmp_path / "a.parquet"), MESSAGES), made).schema
    assert Counter((int(m), s) for m, s in pairs(found).elements()) == TRUTH


def test_limited_subscriptions_get_their_first_events_over_all_files(spark: Any, tmp_path: Path) -> None:
    wish = {"id": "a", "expression": "x", "west": 0, "south": 0, "east": 1, "north": 1, "max_events": 3}
    for number in range(4):
        ids = list(range(5 * number, 5 * number + 5))
        columns = {"id": ids, "text": ["x"] * 5, "lon": [0.5] * 5, "lat": [0.5] * 5, "ts": [100 - i for i in ids]}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet", row_group_size=2)
    found = match(files(tmp_path), frame(spark, [wish]), storage=tmp_path / "storage")
    assert pairs(found) == Counter({(19, "a"): 1, (18, "a"): 1, (17, "a"): 1})


def test_a_file_that_vanishes_fails_the_job_by_its_name(made: Built, tmp_path: Path) -> None:
    pq.write_table(posts_table(), tmp_path / "posts.parquet")
    found = match(files(tmp_path / "posts.parquet"), made)
    (tmp_path / "posts.parquet").unlink()
    with pytest.raises(Exception, match=r"posts\.parquet: cannot be read \(.*No such file"):
        found.count()


@pytest.mark.usefixtures("spark")
def test_the_command_says_who_reads(tmp_path: Path) -> None:
    pq.write_table(posts_table(), tmp_path / "posts.parquet")
    pq.write_table(table_of(WISHES), tmp_path / "wishes.parquet")
    asked = ["spark", "match", "-s", str(tmp_path / "wishes.parquet"), "-m", str(tmp_path / "posts.parquet")]
    for more, told in (
        ([], "80 messages in 1 Parquet file, read by the workers"),
        (["--readers", "spark"], "messages: read by Spark"),
        (["--layout", "hash", "--shards", "3"], "in 1 Parquet file, read by Spark, for hash sends rows to shards"),
    ):
        out = tmp_path / f"out-{len(more)}"
        done = CliRunner().invoke(app, [*asked, "-o", str(out), *more], catch_exceptions=False)
        assert f"{told}\n" in done.output
        rows = pq.read_table(out).to_pylist()
        assert Counter((row["message_id"], row["subscription_id"]) for row in rows) == TRUTH
