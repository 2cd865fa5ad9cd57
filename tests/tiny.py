"""Indexes with tiny parameters, so that small random worlds already split, merge and overflow everything."""

from __future__ import annotations

from typing import Any

TINY: dict[str, tuple[str, dict[str, Any]]] = {}
