"""Rows of a file, read as a command reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nearcast.columns import Pairs
from nearcast.files import MESSAGES, Role, Row, open_rows

GOOD = '{"id": 1, "text": "ramen", "lon": 1, "lat": 2}'


def read(path: Path, content: bytes | str | None = None, role: Role = MESSAGES) -> list[Row]:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with open_rows(path, role) as reader:
        return list(reader)


def reasons(found: list[Row]) -> dict[int, str]:
    return {row.line: row.reason for row in found if row.record is None}


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


POINT = {"type": "Point", "coordinates": [1.5, 2.5]}
TRIANGLE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 1], [0, 0]]]}


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def collection(*features: Any, **more: Any) -> str:
    return json.dumps({"type": "FeatureCollection", **more, "features": features})


def pairs(*found: tuple[int, int]) -> Pairs:
    message, slot = np.array(found, dtype=np.int32).reshape(-1, 2).T
    return Pairs(np.ascontiguousarray(message), np.ascontiguousarray(slot))
