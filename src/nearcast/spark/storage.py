"""The folder that driver and workers share: one version of the subscriptions, as snapshots that are mapped.

VERSION/parts/NAME        a partition of subscriptions, parsed, with words of its own
VERSION/rejected/*.parquet   rows that are no subscriptions: reason, source
VERSION/lexicon.arrow     the words of all parts
VERSION/assembly          by part: its terms in the lexicon, and which shard keeps which subscription
VERSION/route             how messages are routed (not when replicated)
VERSION/shard-000         index and subscriptions of a shard
VERSION/manifest.json     written last: a version without it is not there
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.errors import SnapshotError
from nearcast.geo import Space, earth, plane
from nearcast.lexicon import Lexicon
from nearcast.model import Id
from nearcast.spark.edge import Refused
from nearcast.spark.plan import PlanReport

IdKind = Literal["string", "long"]
MANIFEST = "manifest.json"
REJECTED = pa.schema([("reason", pa.string()), ("source", pa.string())])


@dataclass(frozen=True, slots=True)
class Settings:
    """What all subscriptions and messages of a version share."""

    analyzer: str = "unicode"
    bounds: tuple[float, float, float, float] | None = None  # of a plane; None is the earth
    ids: IdKind = "string"  # of subscriptions
    index: str = "strata"
    counts_events: bool = True  # False on a stream, which cannot say which message came first

    @property
    def space(self) -> Space:
        return earth if self.bounds is None else plane(*self.bounds)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a version is."""

    version: str
    settings: Settings
    subscriptions: int
    rejected: int
    shards: int
    limited: bool  # some subscription has a maximum of events
    report: PlanReport

    def save(self, folder: Path) -> None:
        part = folder / f".{MANIFEST}"
        part.write_text(json.dumps(asdict(self)))
        os.replace(part, folder / MANIFEST)

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        try:
            told = json.loads((folder / MANIFEST).read_text())
        except (OSError, ValueError) as error:
            raise SnapshotError(f"{folder}: no finished version of subscriptions ({error})") from None
        bounds = told["settings"]["bounds"]
        settings = Settings(**{**told["settings"], "bounds": tuple(bounds) if bounds else None})
        return cls(**{**told, "settings": settings, "report": PlanReport.from_json(told["report"])})


def bounds_of(space: Space) -> tuple[float, float, float, float] | None:
    b = space.bounds
    return None if space == earth else (b.west, b.south, b.east, b.north)


def save_rejected(folder: Path, name: str, rows: Sequence[Refused]) -> None:
    if rows:
        (folder / "rejected").mkdir(parents=True, exist_ok=True)
        columns = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)]
        part = folder / "rejected" / f".{name}"
        pq.write_table(pa.Table.from_arrays(columns, schema=REJECTED), part)
        os.replace(part, part.with_name(f"{name}.parquet"))


def save_lexicon(folder: Path, lexicon: Lexicon) -> None:
    table = lexicon.to_arrow()
    with pa.OSFile(str(folder / "lexicon.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def load_lexicon(folder: Path) -> Lexicon:
    with pa.memory_map(str(folder / "lexicon.arrow")) as source:
        return Lexicon.from_arrow(pa.ipc.open_file(source).read_all())


# -- texts as arrays --------------------------------------------------------------------------------------


def texts_to_arrays(name: str, texts: pa.Array | Sequence[str]) -> dict[str, NDArray[Any]]:
    """Text i is bytes[from[i]:from[i + 1]]."""
    array = texts.cast(pa.large_string()) if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())
    filled = pa.concat_arrays([array.fill_null("")])
    _, starts, data = filled.buffers()
    start = np.frombuffer(starts, np.int64)[filled.offset : filled.offset + len(filled) + 1] if len(filled) else [0]
    start = np.asarray(start, np.int64)
    held = np.frombuffer(data or b"", np.uint8)[start[0] : start[-1]]
    return {f"{name}_from": start - start[0], f"{name}_bytes": held}


def texts_from_arrays(name: str, arrays: dict[str, NDArray[Any]]) -> pa.Array:
    starts, data = arrays[f"{name}_from"], arrays[f"{name}_bytes"]
    return pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(data))


def ids_to_arrays(ids: Sequence[Id] | pa.Array, kind: IdKind) -> dict[str, NDArray[Any]]:
    if kind == "long":
        return {"id": np.array(ids, np.int64)}
    return texts_to_arrays("id", ids if isinstance(ids, pa.Array) else [str(identity) for identity in ids])


def ids_from_arrays(arrays: dict[str, NDArray[Any]]) -> pa.Array:
    return pa.array(arrays["id"]) if "id" in arrays else texts_from_arrays("id", arrays)
