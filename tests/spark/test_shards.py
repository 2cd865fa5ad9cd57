"""What workers do, without Spark: parts, plan, shards, routes; every layout gives exactly the reference's pairs."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import NearcastError
from nearcast.geo import Space, earth
from nearcast.kernels.jit import PURE
from nearcast.lexicon import Lexicon
from nearcast.records import read_message
from nearcast.spark import shard as shard_module
from nearcast.spark.assembly import assemble, build_shard
from nearcast.spark.layouts import LAYOUTS, REPLICATED
from nearcast.spark.parts import write_part
from nearcast.spark.reader import MessageReader
from nearcast.spark.shard import Job, match_batches, match_routed, route_batches
from nearcast.spark.storage import Manifest, Settings, bounds_of
from nearcast.text import analyzer
from tests.spark import records
from tests.worlds import SQUARE


def table(rows: list[dict[str, Any]], pieces: int = 1) -> list[pa.RecordBatch]:
    names = sorted({name for row in rows for name in row}) or ["id"]
    every = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    step = max(1, -(-len(rows) // pieces))
    return [batch for at in range(0, len(rows), step) for batch in every.slice(at, step).combine_chunks().to_batches()]


def build(folder: Path, parts: list[list[pa.RecordBatch]], space: Space = earth, **options: Any) -> Manifest:
    """As the job does it, one step after the other."""
    given = Settings(bounds=bounds_of(space), index=options.pop("index", "strata"))
    names = [f"{i:05d}" for i in range(len(parts))]
    counts = [write_part(batches, folder, name, given) for batches, name in zip(parts, names, strict=True)]
    manifest = assemble(folder, names, given, sum(bad for _, bad in counts), **options)
    for shard in range(manifest.shards):
        build_shard(folder, names, given, shard)
    manifest.save(folder)
    return manifest


def outcome(folder: Path, manifest: Manifest, batches: list[pa.RecordBatch], ids: str = "long") -> list[dict[str, Any]]:
    job = Job(str(folder), ids, manifest.settings.ids, manifest.limited)  # type: ignore[arg-type]
    if manifest.report.chosen.layout == REPLICATED:
        found = match_batches(job, iter(batches))
    else:
        found = match_routed(job, route_batches(job, iter(batches)))
    return [row for batch in found for row in batch.to_pylist()]


def pairs(rows: list[dict[str, Any]]) -> Counter[tuple[Any, Any]]:
    wanted = [row for row in rows if row["reason"] is None]
    return Counter((row["message_id"], identity) for row in wanted for identity in row["subscription_ids"])


@pytest.mark.parametrize("layout", [REPLICATED, *LAYOUTS])
@settings(max_examples=5 if PURE else 12)
@given(seed=st.integers(0, 10**6), shards=st.integers(1, 9), flat=st.booleans())
def test_every_layout_finds_each_pair_of_the_reference_once(
    layout: str, seed: int, shards: int, flat: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance, folder = Random(seed), tmp_path_factory.mktemp("storage") / "v"
    space = SQUARE if flat else earth
    wishes = records.subscriptions(chance, chance.randint(1, 30), flat)
    posts = records.messages(chance, chance.randint(1, 20), flat)
    batches = table(posts, 2)
    sample = (lambda: batches) if chance.random() < 0.7 else tuple
    parts = [[batch] for batch in table(wishes, chance.randint(1, 3))]
    manifest = build(folder, parts, space, layout=layout, shards=shards, sample=sample)
    assert manifest.subscriptions + manifest.rejected == len(wishes)
    with patch.object(shard_module, "PAIRS_A_BATCH", chance.choice([1, 3, 1 << 20])):  # rows are cut there too
        assert pairs(outcome(folder, manifest, batches)) == Counter(records.truth(wishes, posts, space))


ODD = [
    *[{"id": i, "text": "x", "lon": 0.5, "lat": 0.5} for i in (1, "b", 0, "", None, True, 2.5, 2**63, "ä" * 501, [1])],
    *[{"id": 1, "text": text, "lon": 0.5, "lat": 0.5} for text in ("", " ", None, 5, "Ærø #tag", "x" * 2000)],
    *[{"id": 1, "text": "x", "lon": lon, "lat": 1} for lon in (0, 181.0, "7", "", None, True, 1e999, 10**400, -180)],
    *[{"id": 1, "text": "x", "lon": 0, "lat": 0, "ts": ts} for ts in (None, 5, 1e12, "2020-01-01", "", True, -1e15)],
    {"id": 1, "text": "x", "lon": 0, "lat": 0, "west": 1, "south": 1, "east": 2, "north": 2},
    {"id": 1, "text": "x", "lon": 0, "lat": 0, "west": None},
    {"id": 1, "terms": ["x", "y"], "lon": 0, "lat": 0},
    {"id": 1, "text": "x", "terms": ["y"], "lon": 0, "lat": 0},
    *[{"id": 1, "text": "x", "lon": 0, "lat": 0, "ttl": ttl} for ttl in (5, -1, None, "x")],
]


def _right(line: str) -> Any:
    try:
        message = read_message(json.loads(line), earth, analyzer())
    except NearcastError as error:
        return str(error)
    return str(message.id), -math.inf if message.ts is None else message.ts


def test_lines_are_read_as_the_records_that_they_are() -> None:
    lexicon = Lexicon("unicode")
    lexicon.intern_all(["x", "y", "tag", "#tag", "ærø"])
    lines = [json.dumps(row).replace("Infinity", "1e999") for row in ODD]
    posted, bad = MessageReader(lexicon, earth).read(pa.RecordBatch.from_pydict({"value": [*lines, "{", "", None]}))
    read = [one for lot in posted for one in zip(lot.rows.tolist(), lot.ids, lot.times.tolist(), strict=True)]
    found: dict[int, Any] = {number: (str(identity), time) for number, identity, time in read}
    found |= {number: row.reason for number, row in bad}
    broken = {number: found[number] for number in (len(ODD), len(ODD) + 2)}  # half an object, and nothing
    assert found == dict(enumerate(map(_right, lines))) | broken
    assert any(len(lot.batch) > 5 and isinstance(lot.ids, pa.Array) for lot in posted)  # the encoder's part


def test_rows_that_cannot_be_used_are_kept_aside_with_the_reasons_of_match(tmp_path: Path) -> None:
    good = {"id": "a", "expression": "x", "west": 0.0, "south": 0.0, "east": 1.0, "north": 1.0}
    bad = [{**good, "id": "b", "expression": "NOT x"}, {**good, "id": "a"}, {**good, "id": "c", "west": None}]
    manifest = build(tmp_path / "v", [table([good, *bad]), table([good])], layout="location", shards=2)
    assert (manifest.subscriptions, manifest.rejected) == (1, 4)
    reasons = pa.concat_tables([pa.parquet.read_table(f) for f in sorted((tmp_path / "v/rejected").iterdir())])
    told = reasons["reason"].to_pylist()
    assert [reason.split(";")[0] for reason in told[1:]] == ["id: 'a' given", "west: nothing given", "id: 'a' given"]
    assert "NOT" in told[0] or "required" in told[0] or "negat" in told[0]
    posts = [
        {"id": 1, "text": "x", "lon": 0.5, "lat": 0.5},
        {"id": 2, "text": "  ", "lon": 0.5, "lat": 0.5},
        {"id": 3, "text": "x", "lon": 500.0, "lat": 0.5},
        {"id": 4, "text": "x", "lon": None, "lat": 0.5},
        {"id": None, "text": "x", "lon": 0.5, "lat": 0.5},
    ]
    rows = outcome(tmp_path / "v", manifest, table(posts))
    assert pairs(rows) == Counter({(1, "a"): 1})
    rejected = {row["reason"].split(";")[0] for row in rows if row["reason"]}
    assert {"id: nothing given", "lon: nothing given", "text: only white space given"} < rejected
    assert len(rejected) == 4
    assert all(row["source"] for row in rows if row["reason"])
