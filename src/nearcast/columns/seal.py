"""Check at the edge, trust inside: every array that a kernel meets went through `seal`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from nearcast.errors import ColumnsError, NearcastError

T = TypeVar("T")


class Rejected(NamedTuple):
    """A row that was left out, and why. The other rows of its batch are served."""

    row: int
    reason: str


def seal(values: ArrayLike, dtype: type[np.generic], what: str) -> NDArray[Any]:
    """The one layout kernels are compiled for: exact dtype, contiguous, writable. Never loses a value."""
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise ColumnsError(f"{what}: not an array of numbers ({error})") from None
    if given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise ColumnsError(f"{what}: {given.dtype} given, {np.dtype(dtype).name} needed")
    sealed = np.require(given, dtype=dtype, requirements=["C", "W"])
    if given.size and given.dtype.kind in "iu" and not np.array_equal(sealed, given):
        raise ColumnsError(f"{what}: a value does not fit {np.dtype(dtype).name}")
    return sealed


def seal_boxes(boxes: ArrayLike) -> NDArray[np.float64]:
    sealed: NDArray[np.float64] = seal(boxes, np.float64, "boxes")
    if sealed.ndim != 2 or sealed.shape[1] != 4:
        raise ColumnsError(f"boxes: shape {sealed.shape} given, [n, 4] (west, south, east, north) needed")
    return sealed


def seal_runs(starts: ArrayLike, values: ArrayLike, n_rows: int, what: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """A CSR pair (int64 starts, int32 values) of n_rows runs, checked from end to end."""
    run_from = seal(starts, np.int64, f"{what}_from")
    run = seal(values, np.int32, what)
    if run_from.shape != (n_rows + 1,) or run.ndim != 1:
        raise ColumnsError(f"{what}_from: {run_from.shape} given, [{n_rows + 1}] (rows + 1) needed")
    if run_from[0] != 0 or run_from[-1] != len(run) or np.any(np.diff(run_from) < 0):
        raise ColumnsError(f"{what}_from: must rise from 0 to the number of {what} ({len(run)})")
    return run_from, run


def bad_boxes(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows that are no closed box: a NaN or infinite side, west > east or south > north."""
    bad = ~np.isfinite(boxes).all(axis=1)
    return bad | (boxes[:, 0] > boxes[:, 2]) | (boxes[:, 1] > boxes[:, 3])


def bad_runs(run_from: NDArray[np.int64], run: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Rows whose terms are negative, or not ascending and distinct."""
    wrong = np.zeros(len(run), dtype=bool)
    wrong[1:] = run[1:] <= run[:-1]
    starts = run_from[:-1][run_from[:-1] < run_from[1:]]
    wrong[starts] = False
    wrong |= run < 0
    total = np.concatenate([[0], np.cumsum(wrong)])
    return np.asarray(total[run_from[1:]] > total[run_from[:-1]])


def refuse(bad: NDArray[np.bool_], what: str) -> None:
    """Raise for the first bad row; flat input comes from programs, which want to know at once."""
    if bad.any():
        raise ColumnsError(f"row {int(np.argmax(bad))}: {what} ({int(bad.sum())} of {len(bad)} rows)")


def take_runs(
    run_from: NDArray[np.int64], run: NDArray[np.int32], rows: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The runs of the chosen rows, as a CSR pair of their own."""
    counts = np.diff(run_from)[rows]
    taken_from = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    positions = np.arange(taken_from[-1]) + np.repeat(run_from[rows] - taken_from[:-1], counts)
    return taken_from, run[positions]


def read_rows(
    records: Iterable[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], T]
) -> tuple[list[T], list[Rejected]]:
    """What `read` makes of the records, and the rows that it refuses."""
    values: list[T] = []
    rejected: list[Rejected] = []
    for row, record in enumerate(records):
        try:
            values.append(read(record))
        except NearcastError as error:
            rejected.append(Rejected(row, str(error)))
    return values, rejected


def flat_to_arrow(boxes: NDArray[np.float64], term_from: NDArray[np.int64], terms: NDArray[np.int32]) -> pa.Table:
    """One line a row, as `flat_from_arrow` reads it."""
    sides = {name: boxes[:, i] for i, name in enumerate(("west", "south", "east", "north"))}
    lists = pa.LargeListArray.from_arrays(pa.array(term_from), pa.array(terms))
    return pa.table({**sides, "terms": lists})


def flat_from_arrow(
    table: pa.Table, reasons: list[tuple[str, Callable[..., NDArray[np.bool_]]]]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32], NDArray[np.intp], list[Rejected]]:
    """Boxes and sorted terms of the good rows, which rows these are, and the rejected ones.

    Reads `west, south, east, north` or `lon, lat`, and `terms` (a list of integers).
    """
    names = ("west", "south", "east", "north") if "west" in table.column_names else ("lon", "lat") * 2
    missing = [name for name in (*names, "terms") if name not in table.column_names]
    if missing:
        raise ColumnsError(f"columns {table.column_names} given; terms and west,south,east,north or lon,lat needed")
    sides = [table[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in names]
    boxes = np.ascontiguousarray(np.stack(sides, axis=1))
    lists = table["terms"].combine_chunks()
    lists = lists.cast(pa.large_list(pa.int32()))
    term_from = np.concatenate([[0], np.cumsum(lists.value_lengths().fill_null(0).to_numpy())]).astype(np.int64)
    terms = sort_runs(term_from, lists.flatten().to_numpy(zero_copy_only=False).astype(np.int32))
    absent = lists.is_null().to_numpy(zero_copy_only=False)
    checks = [
        ("terms are missing", absent),
        *((why, check(boxes, term_from, terms)) for why, check in reasons),
    ]
    rejected = [
        Rejected(int(row), next(why for why, bad in checks if bad[row]))
        for row in np.flatnonzero(np.logical_or.reduce([bad for _, bad in checks]))
    ]
    keep = np.setdiff1d(np.arange(len(boxes)), [r.row for r in rejected])
    kept_from, kept = take_runs(term_from, terms, keep)
    return boxes[keep], kept_from, kept, keep, rejected


def sort_runs(run_from: NDArray[np.int64], run: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same runs, each ascending: row number and term as one sortable 64-bit key."""
    rows = np.repeat(np.arange(len(run_from) - 1, dtype=np.int64), np.diff(run_from))
    order = np.lexsort((run, rows))
    return np.ascontiguousarray(run[order])
