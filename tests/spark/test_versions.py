"""Versions without Spark: base and changes give what a build of the result would; readers see whole versions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import NearcastError, SnapshotError
from nearcast.kernels.jit import PURE
from nearcast.spark.storage import Manifest
from nearcast.spark.versions import KEPT, Versions
from tests.spark import records
from tests.spark.test_shards import build, outcome, pairs, table


@settings(max_examples=4 if PURE else 12)
@given(seed=st.integers(0, 10**6))
def test_every_version_matches_what_is_then_subscribed(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    chance, storage = Random(seed), tmp_path_factory.mktemp("storage")
    held = {wish["id"]: wish for wish in records.subscriptions(chance, 12)}
    posts = records.messages(chance, 12)
    build(storage / "v", [table(list(held.values()))], layout="replicated")
    versions = Versions(storage)
    versions.publish(storage / "v")
    for step in range(4):
        changes = [{"operation": "put", **wish} for wish in records.subscriptions(chance, 6)]
        for change in changes:
            change["id"] = f"s{chance.randrange(20)}"
        changes += [{"operation": "remove", "id": f"s{chance.randrange(20)}"} for _ in range(3)]
        chance.shuffle(changes)
        folder = versions.change(table(changes), f"q/{step}")
        for change in changes:
            wish = {name: value for name, value in change.items() if name != "operation"}
            if change["operation"] == "remove":
                held.pop(change["id"], None)
            elif records.is_subscription(wish):
                held[change["id"]] = wish
        manifest = Manifest.load(folder)
        good = [wish for wish in held.values() if records.is_subscription(wish)]
        assert manifest.subscriptions == len(good)
        assert pairs(outcome(folder, manifest, table(posts))) == Counter(records.truth(good, posts))
        assert versions.change(table(changes), f"q/{step}") == folder


def test_changes_that_are_none_are_kept_aside(tmp_path: Path) -> None:
    wish = {"id": 1, "expression": "x", "lon": 0.0, "lat": 0.0, "radius_m": 5.0}
    from nearcast.spark.assembly import assemble, build_shard
    from nearcast.spark.parts import write_part
    from nearcast.spark.storage import Settings

    given = Settings(ids="long", counts_events=False)
    write_part(table([wish]), tmp_path / "v", "a", given)
    manifest = assemble(tmp_path / "v", ["a"], given, 0)
    build_shard(tmp_path / "v", ["a"], given, 0)
    manifest.save(tmp_path / "v")
    versions = Versions(tmp_path)
    with pytest.raises(SnapshotError, match="no version is published"):
        versions.current()
    versions.publish(tmp_path / "v")
    rows = [
        '{"id": 2, "expression": "x", "lon": 0, "lat": 0, "radius_m": 5, "max_events": 3}',
        '{"operation": "?"}',
        "{",
    ]
    rows += ['{"id": "two", "expression": "x", "lon": 0, "lat": 0, "radius_m": 5}', '{"operation": "remove"}']
    rows += ['{"id": 0, "expression": "x", "lon": 0, "lat": 0, "radius_m": 5}', '{"id": 1, "operation": "remove"}']
    folder = versions.change(table([{"value": row} for row in rows]))
    reasons = [reason.split(";")[0] for reason in pq.read_table(folder / "rejected")["reason"].to_pylist()]
    assert len(reasons) == 5
    assert {"max_events: 3 given", "operation: '?' given", "id: 'two' given", "id: nothing given"} < set(reasons)
    found = outcome(folder, Manifest.load(folder), table([{"id": 7, "text": "x", "lon": 0.0, "lat": 0.0}]))
    assert pairs(found) == Counter({(7, 0): 1})
    folder = versions.change(table([{"value": '{"id": 0, "operation": "remove"}'}]))
    assert Manifest.load(folder).subscriptions == 0


def test_old_versions_go_and_sharded_ones_cannot_change(tmp_path: Path) -> None:
    wish = {"id": "a", "expression": "x", "lon": 0.0, "lat": 0.0, "radius_m": 5.0}
    build(tmp_path / "v", [table([wish])], layout="replicated")
    build(tmp_path / "w", [table([wish])], layout="hash", shards=2)
    versions = Versions(tmp_path)
    versions.publish(tmp_path / "v")
    for _ in range(KEPT + 3):
        versions.change(table([wish]))
    assert len(list(tmp_path.glob("c-*"))) == KEPT
    versions.publish(tmp_path / "w")
    with pytest.raises(NearcastError, match="only replicated ones can change"):
        versions.change(table([wish]))
