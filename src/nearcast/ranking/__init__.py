"""The k best recent messages for every wish: the catalogue of rankers, and how to make one."""

from __future__ import annotations

import inspect
from typing import Any

from nearcast.errors import CatalogueError
from nearcast.geo import Space, earth
from nearcast.ranking.base import Ranker
from nearcast.ranking.changes import Changes, Ranking
from nearcast.ranking.ciq import Ciq
from nearcast.ranking.columns import PostColumns, WishColumns
from nearcast.ranking.report import RankReport
from nearcast.ranking.scan import Scan
from nearcast.ranking.skype import Skype
from nearcast.ranking.spread import Spread
from nearcast.ranking.strata_rank import StrataRank
from nearcast.ranking.window import Window, WindowError

CATALOGUE: dict[str, type[Ranker]] = {
    "scan": Scan,
    "strata-rank": StrataRank,
    "skype": Skype,
    "ciq": Ciq,
}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "scan": {refill: {"refill": refill} for refill in ("skyband", "kmax")},
    "ciq": {"kmax": {"refill": "kmax"}},
    "skype": {
        "ipt": {"dissemination": "ipt"},
        "skyband": {"refill": "skyband"},
        "kmax": {"refill": "kmax"},
    },
    "strata-rank": {refill: {"refill": refill} for refill in ("skyband", "kmax")},
}
"""By ranker, then by the variant's own name: options of the constructor. Asked for as `ranker:variant`."""
DEFAULT = "strata-rank"

__all__ = [
    "CATALOGUE",
    "DEFAULT",
    "VARIANTS",
    "Changes",
    "PostColumns",
    "RankReport",
    "Ranker",
    "Ranking",
    "Spread",
    "Window",
    "WindowError",
    "WishColumns",
    "create",
    "names",
]


def names() -> list[str]:
    """Everything that `create` knows: each ranker, each followed by its variants."""
    return [n for name in CATALOGUE for n in (name, *(f"{name}:{v}" for v in VARIANTS.get(name, {})))]


def create(name: str, window: Window, space: Space = earth, *, threads: int = 1, **options: Any) -> Ranker | Spread:
    """A ranker without wishes and messages; with several threads each has its share of the wishes."""
    if threads < 1:
        raise CatalogueError(f"threads: {threads!r} given; 1 or more needed")
    if threads > 1:
        return Spread([_create(name, window, space, options) for _ in range(threads)])
    return _create(name, window, space, options)


def _create(name: str, window: Window, space: Space, options: dict[str, Any]) -> Ranker:
    name, _, variant = name.partition(":")
    if name not in CATALOGUE:
        raise CatalogueError(f"ranker {name!r} given; there are {', '.join(CATALOGUE)}")
    if variant and variant not in VARIANTS.get(name, {}):
        raise CatalogueError(f"{name}:{variant} given; variants are {', '.join(VARIANTS.get(name, {})) or 'none'}")
    options = (VARIANTS[name][variant] if variant else {}) | options
    signature = inspect.signature(CATALOGUE[name].__init__).parameters
    allowed = [parameter for parameter in signature if parameter not in ("self", "window", "space")]
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise CatalogueError(f"{name}: option {unknown[0]!r} given; it takes {', '.join(allowed) or 'none'}")
    return CATALOGUE[name](window, space, **options)
