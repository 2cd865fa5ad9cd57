"""Readers for real, geo-tagged texts: measured on, never shipped.

The files lie outside the project (`data_folder`). Each has columns `id`, `lat`, `lon` (degrees), `text` or,
where the words were made anonymous, `terms`, and `ts` where the source has a time. Texts go through the
project's analyzer, the only judge of what a word is; since it is slow on a million rows, its result is kept
in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import NearcastError
from nearcast.workloads.sampling import require, run_starts

_CACHE_FROM_ROWS = 20_000  # fewer rows are analysed as quickly as they are found
_PROBE_ROWS = 256  # rows whose words name the analyzer's behaviour in the cache key


class DataAbsent(NearcastError):  # noqa: N818 - a state of this machine, not a mistake
    """Real data that is not on this machine; the message says where it was looked for."""


class RealSource(NamedTuple):
    """One file of real messages."""

    file: str
    what: str
    anonymous: bool = False  # integer `terms` instead of `text`


class RealSet(NamedTuple):
    """Real messages. Row i of every column belongs to message i; a message may be left without words."""

    messages: MessageBatch  # points, longitude and latitude in degrees
    words: list[str] | None  # [term]  word of each term; None where the source is anonymous
    ids: NDArray[np.int64]  # [n]
    ts: NDArray[np.datetime64] | None  # [n]     datetime64[ms], NaT where unknown; None without a time column


REAL_SETS: dict[str, RealSource] = {
    "tweets_terms": RealSource("tweets_terms.parquet", "geo-tagged tweets, anonymous", anonymous=True),
    "gn_gnis": RealSource("gn_gnis.parquet", "US Board on Geographic Names: the papers' GN"),
    "poi_us": RealSource("poi_us.parquet", "US points of interest, very frequent category words"),
    "airbnb_descriptions": RealSource("airbnb_descriptions.parquet", "long texts of about 45 cities"),
    "airbnb_titles": RealSource("airbnb_titles.parquet", "short texts in many languages"),
    "gn_world_cities": RealSource("gn_world_cities.parquet", "city names in many scripts"),
    "noaa_storm_events": RealSource("noaa_storm_events.parquet", "storm narratives"),
}


def data_folder() -> Path | None:
    """The folder with real data: $NEARCAST_DATA, else ../shared/data of the project; None when absent."""
    return next((folder for folder in _candidates() if folder.is_dir()), None)


def _candidates() -> list[Path]:
    """Where real data may lie, in order. A set environment variable is the only answer."""
    named = os.environ.get("NEARCAST_DATA")
    if named:
        return [Path(named).expanduser()]
    here = Path.cwd()
    roots = [folder for folder in (here, *here.parents) if (folder / "pyproject.toml").is_file()]
    roots.append(Path(__file__).resolve().parents[3])  # <root>/src/nearcast/workloads/real.py
    return list(dict.fromkeys(root.parent / "shared" / "data" for root in roots))


def read_real(name: str, limit: int | None = None, *, analyzer_name: str = "unicode") -> RealSet:
    """The first `limit` rows (all by default) of a set of `REAL_SETS`, as columns.

    Terms are dense, numbered by first appearance in a text (anonymous ones in their own order).
    """
    require(name in REAL_SETS, f"no real set {name!r}; there are {', '.join(REAL_SETS)}")
    require(limit is None or limit >= 0, f"limit must not be negative, not {limit}")
    source = REAL_SETS[name]
    path = _find(source.file)
    table = _head(path, limit)
    if source.anonymous:
        words, (term_from, terms) = None, _dense_lists(table["terms"])
    else:
        words, term_from, terms = _analysed(path, table["text"], analyzer_name)
    lon, lat = (table[axis].to_numpy() for axis in ("lon", "lat"))
    messages = MessageBatch.from_flat(np.column_stack((lon, lat, lon, lat)), term_from, terms)
    ts = table["ts"].to_numpy().astype("datetime64[ms]") if "ts" in table.column_names else None
    return RealSet(messages, words, table["id"].to_numpy().astype(np.int64), ts)


def real_texts(name: str, rows: NDArray[np.intp]) -> pa.Array:
    """The raw texts of these rows of a set that has texts."""
    require(name in REAL_SETS and not REAL_SETS[name].anonymous, f"{name!r} is no real set with texts")
    column = pq.read_table(_find(REAL_SETS[name].file), columns=["text"])["text"]
    return column.take(pa.array(rows)).combine_chunks()


def _find(file: str) -> Path:
    folder = data_folder()
    if folder is None or not (folder / file).is_file():
        looked = ", ".join(str(candidate / file) for candidate in _candidates())
        raise DataAbsent(f"{file} is not here: looked for {looked}; set NEARCAST_DATA to the folder that has it")
    return folder / file


def _head(path: Path, limit: int | None) -> pa.Table:
    """The first rows, decoding no more row groups than they need."""
    file = pq.ParquetFile(path)
    needed = file.metadata.num_row_groups
    if limit is not None:
        sizes = [file.metadata.row_group(group).num_rows for group in range(needed)]
        needed = int(np.searchsorted(np.cumsum(sizes), min(limit, sum(sizes)))) + 1
    return file.read_row_groups(list(range(needed))).slice(0, limit)


def _dense_lists(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Lists of non-negative integers as runs, with the integers in use renumbered from 0 in their order."""
    lists = column.combine_chunks()
    counts = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    values = lists.flatten().to_numpy()
    dense = np.cumsum(np.bincount(values) > 0) - 1
    return _distinct_runs(dense[values], counts)


def _distinct_runs(terms: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Runs of `counts[i]` terms each, made ascending and distinct: row and term as one sortable key.

    Sorted and compared by hand: `np.unique` of NumPy 2.4 hashes, which took 50 times as long on 5M keys.
    """
    keys = np.sort((np.repeat(np.arange(len(counts)), counts) << 32) | terms)
    keys = keys[np.diff(keys, prepend=-1) != 0]
    return run_starts(np.bincount(keys >> 32, minlength=len(counts))), (keys & 0xFFFFFFFF).astype(np.int32)


def _analysed(
    path: Path, texts: pa.ChunkedArray, analyzer_name: str
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int32]]:
    """Words, term_from and terms of the texts, from the cache where they are known."""
    from nearcast.text import analyzer

    analyse = analyzer(analyzer_name).words
    kept = _cache_file(path, texts, analyzer_name, analyse) if len(texts) >= _CACHE_FROM_ROWS else None
    if kept is not None and kept.is_file():
        with np.load(kept) as arrays:
            joined = arrays["words"].tobytes().decode()
            return joined.split("\n") if joined else [], arrays["term_from"], arrays["terms"]
    words, term_from, terms = _tokenise(texts, analyse)
    if kept is not None:
        with contextlib.suppress(OSError):  # a read-only home only costs time
            _keep(kept, words, term_from, terms)
    return words, term_from, terms


def _tokenise(
    texts: pa.ChunkedArray, analyse: Callable[[str], Sequence[str]]
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int32]]:
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    found, counts = array("i"), array("i")
    for chunk in texts.chunks:
        for text in chunk:
            words = analyse(text.as_py())
            counts.append(len(words))
            found.extend(map(numbers.__getitem__, words))
    runs = _distinct_runs(np.array(found, dtype=np.int64), np.array(counts, dtype=np.int64))
    return list(numbers), *runs


def _cache_file(
    path: Path, texts: pa.ChunkedArray, analyzer_name: str, analyse: Callable[[str], Sequence[str]]
) -> Path:
    """Named after the file's size and time, the rows, and what the analyzer does with the first of them."""
    stat = path.stat()
    digest = hashlib.blake2b(f"{stat.st_size} {stat.st_mtime_ns} {len(texts)} {analyzer_name}".encode(), digest_size=8)
    for text in islice(texts, _PROBE_ROWS):
        digest.update("\n".join(analyse(text.as_py())).encode() + b"\n")
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "nearcast" / "data" / f"{path.stem}-{analyzer_name}-{digest.hexdigest()}.npz"


def _keep(file: Path, words: list[str], term_from: NDArray[np.int64], terms: NDArray[np.int32]) -> None:
    """Write whole or not at all: other processes may look for the same file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    joined = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
    handle, part = tempfile.mkstemp(dir=file.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as out:
            np.savez(out, words=joined, term_from=term_from, terms=terms)
        os.replace(part, file)
    except BaseException:
        os.unlink(part)
        raise
