"""What a Python worker holds and does: one shard mapped into memory, messages in, pairs out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast import indexes, snapshot
from nearcast.model import Id
from nearcast.spark.edge import Refused
from nearcast.spark.reader import MessageReader, Posted
from nearcast.spark.routes import Flags, Posts, Route, any_of, restored
from nearcast.spark.storage import IdKind, Manifest, ids_from_arrays, load_lexicon

SHARD = "_shard"
WANTED = "subscription_ids"
SENT = "_sent"  # the shards that a message was sent to, as bits

_TYPES = {"string": pa.string(), "long": pa.int64()}

PAIRS_A_BATCH = 1 << 20
"""Pairs in one Arrow batch of results, and so the most in one row."""


class Version:
    """What all shards of a version share: settings, lexicon, route."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = Manifest.load(folder)
        self.reader = MessageReader(load_lexicon(folder), self.manifest.settings.space)
        self._route: Route | None = None
        self._shards: dict[int, Shard] = {}

    @property
    def route(self) -> Route:
        if self._route is None:
            arrays, meta = snapshot.load(self.folder / "route")
            self._route = restored(meta, [arrays[str(i)] for i in range(len(arrays))])
        return self._route

    def shard(self, number: int) -> Shard:
        if number not in self._shards:
            self._shards[number] = Shard(self.folder / f"shard-{number:03d}", number)
        return self._shards[number]

    def sent(self, posted: Posted) -> Flags:
        """[messages, shards] where each message must go."""
        batch = posted.batch
        flags = self.route.posts(Posts(batch.boxes, batch.term_from, batch.terms))
        return flags if batch.message is None else any_of(flags, batch.message, len(batch))


class Shard:
    """Subscriptions of one shard."""

    def __init__(self, folder: Path, number: int) -> None:
        arrays, _ = snapshot.load(folder / "subscriptions")
        self.number = number
        self.index = indexes.load(folder / "index")
        self.ids = ids_from_arrays(arrays)
        self.most: NDArray[np.float64] = arrays["most"]
        self._expires: NDArray[np.float64] = arrays["expires"]
        self._kept: Flags = arrays["kept"]
        self._some_expire = bool(np.isfinite(self._expires).any())

    def match(self, posted: Posted, sent: Flags | None = None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Messages and slots that go together. Of all shards that see a pair, the first one reports it."""
        message, slot = self.index.match(posted.batch)
        if self._some_expire:
            in_time = posted.times[message] < self._expires[slot]
            message, slot = message[in_time], slot[in_time]
        if sent is not None and len(message):
            common = sent[message] & self._kept[slot]
            ours = common.argmax(axis=1) == self.number
            message, slot = message[ours], slot[ours]
        return message, slot


_opened: dict[Path, Version] = {}


def opened(folder: str) -> Version:
    """The version, kept in this process until another version of the same storage is asked for."""
    path = Path(folder)
    held = _opened.get(path.parent)
    if held is None or held.folder != path:
        held = _opened[path.parent] = Version(path)
    return held


@dataclass(frozen=True, slots=True)
class Job:
    """What is sent to the workers: a path and names, nothing large."""

    folder: str
    message_ids: IdKind
    subscription_ids: IdKind
    limited: bool
    watermark: float | None = None  # on a stream: messages of an earlier time are late
    counting: bool = False  # on a stream: a row of counts after every Arrow batch

    def schema(self) -> pa.Schema:
        """Columns of an outcome: a message with those who want it, or a rejected row with its reason.

        A row of its own for every pair would cost Spark more than finding the pair costs us.
        """
        fields = [("message_id", _TYPES[self.message_ids]), (WANTED, pa.list_(_TYPES[self.subscription_ids]))]
        if self.limited:
            fields += [("_ts", pa.float64()), ("_most", pa.list_(pa.float64()))]
        fields += [("reason", pa.string()), ("source", pa.string())]
        if self.counting:
            fields += [("messages", pa.int64()), ("late", pa.int64()), ("latest", pa.float64())]
        return pa.schema(fields)


def match_batches(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replicated: every message meets all subscriptions."""
    version = opened(job.folder)
    shard = version.shard(0)
    for batch in batches:
        posted, bad = version.reader.read(batch)
        for lot in posted:
            message, slot = shard.match(lot)
            if job.watermark is not None:
                in_time = ~_late(lot, job.watermark)[message]
                message, slot = message[in_time], slot[in_time]
            yield from _pairs(job, shard, lot, message, slot)
        if bad:
            yield _rejections(job, [row for _, row in bad])
        if job.counting:
            yield _counts(job, posted)


def _late(posted: Posted, watermark: float) -> NDArray[np.bool_]:
    """A message without a time is never late."""
    return (posted.times < watermark) & np.isfinite(posted.times)


def _counts(job: Job, posted: Sequence[Posted]) -> pa.RecordBatch:
    """How many messages came, how many of them late, and the latest time among them."""
    mark = -np.inf if job.watermark is None else job.watermark
    latest = max((float(lot.times.max(initial=-np.inf)) for lot in posted), default=-np.inf)
    told = {
        "messages": sum(len(lot.batch) for lot in posted),
        "late": int(sum(_late(lot, mark).sum() for lot in posted)),
        "latest": latest if np.isfinite(latest) else None,
    }
    return pa.RecordBatch.from_pylist([told], schema=job.schema())


def route_batches(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Every row once for each shard that must see it. Rows that are no messages go to shard 0, to be rejected."""
    version = opened(job.folder)
    for batch in batches:
        posted, bad = version.reader.read(batch)
        for lot in posted:
            flags = version.sent(lot)
            row, shard = np.nonzero(flags)
            yield _routed(batch, lot.rows[row], shard, flags[row])
        if bad:
            rows = np.array([number for number, _ in bad])
            nowhere = np.zeros((len(rows), version.route.shards), np.bool_)
            yield _routed(batch, rows, np.zeros(len(rows), np.intp), nowhere)


def match_routed(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sharded: rows of `route_batches`, each against the shard that it names."""
    version = opened(job.folder)
    for batch in batches:
        shards = np.asarray(batch[SHARD])
        sent = _flags(batch[SENT], version.route.shards)
        rows = batch.drop_columns([SHARD, SENT])
        for number in np.unique(shards).tolist():
            here = np.flatnonzero(shards == number)
            posted, bad = version.reader.read(rows.take(pa.array(here)))
            shard = version.shard(number)
            for lot in posted:
                yield from _pairs(job, shard, lot, *shard.match(lot, sent[here[lot.rows]]))
            if bad:
                yield _rejections(job, [row for _, row in bad])


def _pairs(
    job: Job, shard: Shard, posted: Posted, message: NDArray[np.int32], slot: NDArray[np.int32]
) -> Iterator[pa.RecordBatch]:
    """A row for each message that somebody wants, more for one that very many want."""
    if (message[1:] < message[:-1]).any():
        order = np.argsort(message, kind="stable")
        message, slot = message[order], slot[order]
    ids = _ids(posted.ids, job.message_ids)
    for start in range(0, len(message), PAIRS_A_BATCH):
        part = slice(start, start + PAIRS_A_BATCH)
        yield _wanted(job, shard, posted, ids, message[part], slot[part])


def _wanted(
    job: Job, shard: Shard, posted: Posted, ids: pa.Array, message: NDArray[np.int32], slot: NDArray[np.int32]
) -> pa.RecordBatch:
    first = np.concatenate([[0], np.flatnonzero(message[1:] != message[:-1]) + 1]).astype(np.int32)
    starts = pa.array(np.append(first, np.int32(len(message))))
    rows = message[first]
    schema = job.schema()
    wanted = shard.ids.take(pa.array(slot)).cast(_TYPES[job.subscription_ids])
    columns = [ids.take(pa.array(rows)), pa.ListArray.from_arrays(starts, wanted)]
    if job.limited:
        columns += [pa.array(posted.times[rows]), pa.ListArray.from_arrays(starts, pa.array(shard.most[slot]))]
    columns += [pa.nulls(len(rows), field.type) for field in list(schema)[len(columns) :]]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _ids(ids: Sequence[Id] | pa.Array, kind: IdKind) -> pa.Array:
    if isinstance(ids, pa.Array):
        return ids.cast(_TYPES[kind])
    return pa.array([str(identity) for identity in ids] if kind == "string" else list(ids), _TYPES[kind])


def _rejections(job: Job, bad: Sequence[Refused]) -> pa.RecordBatch:
    schema = job.schema()
    given: dict[str, Any] = {"reason": [row.reason for row in bad], "source": [row.source for row in bad]}
    columns = [
        pa.array(given[field.name], field.type) if field.name in given else pa.nulls(len(bad), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _routed(batch: pa.RecordBatch, rows: NDArray[Any], shard: NDArray[np.intp], flags: Flags) -> pa.RecordBatch:
    chosen = batch.take(pa.array(rows))
    bits = np.packbits(flags, axis=1)
    width = bits.shape[1]
    sent = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(rows), [None, pa.py_buffer(bits.tobytes())])
    names = [*batch.schema.names, SHARD, SENT]
    return pa.RecordBatch.from_arrays(
        [*chosen.columns, pa.array(shard.astype(np.int32)), sent.cast(pa.binary())], names=names
    )


def _flags(bits: pa.Array, shards: int) -> Flags:
    width = (shards + 7) // 8
    data = np.frombuffer(b"".join(bits.to_pylist()), np.uint8).reshape(-1, width)
    return np.unpackbits(data, axis=1, count=shards).astype(np.bool_)
