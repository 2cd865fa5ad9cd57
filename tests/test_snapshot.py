"""Snapshots: what is written comes back mapped; what is damaged or foreign is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nearcast import indexes, snapshot
from nearcast.errors import SnapshotError
from nearcast.indexes.pool import reserved
from tests.worlds import flat_subscriptions

ARRAYS = {"a": np.arange(10, dtype=np.int64), "b": np.zeros((0, 4)), "c": np.eye(3, dtype=np.float32)}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    snapshot.save(tmp_path / "s", ARRAYS, {"n": 1})
    return tmp_path / "s"


def test_there_and_back(saved: Path) -> None:
    arrays, meta = snapshot.load(saved, check=True)
    assert meta == {"n": 1}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_mapped_arrays_are_writable_but_never_written_back(saved: Path) -> None:
    arrays, _ = snapshot.load(saved)
    arrays["a"][0] = 99
    assert snapshot.load(saved)[0]["a"][0] == 0


def test_a_new_snapshot_replaces_the_old_one(saved: Path) -> None:
    snapshot.save(saved, {"a": np.ones(1)}, {"n": 2})
    assert snapshot.load(saved)[1] == {"n": 2}
    assert [p.name for p in saved.parent.iterdir()] == ["s"]


def test_a_folder_that_is_no_snapshot_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(SnapshotError, match="is not a snapshot; it is left"):
        snapshot.save(tmp_path / "mine", ARRAYS, {})


def _file(saved: Path, name: str) -> Path:
    header = json.loads(json.loads((saved / "header.json").read_text())["header"])
    return saved / header["arrays"][name]["file"]


def test_damage_is_told(saved: Path) -> None:
    file = _file(saved, "a")
    good = file.read_bytes()
    file.write_bytes(good[:-8])
    with pytest.raises(SnapshotError, match="array a is missing or truncated"):
        snapshot.load(saved)
    file.write_bytes(good[:-1] + b"\x07")
    with pytest.raises(SnapshotError, match="array a is damaged"):
        snapshot.load(saved, check=True)
    np.save(file, np.zeros(10))
    with pytest.raises(SnapshotError, match="the header says otherwise"):
        snapshot.load(saved)
    file.unlink()
    with pytest.raises(SnapshotError, match="array a is missing"):
        snapshot.load(saved)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"header": 3}', '{"crc32": 1, "header": "{}"}', "null"])
def test_a_foreign_header_is_told(saved: Path, text: str) -> None:
    (saved / "header.json").write_text(text)
    with pytest.raises(SnapshotError, match="not a nearcast snapshot"):
        snapshot.load(saved)


def test_a_changed_header_and_another_version_are_told(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = saved / "header.json"
    header.write_text(header.read_text().replace('\\"n\\": 1', '\\"n\\": 2'))
    with pytest.raises(SnapshotError, match="damaged or foreign"):
        snapshot.load(saved)
    monkeypatch.setattr(snapshot, "VERSION", 99)
    snapshot.save(saved, ARRAYS, {})
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match="format version 99 found, 1 can be read"):
        snapshot.load(saved)


def test_an_index_of_another_version_is_told(tmp_path: Path) -> None:
    indexes.build("scan", flat_subscriptions([])).save(tmp_path / "i")
    assert indexes.load(tmp_path / "i").report().live == 0
    snapshot.save(tmp_path / "i", {}, {"index": "newer", "options": {}})
    with pytest.raises(SnapshotError, match="index 'newer' saved; this version has scan"):
        indexes.load(tmp_path / "i")


def test_a_large_array_can_grow_where_it_is_mapped(tmp_path: Path) -> None:
    """Nothing is copied, the file stays as it is, and what lies behind is zero."""
    large = np.arange(60_001 * 2, dtype=np.int64).reshape(-1, 2)
    snapshot.save(tmp_path / "s", {"large": large}, {})
    arrays, _ = snapshot.load(tmp_path / "s", check=True)
    longer = reserved(arrays["large"], 200_000)
    assert longer.ctypes.data == arrays["large"].ctypes.data
    np.testing.assert_array_equal(longer[: len(large)], large)
    assert not longer[len(large) : 200_000].any()
    longer[:200_000] = 7
    assert (arrays["large"] == 7).all()
    del arrays
    assert (longer[:200_000] == 7).all()
    np.testing.assert_array_equal(snapshot.load(tmp_path / "s")[0]["large"], large)
