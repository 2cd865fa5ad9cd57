"""What an AP-Tree looks like, for its report."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.kernels.ap_layout import DUMMY, KEYWORD, ROOT, SPACE, START, WHAT, Tree


def census(tree: Tree) -> dict[str, Any]:
    """The tree level by level."""
    counts = dict.fromkeys(("leaves", "keyword_nodes", "space_nodes", "cuts", "cells", "elements"), 0)
    level, height, longest = np.array([ROOT], dtype=np.int64), 0, 0
    while len(level):
        what = tree.parts[level, WHAT].astype(np.int64)
        kind, size = what & 3, what >> 2
        is_keyword, is_space = kind == KEYWORD, kind == SPACE
        is_leaf = ~is_keyword & ~is_space
        n_parts = np.where(is_keyword, size, (size & 0x3FFF) * (size >> 14))
        counts["leaves"] += int(np.count_nonzero(is_leaf & (size > 0)))
        counts["elements"] += int(size[is_leaf].sum())
        longest = max(longest, int(size[is_leaf].max(initial=0)))
        counts["keyword_nodes"] += int(np.count_nonzero(is_keyword))
        counts["space_nodes"] += int(np.count_nonzero(is_space))
        counts["cuts"] += int(n_parts[is_keyword].sum())
        counts["cells"] += int(n_parts[is_space].sum())
        rows = np.where(is_leaf, 0, n_parts + 1)  # the dummy part goes first
        ends = np.cumsum(rows)
        starts = tree.parts[level, START] + DUMMY
        level = np.repeat(starts - ends + rows, rows) + np.arange(ends[-1])
        height += 1
    roots = {KEYWORD: "keyword", SPACE: "space"}
    root = roots.get(int(tree.parts[ROOT, WHAT]) & 3, "leaf")
    return counts | {"height": height, "longest_leaf": longest, "root": root}
