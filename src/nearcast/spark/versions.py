"""Subscriptions that change: a base and changes make the next version; a pointer says which one counts.

Versions are folders of `storage`, never changed once they are published; the pointer is one small file,
exchanged by an atomic rename, so that whoever reads it gets one whole version.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast import indexes, snapshot
from nearcast.columns import SubscriptionColumns
from nearcast.errors import NearcastError, RowError, SnapshotError
from nearcast.files import SUBSCRIPTIONS, Role, Row
from nearcast.model import Id, Subscription
from nearcast.records import read_id
from nearcast.spark.edge import Refused, refused, rows_of
from nearcast.spark.layouts import REPLICATED
from nearcast.spark.parts import read_wish
from nearcast.spark.storage import (
    IdKind,
    Manifest,
    Settings,
    ids_from_arrays,
    ids_to_arrays,
    load_lexicon,
    save_lexicon,
    save_rejected,
)
from nearcast.text import analyzer

POINTER = "CURRENT"
OPERATION = "operation"
OPERATIONS = ("put", "remove")
CHANGES = Role("changes", (OPERATION, *SUBSCRIPTIONS.columns), (("id",),))
KEPT = 8
"""Versions that stay on storage; a batch that is tried again may need an earlier one."""


@dataclass(slots=True)
class Changes:
    """The last word on each id: a subscription to put, or None to remove; and the rows that say neither."""

    last: dict[str, Subscription | None] = field(default_factory=dict)
    bad: list[Refused] = field(default_factory=list)

    @classmethod
    def read(cls, batches: Iterable[pa.RecordBatch], settings: Settings) -> Changes:
        """Rows in order: `operation` (put, unless given, or remove), `id`, and the columns of a subscription."""
        changes, analysis = cls(), analyzer(settings.analyzer)
        for batch in batches:
            for _, row in rows_of(batch, CHANGES):
                try:
                    if operation_of(row) == "remove":
                        changes.last[str(read_id(row.record or {}))] = None
                    else:
                        wish = read_wish(row, settings, analysis)
                        if settings.ids == "long" and not isinstance(wish.id, int):
                            raise RowError(f"id: {wish.id!r} given; the others are integers, and so must this be")
                        changes.last[str(wish.id)] = wish
                except NearcastError as error:
                    changes.bad.append(refused(row, str(error)))
        return changes


def operation_of(row: Row) -> str:
    if row.record is None:
        raise RowError(row.reason)
    given = row.record.get(OPERATION) or "put"
    if given not in OPERATIONS:
        raise RowError(f"operation: {str(given)[:40]!r} given; put or remove needed")
    return str(given)


class Versions:
    """The versions of one storage folder. One process changes them at a time; any may read."""

    def __init__(self, storage: str | Path) -> None:
        self.storage = Path(str(storage).removeprefix("file:")).absolute()

    def current(self) -> Path:
        """The folder of the version that counts."""
        return self.storage / str(self._pointer()["version"])

    def applied(self) -> str | None:
        """What the last `change` said of itself."""
        return self._pointer().get("applied")

    def publish(self, folder: Path, applied: str | None = None) -> None:
        """Make a finished version the current one."""
        Manifest.load(folder)  # raises if it is not finished
        part = self.storage / f".{POINTER}.{uuid.uuid4().hex[:8]}"
        part.write_text(json.dumps({"version": folder.name, "applied": applied}))
        os.replace(part, self.storage / POINTER)
        self._forget()

    def change(self, batches: Iterable[pa.RecordBatch], applied: str | None = None) -> Path:
        """The next version, published. The same `applied` again changes nothing: a batch may come twice."""
        if applied is not None and self.applied() == applied:
            return self.current()
        before = self.current()
        manifest = Manifest.load(before)
        if manifest.report.chosen.layout != REPLICATED:
            raise NearcastError(f"{before}: layout {manifest.report.chosen.layout}; only replicated ones can change")
        number = int(before.name.split("-")[1], 10) + 1 if before.name.startswith("c-") else 1
        after = self.storage / f"c-{number:08d}-{uuid.uuid4().hex[:8]}"
        _write_changed(before, after, manifest, Changes.read(batches, manifest.settings))
        self.publish(after, applied)
        return after

    def _pointer(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.storage / POINTER).read_text()))
        except (OSError, ValueError) as error:
            raise SnapshotError(f"{self.storage}: no version is published there ({error})") from None

    def _forget(self) -> None:
        """Remove the oldest changed versions; those that `build` made belong to whoever asked for them."""
        for old in sorted(self.storage.glob("c-*"))[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def _write_changed(before: Path, after: Path, manifest: Manifest, changes: Changes) -> None:
    after.mkdir(parents=True)
    settings = manifest.settings
    lexicon, index = load_lexicon(before), indexes.load(before / "shard-000" / "index")
    held, _ = snapshot.load(before / "shard-000" / "subscriptions")
    table = _Table(held, settings.ids)
    index.remove(gone := table.release(list(changes.last)))
    wishes = [wish for wish in changes.last.values() if wish is not None]
    slots = index.insert(SubscriptionColumns.from_values(wishes, lexicon, space=settings.space))
    table.take(slots, wishes)
    save_lexicon(after, lexicon)
    index.save(after / "shard-000" / "index")
    snapshot.save(after / "shard-000" / "subscriptions", table.arrays(), {})
    save_rejected(after, "changes", changes.bad)
    count = manifest.subscriptions - len(gone) + len(wishes)
    report = replace(manifest.report, subscriptions=count, entries=index.report().entries)
    told = replace(manifest, version=after.name, subscriptions=count, rejected=len(changes.bad), report=report)
    told.save(after)


class _Table:
    """Ids and endings by slot, under change."""

    def __init__(self, arrays: dict[str, NDArray[Any]], kind: IdKind) -> None:
        self._kind = kind
        self._ids = ids_from_arrays(arrays)
        self._live, self._expires, self._most = (arrays[name].copy() for name in ("live", "expires", "most"))

    def release(self, ids: list[str]) -> NDArray[np.int32]:
        """The slots of those among the ids that are held; they are free from now on."""
        known = pc.if_else(pa.array(self._live), self._ids, None) if len(self._ids) else self._ids
        wanted = pa.array([i for i in ids if _fits(i, self._kind)], pa.large_string()).cast(known.type)
        found = pc.index_in(wanted, value_set=known).drop_null()
        slots = np.asarray(found, np.int32)
        self._live[slots] = False
        return slots

    def take(self, slots: NDArray[np.int32], wishes: list[Subscription]) -> None:
        top = max(len(self._live), int(slots.max(initial=-1)) + 1)
        more = top - len(self._live)
        self._live = np.concatenate([self._live, np.zeros(more, np.bool_)])
        self._expires = np.concatenate([self._expires, np.full(more, np.inf)])
        self._most = np.concatenate([self._most, np.full(more, np.inf)])
        self._live[slots] = True
        self._expires[slots] = [np.inf if wish.expires is None else wish.expires for wish in wishes]
        self._most[slots] = [np.inf if wish.max_events is None else wish.max_events for wish in wishes]
        place = np.arange(top)
        place[len(self._ids) :] = 0
        place[slots] = len(self._ids) + np.arange(len(slots))
        fresh = _ids([wish.id for wish in wishes], self._kind)
        every = pa.concat_arrays([self._ids, fresh])
        self._ids = every.take(pa.array(place)) if top else every

    def arrays(self) -> dict[str, NDArray[Any]]:
        return ids_to_arrays(self._ids, self._kind) | {
            "live": self._live,
            "expires": self._expires,
            "most": self._most,
            "kept": np.ones((len(self._live), 1), np.bool_),
        }


def _ids(ids: list[Id], kind: IdKind) -> pa.Array:
    return pa.array(ids, pa.int64()) if kind == "long" else pa.array([str(i) for i in ids], pa.large_string())


def _fits(identity: str, kind: IdKind) -> bool:
    return kind == "string" or identity.lstrip("-").isdigit()
