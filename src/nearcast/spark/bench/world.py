"""The world that contestants are compared on: generated tweets, and a version built of their subscriptions."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast import snapshot
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.columns.parts import to_arrays
from nearcast.spark.assembly import assemble, build_shard
from nearcast.spark.build import Built
from nearcast.spark.storage import Settings, ids_to_arrays, texts_to_arrays
from nearcast.workloads import messages as generate_messages
from nearcast.workloads import subscriptions as generate_subscriptions

SETTINGS = Settings(ids="long", counts_events=False)
FILES = 40
"""Of the stream: one is one micro-batch."""


@dataclass(frozen=True, slots=True)
class World:
    """Files of a world. `posts` have text, and their words apart for joins, which have no analyzer."""

    posts: Path
    wishes: Path
    stream: Path  # folder of files, each a tenth of the posts
    built: Built
    messages: int
    subscriptions: int


def world(folder: Path, subscriptions: int, messages: int) -> World:
    """What lies in the folder already, else made."""
    at = folder / f"{subscriptions}-{messages}"
    if not at.exists():
        part = at.with_name(f".{at.name}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _make(part, subscriptions, messages)
        part.rename(at)
    built = Built.load(at / "storage" / "v")
    return World(at / "posts.parquet", at / "wishes.parquet", at / "stream", built, messages, subscriptions)


def _make(folder: Path, n_subscriptions: int, n_messages: int) -> None:
    batch = generate_messages(n_messages, 1)
    wishes = generate_subscriptions(batch, n_subscriptions, 2)
    posts = _posts(batch)
    pq.write_table(posts, folder / "posts.parquet", row_group_size=max(1, n_messages // 8))
    pq.write_table(_wishes(wishes), folder / "wishes.parquet", row_group_size=max(1, n_subscriptions // 8))
    (folder / "stream").mkdir()
    step = max(1, n_messages // 10)
    for number in range(FILES):
        piece = posts.select(["id", "text", "lon", "lat"]).slice(step * (number % 10), step)
        pq.write_table(piece, folder / "stream" / f"{number:03d}.parquet")
    _build(folder / "storage" / "v", batch, wishes)


def _build(folder: Path, batch: MessageBatch, wishes: SubscriptionColumns) -> None:
    """As `build` does it, from columns instead of rows: rows of millions would be parsed for nothing."""
    names = _words_of(np.arange(1 + max(batch.terms.max(initial=0), wishes.terms.max(initial=0))))
    endless = np.full(len(wishes), np.inf)
    arrays = to_arrays(wishes) | ids_to_arrays(pa.array(np.arange(len(wishes))), SETTINGS.ids)
    arrays |= texts_to_arrays("word", names) | {"expires": endless, "most": endless}
    snapshot.save(folder / "parts" / "all", arrays, {})
    manifest = assemble(folder, ["all"], SETTINGS, 0, layout="replicated")
    build_shard(folder, ["all"], SETTINGS, 0)
    manifest.save(folder)


def _posts(batch: MessageBatch) -> pa.Table:
    words = _runs(batch.term_from, batch.terms)
    places = {"lon": batch.boxes[:, 0], "lat": batch.boxes[:, 1]}
    return pa.table({"id": np.arange(len(batch)), "text": pc.binary_join(words, " "), **places, "terms": words})


def _wishes(wishes: SubscriptionColumns) -> pa.Table:
    """`rarest` is the required word that the fewest subscriptions have: what a good join is made on."""
    sides = {name: wishes.boxes[:, i] for i, name in enumerate(("west", "south", "east", "north"))}
    frequency = np.bincount(wishes.terms).astype(np.int64)
    marked = (frequency[wishes.terms] << 32) | wishes.terms
    rarest = (np.minimum.reduceat(marked, wishes.term_from[:-1]) & 0xFFFFFFFF) if len(wishes) else marked
    words = _runs(wishes.term_from, wishes.terms)
    return pa.table({"id": np.arange(len(wishes)), **sides, "terms": words, "rarest": _words_of(rarest)})


def _runs(term_from: NDArray[np.int64], terms: NDArray[np.int32]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(term_from.astype(np.int32)), _words_of(terms))


def _words_of(terms: NDArray[np.integer]) -> pa.Array:
    return pc.binary_join_element_wise("w", pc.cast(pa.array(terms), pa.string()), "")
