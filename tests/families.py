"""Indexes and movers whose kernels have most of their code in common: one worker of a run compiles it, once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiny import TINY, TINY_MOVERS

FAMILIES = {
    "strata": ("strata", "strata-move"),
    "ap-tree": ("ap-tree", "ap+", "ap+safe"),
    "tries": ("mbr-trie", "pt-quadtree", "lfilter"),
    "r-trees": ("spatial-first", "ir-tree", "rt", "rt+", "rt++"),
    "cells": ("iq-tree", "rq-tree", "iq+", "rq+", "ss", "kk"),
}


def on_one_worker(name: str) -> Any:
    """The name of an index, a mover or a tiny one, as a parameter of a test."""
    known, _ = TINY.get(name) or TINY_MOVERS.get(name) or (name, {})
    plain = known.partition(":")[0]
    family = next((family for family, members in FAMILIES.items() if plain in members), plain)
    return pytest.param(name, marks=pytest.mark.xdist_group(family))
