"""What the indexes over an R-tree share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.base import EntryIndex
from nearcast.indexes.node_text import NodeText
from nearcast.indexes.rtree import RTree
from nearcast.indexes.token_order import TokenOrder
from nearcast.kernels.layout import Entries


class TreeIndex(EntryIndex):
    """An R-tree over the boxes of entries. b, B: least and most entries of a node (KDD'13 6: 25 and 50)."""

    text: NodeText

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        b: int = 25,
        B: int = 50,  # noqa: N803 (the paper's name)
    ) -> None:
        super().__init__(history=history)
        if not 2 <= b <= B // 2:
            raise CatalogueError(f"{self.name}: b={b}, B={B} given; 2 <= b <= B / 2 is allowed")
        self.text = self._new_text()
        self.tree = RTree(int(b), int(B), self.text)

    def _new_text(self) -> NodeText:
        """What the nodes know of words."""
        return NodeText()

    def _words(self) -> Entries:
        """The entries, with their terms in the order in which the text takes them."""
        return self.entries

    def _add(self, entries: NDArray[np.int64]) -> None:
        self.text.words = self._words()
        self.tree.add(self.entries, entries)

    def _drop(self, entries: NDArray[np.int64]) -> None:
        self.text.words = self._words()
        self.tree.remove(entries)

    def _bytes(self) -> dict[str, int]:
        return {"nodes": self.tree.nbytes} | self.text.nbytes()

    def _details(self) -> dict[str, Any]:
        return self.tree.details() | self.text.details()

    def _options(self) -> dict[str, Any]:
        return {"b": self.tree.b, "B": self.tree.B}

    def _state(self) -> dict[str, NDArray[Any]]:
        arrays = {f"tree.{name}": array for name, array in self.tree.state().items()}
        return arrays | {f"text.{name}": array for name, array in self.text.state().items()}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.tree.restore({n[5:]: a for n, a in arrays.items() if n.startswith("tree.")})
        self.text.restore({n[5:]: a for n, a in arrays.items() if n.startswith("text.")})


class OrderedTreeIndex(TreeIndex):
    """With an order of each entry's tokens (KDD'13 4.2), kept from insertion to removal."""

    def __init__(
        self,
        *,
        history: MessageBatch | None = None,
        b: int = 25,
        B: int = 50,  # noqa: N803 (the paper's name)
        tokens: str = "local",
        grid: int = 100,
    ) -> None:
        super().__init__(history=history, b=b, B=B)
        self.order = TokenOrder(self.name, tokens, grid, history)

    def _words(self) -> Entries:
        return self.order.words(self.entries)

    def _add(self, entries: NDArray[np.int64]) -> None:
        self.order.put(self.entries, entries, is_first=self.tree.n_entries == 0)
        super()._add(entries)

    def _drop(self, entries: NDArray[np.int64]) -> None:
        super()._drop(entries)
        self.order.forget(self.entries, entries)

    def _bytes(self) -> dict[str, int]:
        return super()._bytes() | self.order.nbytes()

    def _details(self) -> dict[str, Any]:
        return super()._details() | self.order.options()

    def _options(self) -> dict[str, Any]:
        return super()._options() | self.order.options()

    def _state(self) -> dict[str, NDArray[Any]]:
        return super()._state() | {f"order.{name}": array for name, array in self.order.state().items()}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self.order.restore({n[6:]: a for n, a in arrays.items() if n.startswith("order.")})
