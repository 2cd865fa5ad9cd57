"""Moving subscriptions, messages with a life time: the catalogue of movers, and how to make one."""

from __future__ import annotations

import inspect
from typing import Any

from nearcast.errors import CatalogueError
from nearcast.geo import Space, earth
from nearcast.moving.ap_plus import ApPlus
from nearcast.moving.base import Mover, TimeError
from nearcast.moving.cells import IqPlus, Kk, RqPlus, Ss
from nearcast.moving.changes import Changes
from nearcast.moving.report import MoveReport
from nearcast.moving.safe import SafeApPlus
from nearcast.moving.scan import Scan
from nearcast.moving.strata_move import StrataMove

CATALOGUE: dict[str, type[Mover]] = {
    "scan": Scan,
    "strata-move": StrataMove,
    "ap+": ApPlus,
    "ap+safe": SafeApPlus,
    "iq+": IqPlus,
    "rq+": RqPlus,
    "ss": Ss,
    "kk": Kk,
}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "ap+": {kept: {"messages": kept} for kept in ("keyword", "space")},
}
"""By mover, then by the variant's own name: options of the constructor. Asked for as `mover:variant`."""
DEFAULT = "strata-move"

__all__ = ["CATALOGUE", "DEFAULT", "VARIANTS", "Changes", "MoveReport", "Mover", "TimeError", "create", "names"]


def names() -> list[str]:
    """Everything that `create` knows: each mover, each followed by its variants."""
    return [n for name in CATALOGUE for n in (name, *(f"{name}:{v}" for v in VARIANTS.get(name, {})))]


def create(name: str = DEFAULT, space: Space = earth, **options: Any) -> Mover:
    """A mover without subscriptions and messages."""
    name, _, variant = name.partition(":")
    if name not in CATALOGUE:
        raise CatalogueError(f"mover {name!r} given; there are {', '.join(CATALOGUE)}")
    if variant and variant not in VARIANTS.get(name, {}):
        raise CatalogueError(f"{name}:{variant} given; variants are {', '.join(VARIANTS.get(name, {})) or 'none'}")
    options = (VARIANTS[name][variant] if variant else {}) | options
    allowed = [p for p in inspect.signature(CATALOGUE[name].__init__).parameters if p not in ("self", "space")]
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise CatalogueError(f"{name}: option {unknown[0]!r} given; it takes {', '.join(allowed)}")
    return CATALOGUE[name](space, **options)
