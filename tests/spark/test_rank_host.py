"""The process that holds a machine's shards, the tasks that ask it, and the bench of distributions."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from nearcast.cli import app
from nearcast.errors import NearcastError
from nearcast.geo import Box
from nearcast.model import Message, Wish
from nearcast.ranking import Window
from nearcast.spark.ranks import host, tasks
from nearcast.spark.ranks.cluster import Cluster
from nearcast.spark.ranks.plan import RankSettings, made
from nearcast.spark.ranks.sieve import Found
from nearcast.spark.ranks.stream import _as_posts
from nearcast.text import Token

WISH = Wish("w", ("jazz", "live"), 1.0, 1.0, 2, 0.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _decide(tmp_path, ("jazz", "tonight"), ("rain",), ("live", "jazz"))
    return tmp_path


def _decide(folder: Path, *texts: tuple[str, ...]) -> None:
    """A batch that was decided: one wish, messages m0, m1, …"""
    from nearcast.idf import Idf
    from nearcast.lexicon import Lexicon
    from nearcast.ranking import WishColumns

    columns = WishColumns.from_values([WISH], Lexicon(), Idf())
    settings = RankSettings(Window(count=5), "prefix", 2)
    cluster = Cluster(folder, made(settings, columns, _as_posts(columns), Idf()))
    messages = [
        Message(f"m{i}", tuple(Token(word, n) for n, word in enumerate(words)), Box(1.0, 1.0, 1.0, 1.0), None)
        for i, words in enumerate(texts)
    ]
    cluster.decide(0, {"w": WISH}, messages)


def test_tasks_sift_and_settle_through_a_host(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = host.Host(folder)
    monkeypatch.setattr(host, "ask", lambda _folder, *asked: held.answer(*asked))
    settings = RankSettings(Window(count=5), "prefix", 2)
    numbers = pa.record_batch({"id": pa.array([0, 1])})
    sifted = list(tasks._sift(folder, 2, 0, [numbers]))
    assert sum(batch.num_rows for batch in sifted) == 2  # a mark of each; no threshold is published yet
    rows = pa.Table.from_batches(list(tasks._settle(folder, settings, 0, sifted))).to_pylist()
    entered = {(row["wish_id"], row["operation"], row["message_id"], row["because_of"]) for row in rows}
    assert entered == {("w", "enter", "m0", "m0"), ("w", "enter", "m2", "m2")}
    assert [row["seq"] for row in rows] == [1, 2]


def test_whole_shards_are_settled_by_their_numbers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = host.Host(folder)
    monkeypatch.setattr(host, "ask", lambda _folder, *asked: held.answer(*asked))
    settings = RankSettings(Window(count=5), "prefix", 2)
    rows = [batch.num_rows for batch in tasks._settle(folder, settings, 0, [pa.record_batch({"id": pa.array([0, 1])})])]
    assert sorted(rows) == [0, 2]


def test_a_folder_that_is_removed_and_begun_anew_is_another_one(folder: Path) -> None:
    held = host.Host(folder)
    _, _, first, _ = held.answer("settle", 0, 0, Found.none())
    shutil.rmtree(folder)
    _decide(folder, ("rain",), ("jazz",))
    _, _, second, _ = held.answer("settle", 0, 0, Found.none())
    assert (first.to_pylist(), second.to_pylist()) == (["m0", "m2"], ["m1"])


def test_a_process_is_started_for_whoever_asks_first_and_ended(folder: Path) -> None:
    ask = partial(host.ask, folder)
    first = ask("ping")
    try:
        assert first == ask("ping") != os.getpid()
        found, looked_at = ask("probe", 0, 0)
        assert (len(found.rows), looked_at) == (0, 0)
        with pytest.raises(NearcastError, match="failed"):
            ask("probe", 7, 0)  # nobody has decided batch 7
    finally:
        host.stop(folder)
    host.stop(folder)  # there is none any more


def test_the_bench_of_distributions_says_what_each_costs(tmp_path: Path) -> None:
    told = tmp_path / "figures.json"
    sizes = ["--wishes", "150", "--window", "200", "--batch", "40", "--shards", "3", "--keywords", "1,3"]
    result = CliRunner().invoke(
        app, ["spark", "rank-bench", *sizes, "--distributions", "hash,prefix", "--cores", "", "--json", str(told)]
    )
    assert result.exit_code == 0, result.output
    whole, sifted = json.loads(told.read_text())["results"]
    assert (whole["replication"], whole["sent"]) == (1.0, 3.0)
    assert sifted["sent"] <= 3.0
    assert whole["changes"] == sifted["changes"] > 0
    assert np.isfinite(sifted["us"])
