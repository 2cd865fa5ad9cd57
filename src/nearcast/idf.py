"""How much a word says. Recorded once, so that scores do not change while messages pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import ColumnsError


def _no_terms() -> NDArray[np.float64]:
    return np.zeros(0, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Idf:
    """Inverse document frequency by term; `unseen` for terms that came later. By default all words weigh the same."""

    by_term: NDArray[np.float64] = field(default_factory=_no_terms)  # [*]
    unseen: float = 1.0

    def __post_init__(self) -> None:
        values = np.append(self.by_term, self.unseen)
        if not (np.isfinite(values).all() and (values >= 0.0).all()):
            raise ColumnsError("idf: a negative, infinite or missing number given; numbers of 0 or more needed")

    def of(self, terms: NDArray[Any]) -> NDArray[np.float64]:
        """[len(terms)]"""
        known = np.append(self.by_term, self.unseen)
        return np.asarray(known[np.minimum(terms, len(self.by_term))])
