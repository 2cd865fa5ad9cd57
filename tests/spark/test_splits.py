"""How files are divided among tasks and read there, without Spark."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.files import FileError
from nearcast.spark import pieces
from nearcast.spark.message_files import files
from nearcast.spark.splits import LEAST_ROWS, MOST_ROWS, OPENING, Group, Piece, spread

ROWS = st.one_of(st.integers(0, 50), st.integers(0, 3 * MOST_ROWS), st.just(LEAST_ROWS))


def groups(sizes: list[int]) -> list[Group]:
    return [Group(f"/f{i // 3}", 1, i % 3, rows) for i, rows in enumerate(sizes)]


@given(sizes=st.lists(ROWS, max_size=40), at_a_time=st.integers(1, 20))
def test_every_row_is_in_one_split_in_order_and_splits_cost_about_the_same(sizes: list[int], at_a_time: int) -> None:
    every = groups(sizes)
    splits = spread(every, at_a_time)
    assert all(splits)
    reached: dict[Group, int] = {}
    for piece in (piece for split in splits for piece in split):
        assert piece.start == reached.get(piece.group, 0) < piece.stop <= piece.group.rows
        reached[piece.group] = piece.stop
    assert list(reached) == [group for group in every if group.rows]
    assert all(reached[group] == group.rows for group in reached)
    costs = [sum(OPENING + piece.stop - piece.start for piece in split) for split in splits]
    share = sum(OPENING + rows for rows in sizes if rows) / max(1, len(splits))
    assert all(cost <= 1.1 * share + OPENING for cost in costs)


@pytest.mark.parametrize(
    ("sizes", "at_a_time", "tasks"),
    [([], 4, 0), ([0, 0], 4, 0), ([10], 4, 1), ([12_500] * 8, 2, 2), ([50_000], 4, 4), ([10] * 10_000, 4, 4)]
    + [([4 * MOST_ROWS], 3, 6)],
)
def test_there_are_tasks_for_all_who_can_work_but_not_for_a_handful_of_rows(
    sizes: list[int], at_a_time: int, tasks: int
) -> None:
    assert len(spread(groups(sizes), at_a_time)) == tasks


def test_groups_are_cut_only_where_it_pays() -> None:
    splits = spread(groups([12_500] * 8), 2)
    assert [len(split) for split in splits] == [4, 4]
    assert [len(split) for split in spread(groups([12_500] * 5), 2)] == [3, 3]


def written(path: Path, rows: int, group: int, start: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = list(range(start, start + rows))
    columns = {"id": numbers, "other": numbers, "text": [f"w{i}" for i in numbers], "lon": [0.5] * rows}
    pq.write_table(pa.table({**columns, "lat": [0.5] * rows}), path, row_group_size=group)
    return path


@given(rows=st.integers(1, 60), group=st.integers(1, 25), batch=st.integers(1, 30), cuts=st.sets(st.integers(0, 60)))
def test_pieces_are_exactly_their_rows(
    rows: int, group: int, batch: int, cuts: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    posts = files(written(folder / "a.parquet", rows, group), written(folder / "b.parquet", 7, 3, rows))
    assert posts.rows == rows + 7
    read = []
    with patch.object(pieces, "ROWS_A_BATCH", batch):
        for one in posts.groups:
            borders = sorted({0, one.rows, *(cut for cut in cuts if cut < one.rows)})
            split = tuple(Piece(one, low, high) for low, high in pairwise(borders))
            for found in pieces.read_pieces(split):
                assert found.schema.names == ["id", "text", "lon", "lat"]
                assert len(found) <= batch
                read += found["id"].to_pylist()
    assert read == list(range(rows + 7))


def test_small_files_are_put_together_and_other_columns_apart(tmp_path: Path) -> None:
    for number in range(10):
        written(tmp_path / f"{number}.parquet", 3, 2, 3 * number)
    pq.write_table(pa.table({"id": ["x"], "terms": [["x"]], "lon": [0], "lat": [0]}), tmp_path / "z.parquet")
    posts = files(tmp_path)
    read = list(pieces.read_pieces(Piece(group, 0, group.rows) for group in posts.groups))
    assert [len(batch) for batch in read] == [30, 1]
    assert posts.ids == "string"  # because one file has such


def test_what_is_listed(tmp_path: Path) -> None:
    written(tmp_path / "in" / "b" / "2.parquet", 2, 2)
    written(tmp_path / "in" / "1.parquet", 1, 1)
    written(tmp_path / "in" / "_temporary" / "9.parquet", 1, 1)
    (tmp_path / "in" / "_SUCCESS").touch()
    expected = (str(tmp_path / "in/1.parquet"), str(tmp_path / "in/b/2.parquet"))
    for given_path in (tmp_path / "in", f"file:{tmp_path}/in", f"file://{tmp_path}/in/", f"{tmp_path}/i*"):
        assert files(given_path).paths == expected
    assert files(*expected).paths == expected
    assert str(files(tmp_path / "in")) == "3 messages in 2 Parquet files"


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    pq.write_table(pa.table({"id": [1], "words": ["x"]}), tmp_path / "columns.parquet")
    (tmp_path / "text.parquet").write_text("id,text")
    written(tmp_path / "days" / "ts=5" / "a.parquet", 1, 1)
    for name, reason in {
        "nowhere.parquet": "nowhere.parquet: cannot be read",
        "none*.parquet": "no file there",
        "empty": "no file there",
        "columns.parquet": "columns.parquet: text or terms is missing",
        "text.parquet": "text.parquet: cannot be read",
        "days": "the folder ts=5 stands for a column",
    }.items():
        with pytest.raises(FileError, match=reason):
            files(tmp_path / name)
    with pytest.raises(FileError, match="what://there: cannot be read"):
        files("what://there")


def test_files_that_change_or_vanish_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", 20, 5)
    whole = path.read_bytes()
    posts = files(path)
    split = [Piece(group, 0, group.rows) for group in posts.groups]
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=r"a\.parquet: cannot be read"):
        list(pieces.read_pieces(split))
    path.write_bytes(whole[:200] + bytes(50) + whole[250:])
    with pytest.raises(FileError, match=r"a\.parquet: cannot be read"):
        list(pieces.read_pieces(split))
    written(path, 21, 5)
    with pytest.raises(FileError, match=r"a\.parquet: not what it was"):
        list(pieces.read_pieces(split))
    path.unlink()
    with pytest.raises(FileError, match=r"a\.parquet: cannot be read \(.*No such file"):
        list(pieces.read_pieces(split))
