"""The catalogue: every index by name, and how to build, load and warm one."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

from nearcast import snapshot
from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.errors import CatalogueError, SnapshotError
from nearcast.indexes.ap_tree import ApTree
from nearcast.indexes.base import EntryIndex, Index
from nearcast.indexes.iq_tree import IqTree
from nearcast.indexes.ir_tree import IrTree
from nearcast.indexes.keyword_first import KeywordFirst
from nearcast.indexes.lfilter import LFilter
from nearcast.indexes.mbr_trie import MbrTrie
from nearcast.indexes.pt_quadtree import PtQuadtree
from nearcast.indexes.report import IndexReport
from nearcast.indexes.rq_tree import RqTree
from nearcast.indexes.rt import Rt, RtPlus
from nearcast.indexes.rt_multiple import RtPlusPlus
from nearcast.indexes.scan import Scan
from nearcast.indexes.spatial_first import SpatialFirst
from nearcast.indexes.strata import Strata

CATALOGUE: dict[str, type[EntryIndex]] = {
    "scan": Scan,
    "strata": Strata,
    "keyword-first": KeywordFirst,
    "spatial-first": SpatialFirst,
    "ir-tree": IrTree,
    "rt": Rt,
    "rt+": RtPlus,
    "rt++": RtPlusPlus,
    "iq-tree": IqTree,
    "rq-tree": RqTree,
    "ap-tree": ApTree,
    "mbr-trie": MbrTrie,
    "pt-quadtree": PtQuadtree,
    "lfilter": LFilter,
}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "ap-tree": {
        "optimal": {"keyword_partition": "optimal"},
        "keyword": {"priority": "keyword"},
        "space": {"priority": "space"},
        "trie-quadtree": {"trie_quadtree": True},
        "as-published": {"order": "frequent", "recut": False},
        "no-rebuild": {"theta_kl": float("inf")},
    },
    "keyword-first": {"counting": {"lists": "counting"}},
    "rt+": {tokens: {"tokens": tokens} for tokens in ("random", "df", "idf", "local")},
    "mbr-trie": {probe: {"probe": probe} for probe in ("tokens", "trie", "cost")},
    "pt-quadtree": {"mx-cif": {"lists": "mx-cif"}},
    "lfilter": {
        "lists": {"verification": "lists"},
        "direct": {"verification": "direct"},
        "quadtree": {"algorithm": "quadtree"},
    },
}
"""By index, then by the variant's own name: options of the constructor. Asked for as `index:variant`."""
DEFAULT = "strata"

__all__ = [
    "CATALOGUE",
    "DEFAULT",
    "VARIANTS",
    "EntryIndex",
    "Index",
    "IndexReport",
    "build",
    "create",
    "load",
    "names",
    "warm_up",
]


def names() -> list[str]:
    """Everything that `create` knows: each index, each followed by its variants."""
    return [n for name in CATALOGUE for n in (name, *(f"{name}:{v}" for v in VARIANTS.get(name, {})))]


def create(name: str, history: MessageBatch | None = None, **options: Any) -> EntryIndex:
    """An empty index. `history` is a sample of past messages for those that choose by cost."""
    name, _, variant = name.partition(":")
    if name not in CATALOGUE:
        raise CatalogueError(f"index {name!r} given; there are {', '.join(CATALOGUE)}")
    if variant and variant not in VARIANTS.get(name, {}):
        raise CatalogueError(f"{name}:{variant} given; variants are {', '.join(VARIANTS.get(name, {})) or 'none'}")
    options = (VARIANTS[name][variant] if variant else {}) | options
    allowed = [p for p in inspect.signature(CATALOGUE[name].__init__).parameters if p not in ("self", "history")]
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise CatalogueError(f"{name}: option {unknown[0]!r} given; it takes {', '.join(allowed) or 'none'}")
    return CATALOGUE[name](history=history, **options)


def build(name: str, columns: SubscriptionColumns, history: MessageBatch | None = None, **options: Any) -> EntryIndex:
    """An index of these subscriptions: subscription i of the columns has slot i."""
    index = create(name, history, **options)
    index.insert(columns)
    return index


def load(path: Path) -> EntryIndex:
    """An index from its snapshot, mapped into memory copy-on-write."""
    arrays, meta = snapshot.load(path)
    name = meta.get("index")
    if name not in CATALOGUE:
        raise SnapshotError(f"{path}: index {name!r} saved; this version has {', '.join(CATALOGUE)}")
    return CATALOGUE[name].restored(arrays, meta["options"])


def warm_up(name: str = DEFAULT, **options: Any) -> None:
    """Compile (or load from the cache) what a first insert and match would otherwise wait for."""
    point, one = np.zeros((1, 4)), np.array([0, 1])
    index = build(name, SubscriptionColumns.from_flat(point, one, [0]), **options)
    index.match(MessageBatch.from_flat(point, one, [0]))
