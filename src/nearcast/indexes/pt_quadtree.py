"""`pt-quadtree`: a quadtree with cover and non-cover pivotal-token sets (CIKM'15 section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.mbr_trie import checked, part
from nearcast.indexes.pivotal_quadtree import PivotalQuadtree
from nearcast.indexes.pool import enlarged
from nearcast.indexes.rebuilt import RebuiltIndex
from nearcast.indexes.trie_order import frequencies, terms_of
from nearcast.kernels import pt_quadtree as kernels
from nearcast.kernels.layout import Rows

TAU_NUM = 64
TAU_AREA = 4.0**-8
LISTS = ("leaves", "mx-cif")
LEAST_AREA = 4.0**-15


def new_quadtree(name: str, tau_num: int, tau_area: float, lists: str) -> PivotalQuadtree:
    """An empty quadtree, if the options are good."""
    checked(name, "lists", lists, LISTS)
    if isinstance(tau_num, bool) or not isinstance(tau_num, int) or tau_num < 1:
        raise CatalogueError(f"{name}: tau_num {tau_num!r} given; a whole number of 1 or more is needed")
    if not isinstance(tau_area, int | float) or not LEAST_AREA <= tau_area <= 1:
        raise CatalogueError(f"{name}: tau_area {tau_area!r} given; a share of the region, 4**-15 to 1")
    return PivotalQuadtree(tau_num, float(tau_area), lists == "mx-cif")


def quadtree_details(tree: PivotalQuadtree) -> dict[str, Any]:
    lengths, sizes = tree.lists.arrays.length, tree.sets.arrays.length
    leaf = tree.child < 0
    return {
        "quadtree nodes": tree.n,
        "quadtree leaves": int(leaf.sum()),
        "quadtree height": tree.height,
        "ids in lists": int(lengths.sum()),
        "longest list": int(lengths.max()),
        "tokens in cover sets": int(sizes[::2].sum()),
        "tokens in non-cover sets": int(sizes[1::2].sum()),
        "tokens per node": float(sizes.sum() / tree.n),
    }


class PtQuadtree(RebuiltIndex):
    """Place first, one token of every subscription on the way: verify boxes and terms in the lists."""

    name = "pt-quadtree"

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        tau_num: int = TAU_NUM,
        tau_area: float = TAU_AREA,
        lists: str = "leaves",
    ) -> None:
        super().__init__(history=history)
        self._given: dict[str, Any] = {"tau_num": tau_num, "tau_area": tau_area, "lists": lists}
        self.tree = new_quadtree(self.name, tau_num, tau_area, lists)
        self._no_ids = np.zeros(0, dtype=np.int32)  # lists ascend by entry number alone

    def _build(self, entries: NDArray[np.int64]) -> None:
        self.tree = new_quadtree(self.name, **self._given)
        if len(entries):
            frequency = frequencies(self.history, terms_of(self.entries, entries)[1])
            self.tree.build(self.entries, np.sort(entries), frequency)

    def _insert(self, entries: NDArray[np.int64]) -> None:
        self.tree.insert(self.entries, entries, self._ids())

    def _delete(self, entries: NDArray[np.int64]) -> None:
        self.tree.drop(self.entries, entries, self._ids())

    def _ids(self) -> NDArray[np.int32]:
        self._no_ids = enlarged(self._no_ids, len(self.entries.term_count))
        return self._no_ids

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        tree = self.tree
        fixed = (tree.arrays, tree.lists.arrays, tree.sets.arrays, self.entries, rows, tree.once, tree.walk())
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: kernels.probe(*fixed, first, found, counters),
        )

    def _bytes(self) -> dict[str, int]:
        return self.tree.nbytes()

    def _details(self) -> dict[str, Any]:
        return self._given | quadtree_details(self.tree)

    def _options(self) -> dict[str, Any]:
        return self._given

    def _state(self) -> dict[str, NDArray[Any]]:
        return super()._state() | {f"tree.{name}": array for name, array in self.tree.state().items()}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.tree.restore(part(arrays, "tree."))
