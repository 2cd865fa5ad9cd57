"""`match` on a real Spark: every layout, rejected rows, endings, JSON, CSV and Parquet."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.errors import NearcastError
from nearcast.files import MESSAGES, SUBSCRIPTIONS, FileError
from nearcast.spark import build, match, outcome, pairs_of, read, rejected_of
from nearcast.spark.layouts import LAYOUTS, REPLICATED
from tests.spark import records

pytestmark = pytest.mark.filterwarnings("ignore")

CHANCE = Random(5)
WISHES = records.subscriptions(CHANCE, 120)
POSTS = records.messages(CHANCE, 80)
TRUTH = Counter(records.truth(WISHES, POSTS))


def frame(spark: Any, rows: list[dict[str, Any]], pieces: int = 2) -> Any:
    names = sorted({name for row in rows for name in row})
    filled = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    return spark.createDataFrame(filled).repartition(pieces)


def pairs(found: Any) -> Counter[tuple[Any, Any]]:
    return Counter((row["message_id"], row["subscription_id"]) for row in found.collect())


@pytest.fixture(scope="module")
def wishes(spark: Any) -> Any:
    return frame(spark, WISHES).cache()


@pytest.fixture(scope="module")
def posts(spark: Any) -> Any:
    return frame(spark, POSTS).cache()


@pytest.mark.parametrize("layout", [REPLICATED, *LAYOUTS])
def test_every_layout_gives_exactly_the_pairs_of_the_reference(
    layout: str, wishes: Any, posts: Any, tmp_path: Path
) -> None:
    made = build(wishes, tmp_path, layout=layout, shards=3, messages=posts)
    assert made.report.chosen.layout == layout
    assert pairs(match(posts, made)) == TRUTH


def test_files_are_read_by_the_rules_of_match_and_the_rest_is_kept_aside(spark: Any, tmp_path: Path) -> None:
    wish = {"id": "a", "expression": "x", "west": 0, "south": 0, "east": 1, "north": 1, "max_events": 2}
    lines = [wish, {**wish, "id": "b", "expression": "((x"}, {**wish, "id": "c", "expires": 5, "max_events": None}]
    (tmp_path / "wishes.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    posts = ["id,text,lon,lat,ts", *(f"{i},x,0.5,0.5,{9 - i}" for i in range(4)), "9,x,0.5,999,", "7,x"]
    (tmp_path / "posts.csv").write_text("\n".join(posts) + "\n")
    made = build(read(spark, str(tmp_path / "wishes.ndjson"), SUBSCRIPTIONS), tmp_path / "storage")
    assert made.manifest.subscriptions == 2
    assert [row["source"][:12] for row in made.rejected(spark).collect()] == ['{"id": "b", ']
    found = outcome(read(spark, str(tmp_path / "posts.csv"), MESSAGES), made).cache()
    assert pairs(pairs_of(found)) == Counter([("3", "a"), ("2", "a")])
    assert len(rejected_of(found).collect()) == 2


def test_columns_that_cannot_make_a_record_are_named_at_once(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "words": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(FileError, match="text or terms is missing"):
        read(spark, str(tmp_path / "a.parquet"), MESSAGES)
    with pytest.raises(FileError, match="the ending says what a file is"):
        read(spark, str(tmp_path / "a.what"), MESSAGES)


def test_unknown_layouts_are_named_with_those_that_exist(wishes: Any) -> None:
    with pytest.raises(NearcastError, match="layout 'round' given; there are auto, replicated"):
        build(wishes, layout="round")
