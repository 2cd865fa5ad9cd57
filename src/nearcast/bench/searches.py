"""Where the best messages of a window are found: on shelves, in the paper's IR-tree, or by chains of shared words.

All must find the same messages. What is timed is the building, and searches as refills make them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast import ranking
from nearcast.bench.ranking import World, part_of
from nearcast.bench.results import IndexResult
from nearcast.bench.spec import BenchError
from nearcast.indexes.rtree_bulk import tiles
from nearcast.kernels import rank_irtree, rank_refill
from nearcast.kernels.rank_heap import Heap
from nearcast.kernels.rank_irtree import FAN_OUT, IrDesk, IrTree
from nearcast.kernels.rank_layout import Posts
from nearcast.ranking import PostColumns, Ranker, Window

Found = NDArray[np.int64]


class Built(NamedTuple):
    """A way to search: gives the best messages of all wishes of a ranker."""

    search: Callable[[Ranker, int], Found]
    nbytes: int


def _chains(posts: PostColumns, world: World) -> Built:
    return _shelves(posts, world, seal_from=len(posts) + 1)


def _shelves(posts: PostColumns, world: World, seal_from: int = 1) -> Built:
    ranker = ranking.create("scan", Window(count=len(posts)), world.space)
    assert isinstance(ranker, Ranker)
    ranker.seal_from(seal_from)
    ranker.load(posts)

    def search(asking: Ranker, most: int) -> Found:
        into = np.zeros((asking.table.top, most), np.int64)
        finder = ranker.store.finder(_heap(most), asking.table.most_terms)
        wants, held = asking.table.wants, ranker.store.posts
        rank_refill.gather_all(wants, held, finder, most, ranker._policy, ranker._state, ranker._space, into)
        return into

    return Built(search, ranker.store.shelves.nbytes)


def _ir_tree(posts: PostColumns, _world: World) -> Built:
    tree = build_ir_tree(posts)
    held = Posts(posts.boxes, posts.ts, posts.term_from, posts.terms, posts.weights)
    desk = IrDesk(np.zeros(len(tree.boxes) + 1), np.zeros(len(tree.boxes) + 1, np.int32), np.zeros(FAN_OUT))

    def search(asking: Ranker, most: int) -> Found:
        into = np.zeros((asking.table.top, most), np.int64)
        rank_irtree.search_all(tree, asking.table.wants, held, desk, _heap(most), most, asking._space, into)
        return into

    return Built(search, sum(array.nbytes for array in tree))


WAYS: dict[str, Callable[[PostColumns, World], Built]] = {
    "shelves": _shelves,
    "ir-tree": _ir_tree,
    "chains": _chains,
}


def measure_searches(world: World, names: list[str]) -> Iterator[IndexResult]:
    """Every wish searches once; `k` messages are looked for."""
    posts = part_of(world.posts, 0, int(world.row_from[world.ticks]))
    asking = ranking.create("scan", Window(count=1), world.space)
    assert isinstance(asking, Ranker)
    asking.subscribe(world.wishes)
    few = ranking.create("scan", Window(count=1), world.space)
    assert isinstance(few, Ranker)
    few.subscribe(world.wishes.cut(np.arange(len(world.wishes)) < 20))
    first: Found | None = None
    for name in names:
        WAYS[name](part_of(posts, 0, min(50, len(posts))), world).search(few, world.spec.k)  # compiles
        start = time.process_time()
        built = WAYS[name](posts, world)
        ready = time.process_time()
        found = built.search(asking, world.spec.k)
        spent = time.process_time() - ready
        first = found if first is None else first
        if not np.array_equal(found, first):
            raise BenchError(f"{names[0]} and {name} find different messages; the run ends here")
        each = 1e6 / len(world.wishes)
        figures = {
            "µs a search": spent * each,
            "building, µs a message": (ready - start) * 1e6 / len(posts),
            "bytes a message": built.nbytes / len(posts),
        }
        us = spent * each
        yield IndexResult(name, "measured", messages=len(world.wishes), us=us, per_s=1e6 / us, figures=figures)


def build_ir_tree(posts: PostColumns) -> IrTree:
    """Packed by tiles, level by level from the leaves; stored from the root on."""
    counts = np.diff(posts.term_from)
    of, boxes = np.repeat(np.arange(len(posts)), counts), posts.boxes
    terms, weights = posts.terms, posts.weights
    levels: list[dict[str, Any]] = []
    while not levels or len(levels[-1]["starts"]) > 2:
        order, starts = tiles(boxes, FAN_OUT)
        node, position = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        node[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        position[order] = np.arange(len(order)) - starts[node[order]]
        by_node = np.lexsort((position[of], terms, node[of]))
        entry_node, entry_term, entry_weight = node[of][by_node], terms[by_node], weights[by_node]
        levels.append(
            {
                "order": order,
                "starts": starts,
                "entries": np.searchsorted(entry_node, np.arange(len(starts))),
                "terms": entry_term,
                "child": position[of][by_node],
                "weights": entry_weight,
            }
        )
        low = np.minimum.reduceat(boxes[order, :2], starts[:-1])
        boxes = np.hstack([low, np.maximum.reduceat(boxes[order, 2:], starts[:-1])])
        levels[-1]["boxes"] = boxes
        new = np.flatnonzero(np.diff(entry_node, prepend=-1) | np.diff(entry_term, prepend=-1))
        of, terms, weights = entry_node[new], entry_term[new], np.maximum.reduceat(entry_weight, new)
    return _stored(levels[::-1])


def _stored(levels: list[dict[str, Any]]) -> IrTree:
    """One numbering for all levels: the root is node 0, then the level below it, and so on."""
    sizes = [len(level["starts"]) - 1 for level in levels]
    first = np.concatenate([[0], np.cumsum(sizes)])
    n_children = np.concatenate([np.diff(level["starts"]) for level in levels])
    n_entries = np.concatenate([np.diff(level["entries"]) for level in levels])
    below = [level["order"] + first[i + 1] for i, level in enumerate(levels[:-1])]
    return IrTree(
        np.ascontiguousarray(np.concatenate([level["boxes"] for level in levels])),
        np.concatenate([[0], np.cumsum(n_children)]).astype(np.int64),
        np.concatenate([*below, levels[-1]["order"]]).astype(np.int32),
        np.repeat(np.arange(len(levels)) == len(levels) - 1, sizes),
        np.concatenate([[0], np.cumsum(n_entries)]).astype(np.int64),
        np.concatenate([level["terms"] for level in levels]).astype(np.int32),
        np.concatenate([level["child"] for level in levels]).astype(np.int32),
        np.ascontiguousarray(np.concatenate([level["weights"] for level in levels])),
    )


def _heap(most: int) -> Heap:
    return Heap(np.zeros(most), np.zeros(most, np.int32))
