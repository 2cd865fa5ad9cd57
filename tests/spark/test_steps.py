"""Statistics on a real Spark, against plain counting; and the commands."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from nearcast.cli import app
from nearcast.spark import steps
from tests.spark.test_match import POSTS, TRUTH, WISHES

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    bad = [{"id": "b", "text": "x"}, {"id": "b", "text": "x"}]
    for name, rows in (("wishes", WISHES), ("posts", [*POSTS, *bad])):
        (folder / f"{name}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_statistics_count_what_is_there(spark: Any) -> None:
    rows = spark.createDataFrame([(json.dumps(post),) for post in POSTS] + [("{",)], "value string")
    cleaned = steps.cleaned(rows).cache()
    words = steps.with_words(cleaned)
    held = [set(post["text"].split()) for post in POSTS]
    singles = Counter(word for words in held for word in words)
    pairs = Counter(pair for words in held for pair in combinations(sorted(words), 2))
    assert {row["word"]: row["frequency"] for row in steps.frequencies(words).collect()} == singles
    found = steps.heavy_pairs(words).collect()
    assert {(row["first"], row["second"]): row["frequency"] for row in found} == pairs
    in_cells = steps.cell_frequencies(words, cells=4).groupBy("word").sum("frequency").collect()
    assert {row[0]: row[1] for row in in_cells} == singles
    assert [row["source"] for row in steps.rejected(cleaned).collect()] == ["{"]
    lexicon = steps.lexicon(words)
    assert lexicon.messages == len(POSTS)
    assert dict(zip(lexicon.to_arrow()["word"].to_pylist(), lexicon.frequencies.tolist(), strict=True)) == singles


def test_the_commands_match_plan_and_count(spark: Any, files: Path, tmp_path: Path) -> None:
    wishes, posts = str(files / "wishes.ndjson"), str(files / "posts.ndjson")
    run = CliRunner().invoke
    out = tmp_path / "out"
    done = run(app, ["spark", "match", "-s", wishes, "-m", posts, "-o", str(out), "--format", "json"])
    assert done.exit_code == 3, done.output
    lines = [json.loads(line) for part in out.glob("*.json") for line in part.read_text().splitlines()]
    assert Counter((int(line["message_id"]), line["subscription_id"]) for line in lines) == TRUTH
    assert f"pairs: {sum(TRUTH.values()):,} in" in done.output
    again = run(app, ["spark", "match", "-s", wishes, "-m", posts, "-o", str(out)])
    assert "is there already" in str(again.exception)
    told = run(app, ["spark", "plan", "-s", wishes, "-m", posts, "--shards", "3", "--machine-mb", "0"]).output
    assert "of 6 layouts its busiest shard has the least to do" in told
    assert "messages: 80, rejected: 2" in run(app, ["spark", "stats", "-m", posts]).output


def test_the_demo_shows_that_layouts_agree(spark: Any) -> None:
    done = CliRunner().invoke(app, ["spark", "demo", "--subscriptions", "300", "--messages", "300"])
    assert "the sharded layout finds the same: yes" in done.output, done.output


def test_the_bench_compares_answers_before_it_measures(spark: Any, tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "page.md"
    asked = ["spark", "bench", "--subscriptions", "300", "--messages", "400", "--rounds", "1", "--warm", "0"]
    asked += ["--out", str(figures)]
    with patch("nearcast.spark.bench.world.FILES", 2):
        done = CliRunner().invoke(app, asked, catch_exceptions=False)
    [case] = json.loads(figures.read_text())["cases"]
    *found, alone = case["figures"]
    assert {one["pairs"] for one in found} == {found[0]["pairs"]}
    assert (len(found), alone["pairs"], alone["wall"] > 0) == (6, None, True)
    assert [one["batches"] for one in case["streams"]] == [1, 1]
    assert case["memory"][2] >= case["memory"][1] > 0
    CliRunner().invoke(app, ["spark", "bench-page", str(figures), str(figures), "--out", str(page)])
    assert done.stdout.strip() in page.read_text()
    assert "times as fast" in page.read_text()


def test_a_contestant_that_takes_too_long_is_stopped(spark: Any) -> None:
    from nearcast.spark.bench.run import limited

    endless = spark.range(10**12).selectExpr("sum(sqrt(id))")
    assert limited(spark, 0.5, lambda: len(endless.collect())) is None
    assert limited(spark, 600.0, lambda: spark.range(5).count()) == 5
    with pytest.raises(ZeroDivisionError):
        limited(spark, 600.0, lambda: 1 // 0)


def test_what_is_mapped_is_counted_by_folder() -> None:
    from nearcast.spark.bench.cost import mapped_here

    smaps = """7f00-7f10 r--p 00000000 08:01 5    /data/v/index/a.npy
Rss:                 100 kB
Pss:                  50 kB
7f20-7f30 r--p 00000000 08:01 6    /other/b
Rss:                   8 kB
Pss:                   8 kB
"""
    assert mapped_here(smaps, "/data/v") == (50 * 1024, 100 * 1024)
