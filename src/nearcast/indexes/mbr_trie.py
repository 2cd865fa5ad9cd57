"""`mbr-trie`: an ordered token trie with a box and an id range per node (CIKM'15 section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.rebuilt import RebuiltIndex
from nearcast.indexes.token_trie import TokenTrie
from nearcast.indexes.trie_order import ORDERS, TrieOrder, frequencies, terms_of
from nearcast.kernels import mbr_trie as kernels
from nearcast.kernels.layout import Rows

PROBES = {"tokens": kernels.PROBE_TOKENS, "trie": kernels.PROBE_TRIE, "cost": kernels.PROBE_COST}


def checked(name: str, option: str, value: Any, allowed: Any) -> Any:
    """The value, if it is one of the allowed ones."""
    if value not in allowed:
        raise CatalogueError(f"{name}: {option} {value!r} given; it can be {', '.join(map(str, allowed))}")
    return value


def longest(rows: Rows) -> int:
    """Terms of the longest message."""
    return int(np.diff(rows.term_from).max(initial=0))


class MbrTrie(RebuiltIndex):
    """Words first, boxes on the way: filter by token and MBR, verify boxes at the leaves."""

    name = "mbr-trie"

    def __init__(self, *, history: MessageBatch | None = None, probe: str = "cost", order: str = "rare") -> None:
        super().__init__(history=history)
        self.probe = checked(self.name, "probe", probe, PROBES)
        self.tokens = TrieOrder(checked(self.name, "order", order, ORDERS))
        self.trie = TokenTrie()
        self._tally = np.zeros(kernels.N_WORK, dtype=np.int64)

    def _build(self, entries: NDArray[np.int64]) -> None:
        _, terms = terms_of(self.entries, entries)
        self.tokens.learn(terms, frequencies(self.history, terms))
        self.trie = TokenTrie()
        if len(entries):
            self.trie.build(self.entries, entries, self.tokens.paths(self.entries, entries))

    def _insert(self, entries: NDArray[np.int64]) -> None:
        self.tokens.include(terms_of(self.entries, entries)[1])
        self.trie.insert(self.entries, entries, self.tokens.paths(self.entries, entries))

    def _delete(self, entries: NDArray[np.int64]) -> None:
        self.trie.drop(entries, self.tokens.paths(self.entries, entries))

    def _probe(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        fixed = (self.trie.arrays, self.trie.lists.arrays, self.tokens.key_of, self.entries, rows)
        how, scratch = PROBES[self.probe], kernels.scratch(longest(rows), self.trie.height)
        return self._collect(
            len(rows.boxes),
            lambda first, found, counters: kernels.probe(*fixed, how, scratch, first, found, counters, self._tally),
        )

    def _bytes(self) -> dict[str, int]:
        return self.trie.nbytes() | {"token order": self.tokens.key_of.nbytes}

    def _details(self) -> dict[str, Any]:
        levels = self.trie.levels[: self.trie.height + 1]
        return {
            "probe": self.probe,
            "order": self.tokens.order,
            "nodes by level": levels.tolist(),
            "height": self.trie.height,
            "leaves": self.trie.n_leaves,
            "distinct tokens": self.tokens.n,
            "renumbered": self.trie.renumbered,
            "nodes probed by token": int(self._tally[kernels.BY_TOKEN]),
            "nodes probed by child": int(self._tally[kernels.BY_CHILD]),
        }

    def _options(self) -> dict[str, Any]:
        return {"probe": self.probe, "order": self.tokens.order}

    def _state(self) -> dict[str, NDArray[Any]]:
        arrays = super()._state() | {f"order.{name}": array for name, array in self.tokens.state().items()}
        return arrays | {f"trie.{name}": array for name, array in self.trie.state().items()}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.tokens.restore(part(arrays, "order."))
        self.trie = TokenTrie.restored(part(arrays, "trie."))


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Those arrays whose names begin with the prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
