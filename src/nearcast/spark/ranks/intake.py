"""Rows to wishes, on the driver; and the place where changes of wishes wait for the next batch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from nearcast.errors import NearcastError, RowError
from nearcast.files import RANKED_WISHES, Role
from nearcast.model import Id, Wish
from nearcast.records import read_id, read_wish
from nearcast.spark.edge import Refused, refused, rows_of
from nearcast.spark.ranks.plan import RankSettings
from nearcast.spark.read import columns_of
from nearcast.spark.versions import OPERATION, operation_of
from nearcast.text import analyzer

CHANGES = Role("changes", (OPERATION, *RANKED_WISHES.columns), (("id",),))


def read_wishes(rows: DataFrame, settings: RankSettings) -> tuple[dict[Id, Wish | None], list[Refused]]:
    """By id; of rows with the same id the last counts."""
    return wishes_of(rows.toArrow().to_batches(), RANKED_WISHES, settings)


def wishes_of(
    batches: Iterable[pa.RecordBatch], role: Role, settings: RankSettings
) -> tuple[dict[Id, Wish | None], list[Refused]]:
    space, analysis = settings.space, analyzer(settings.analyzer)
    last: dict[Id, Wish | None] = {}
    bad: list[Refused] = []
    for batch in batches:
        for _, row in rows_of(batch, role):
            try:
                goes = operation_of(row) == "remove"
                record = row.record or {}
                identity = read_id(record)
                if settings.wish_ids == "long" and not isinstance(identity, int):
                    raise RowError(f"id: {identity!r} given; the others are integers, and so must this be")
                if settings.wish_ids == "string":
                    identity = str(identity)
                last[identity] = None if goes else read_wish({**record, "id": identity}, space, analysis)
            except NearcastError as error:
                bad.append(refused(row, str(error)))
    return last, bad


class Inbox:
    """Changes of wishes that wait. A file is whole or not there, and taken up once (the sequencer remembers it)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "inbox"

    def put(self, rows: DataFrame, name: str) -> None:
        table = columns_of(rows, CHANGES, "changes").toArrow()
        if table.num_rows:
            self._folder.mkdir(parents=True, exist_ok=True)
            part = self._folder / f".{name}"
            pq.write_table(table, part)
            os.replace(part, self._folder / f"{name}.parquet")

    def waiting(
        self, settings: RankSettings, taken: Collection[str]
    ) -> tuple[list[str], dict[Id, Wish | None], list[Refused]]:
        """Names, the last word on each id, and the rows that say nothing."""
        files = sorted(self._folder.glob("*.parquet")) if self._folder.exists() else []
        names: list[str] = []
        last: dict[Id, Wish | None] = {}
        bad: list[Refused] = []
        for file in files:
            if file.stem in taken:
                continue
            coming, wrong = wishes_of(pq.read_table(file).to_batches(), CHANGES, settings)
            names.append(file.stem)
            last |= coming
            bad += wrong
        return names, last, bad

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
