"""`lfilter`: MBRTrie or PT-Quadtree by cost, list pruning, HybridPrune (CIKM'15 section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.mbr_trie import checked, longest, part
from nearcast.indexes.pivotal_quadtree import PivotalQuadtree
from nearcast.indexes.pt_quadtree import TAU_AREA, TAU_NUM, new_quadtree, quadtree_details
from nearcast.indexes.rebuilt import RebuiltIndex
from nearcast.indexes.token_trie import TokenTrie
from nearcast.indexes.trie_order import ORDERS, TrieOrder, frequencies, terms_of
from nearcast.kernels import lfilter as kernels
from nearcast.kernels import mbr_trie
from nearcast.kernels.layout import Rows
from nearcast.kernels.lfilter_costs import Costs
from nearcast.kernels.pivotal_quadtree import NONE

ALGORITHMS = {"cost": kernels.ANY, "trie": kernels.TRIE, "quadtree": kernels.QUADTREE}
VERIFICATIONS = {"hybrid": kernels.HYBRID, "lists": kernels.LISTS, "direct": kernels.DIRECT}
TOLD = (
    "messages by trie",
    "messages by quadtree",
    "leaves expected",
    "leaves chosen",
    "trie nodes pruned",
    "trie nodes verified",
)
"""What the tally of the kernel counts, in its order; leaves are of the messages by quadtree."""
MOST_LEVEL = 8


class LFilter(RebuiltIndex):
    """Both structures; each message is filtered by the one that should cost less, or by the one named.

    verification, after the quadtree: hybrid chooses by node between list pruning and verifying; lists always
    prunes; direct never does. k: the level of the quadtree that estimates how many leaves a message meets.
    """

    name = "lfilter"

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        algorithm: str = "cost",
        verification: str = "hybrid",
        k: int = 3,
        order: str = "rare",
        tau_num: int = TAU_NUM,
        tau_area: float = TAU_AREA,
        lists: str = "leaves",
    ) -> None:
        super().__init__(history=history)
        self.algorithm = checked(self.name, "algorithm", algorithm, ALGORITHMS)
        self.verification = checked(self.name, "verification", verification, VERIFICATIONS)
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= MOST_LEVEL:
            raise CatalogueError(f"{self.name}: k {k!r} given; a level from 0 to {MOST_LEVEL} is needed")
        self.k = k
        self.tokens = TrieOrder(checked(self.name, "order", order, ORDERS))
        self._given: dict[str, Any] = {"tau_num": tau_num, "tau_area": tau_area, "lists": lists}
        self.trie = TokenTrie()
        self.tree = new_quadtree(self.name, tau_num, tau_area, lists)
        self._tally = np.zeros(kernels.N_TALLY, dtype=np.float64)
        self._n_terms = 0  # of all entries held
        self._costs: Costs | None = None

    # -- building and changing --------------------------------------------------------------------------

    def _build(self, entries: NDArray[np.int64]) -> None:
        terms = terms_of(self.entries, entries)[1]
        frequency = frequencies(self.history, terms)
        self.tokens.learn(terms, frequency)
        self.trie, self.tree = TokenTrie(), new_quadtree(self.name, **self._given)
        if len(entries):
            self.trie.build(self.entries, entries, self.tokens.paths(self.entries, entries))
            by_id = np.lexsort((entries, self.trie.label_of[entries]))
            self.tree.build(self.entries, entries[by_id], frequency)
        self._n_terms, self._costs = len(terms), None

    def _insert(self, entries: NDArray[np.int64]) -> None:
        terms = terms_of(self.entries, entries)[1]
        self.tokens.include(terms)
        self.trie.insert(self.entries, entries, self.tokens.paths(self.entries, entries))
        self.tree.insert(self.entries, entries, self.trie.label_of)
        self._n_terms, self._costs = self._n_terms + len(terms), None

    def _delete(self, entries: NDArray[np.int64]) -> None:
        self.tree.drop(self.entries, entries, self.trie.label_of)
        self.trie.drop(entries, self.tokens.paths(self.entries, entries))
        self._n_terms -= len(terms_of(self.entries, entries)[1])
        self._costs = None

    # -- matching ---------------------------------------------------------------------------------------

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        trie, tree = self.trie, self.tree
        both = kernels.Both(
            trie.arrays,
            trie.lists.arrays,
            trie.label_of,
            tree.arrays,
            tree.lists.arrays,
            tree.sets.arrays,
        )
        self._costs = self._costs or self._measured()
        work = kernels.work(mbr_trie.scratch(longest(rows), trie.height), tree.walk())
        how = (ALGORITHMS[self.algorithm], VERIFICATIONS[self.verification])
        fixed = (both, self._costs, self.tokens.key_of, *how, tree.once, self.entries, rows, work)
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: kernels.probe(*fixed, first, found, counters, self._tally),
        )

    def _measured(self) -> Costs:
        """What the cost model needs to know (CIKM'15 5.3)."""
        levels = np.zeros(min(self.trie.height, len(self.trie.levels) - 1) + 3)
        levels[:-2] = self.trie.levels[: len(levels) - 2]
        mean_set = self.tree.sets.arrays.length.sum() / self.tree.n
        figures = [self.tokens.n, self._n_terms / max(1, self.held), self.tree.height + 1, mean_set]
        return Costs(levels, np.array(figures, dtype=np.float64), *leaves_below(self.tree, self.k))

    # -- report and snapshot ----------------------------------------------------------------------------

    def _bytes(self) -> dict[str, int]:
        return self.trie.nbytes() | {"token order": self.tokens.key_of.nbytes} | self.tree.nbytes()

    def _details(self) -> dict[str, Any]:
        told = {name: round(value, 1) for name, value in zip(TOLD, self._tally.tolist(), strict=True)}
        trie = {"trie height": self.trie.height, "trie leaves": self.trie.n_leaves}
        return self._options() | told | trie | quadtree_details(self.tree)

    def _options(self) -> dict[str, Any]:
        chosen = {"algorithm": self.algorithm, "verification": self.verification}
        return chosen | {"k": self.k, "order": self.tokens.order} | self._given

    def _state(self) -> dict[str, NDArray[Any]]:
        arrays = super()._state() | {"n_terms": np.array([self._n_terms], dtype=np.int64)}
        arrays |= {f"order.{name}": array for name, array in self.tokens.state().items()}
        arrays |= {f"trie.{name}": array for name, array in self.trie.state().items()}
        return arrays | {f"tree.{name}": array for name, array in self.tree.state().items()}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self._n_terms = int(arrays["n_terms"][0])
        self.tokens.restore(part(arrays, "order."))
        self.trie = TokenTrie.restored(part(arrays, "trie."))
        self.tree.restore(part(arrays, "tree."))


def leaves_below(tree: PivotalQuadtree, level: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes at the level, and leaves above it: their finite regions, and how many leaves each has."""
    depth, child = tree.depth[: tree.n], tree.child
    leaves = (child == NONE).astype(np.float64)
    for at in range(int(depth.max()) - 1, -1, -1):
        inner = np.flatnonzero((depth == at) & (child != NONE))
        leaves[inner] = leaves[child[inner][:, None] + np.arange(4)].sum(axis=1)
    chosen = np.flatnonzero((depth == level) | ((depth < level) & (child == NONE)))
    half = tree.size / 2.0 ** (depth[chosen] + 1)[:, None]
    centre = tree.arrays.centre[chosen]
    return np.concatenate([centre - half, centre + half], axis=1), leaves[chosen]
