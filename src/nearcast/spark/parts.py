"""A partition of subscription rows to a part on storage: parsed once, in parallel, with words of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast import snapshot
from nearcast.columns import SubscriptionColumns
from nearcast.columns.parts import from_arrays, to_arrays
from nearcast.errors import NearcastError, RowError
from nearcast.files import SUBSCRIPTIONS, Row, Wishes
from nearcast.lexicon import Lexicon
from nearcast.model import Subscription
from nearcast.records import read_subscription
from nearcast.spark.edge import Refused, refused, rows_of
from nearcast.spark.storage import (
    Settings,
    ids_from_arrays,
    ids_to_arrays,
    save_rejected,
    texts_from_arrays,
    texts_to_arrays,
)
from nearcast.text import Analyzer, analyzer

AT_A_TIME = 10_000


@dataclass(frozen=True, slots=True)
class Part:
    """Subscriptions of one partition, mapped."""

    columns: SubscriptionColumns  # with terms of `words`
    words: pa.Array
    ids: pa.Array
    expires: NDArray[np.float64]  # inf: never
    most: NDArray[np.float64]  # events; inf: no maximum

    def __len__(self) -> int:
        return len(self.columns)


def write_part(batches: Iterable[pa.RecordBatch], folder: Path, name: str, settings: Settings) -> tuple[int, int]:
    """How many subscriptions the part has, and how many rows were rejected."""
    lexicon = Lexicon(settings.analyzer)
    wishes = Wishes(lexicon, settings.space)
    bad: list[Refused] = []
    for wanted in _read(batches, wishes, settings, bad):
        wishes.add(wanted)
    columns = wishes.columns()
    arrays = to_arrays(columns) | ids_to_arrays(wishes.ids, settings.ids)
    arrays |= texts_to_arrays("word", lexicon.to_arrow()["word"].combine_chunks())
    arrays |= wishes.endings().arrays()
    snapshot.save(folder / "parts" / name, arrays, {})
    save_rejected(folder, name, bad)
    return len(columns), len(bad)


def _read(
    batches: Iterable[pa.RecordBatch], wishes: Wishes, settings: Settings, bad: list[Refused]
) -> Iterable[list[Subscription]]:
    analysis = analyzer(settings.analyzer)
    wanted: list[Subscription] = []
    line = 0
    for batch in batches:
        for _, row in rows_of(batch, SUBSCRIPTIONS):
            line += 1
            try:
                wish = read_wish(row, settings, analysis)
                wishes.claim(wish.id, line)
                wanted.append(wish)
            except NearcastError as error:
                bad.append(refused(row, str(error)))
        if len(wanted) >= AT_A_TIME:
            yield wanted
            wanted = []
    yield wanted


def read_wish(row: Row, settings: Settings, analysis: Analyzer) -> Subscription:
    if row.record is None:
        raise RowError(row.reason)
    wish = read_subscription(row.record, settings.space, analysis)
    if wish.max_events is not None and not settings.counts_events:
        raise RowError(f"max_events: {wish.max_events} given; a stream keeps no count, leave it out")
    return wish


def load_part(folder: Path, name: str, settings: Settings) -> Part:
    arrays: dict[str, NDArray[Any]]
    arrays, _ = snapshot.load(folder / "parts" / name)
    return Part(
        from_arrays(arrays, settings.space),
        texts_from_arrays("word", arrays),
        ids_from_arrays(arrays),
        arrays["expires"],
        arrays["most"],
    )
