"""The R-tree under changes, and what its nodes know of words: kept up equals made anew (KDD'13 3 to 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import indexes
from nearcast.errors import CatalogueError
from nearcast.indexes.local_counts import LocalCounts
from nearcast.indexes.node_text import nodes_in_use
from nearcast.indexes.rtree_bulk import tiles
from nearcast.indexes.token_order import CHOICES, TokenOrder
from nearcast.indexes.tree_index import TreeIndex
from nearcast.kernels.layout import Entries
from nearcast.kernels.node_tokens import EMPTY
from nearcast.kernels.rtree import HEIGHT, NO_NODE, PARENT, POSITION, ROOT, USED
from tests.worlds import flat_messages, flat_rows, flat_subscriptions

TREES = ("spatial-first", "ir-tree", "rt", "rt+", "rt++")
changes = st.lists(st.tuples(flat_rows(1, 20), st.sets(st.integers(0, 60))), min_size=1, max_size=6)


def changed(name: str, steps: list) -> TreeIndex:
    """A tree of tiny nodes after insertions and removals."""
    index = indexes.create(name, b=2, B=4)
    assert isinstance(index, TreeIndex)
    live: set[int] = set()
    for rows, unwanted in steps:
        live |= set(index.insert(flat_subscriptions(rows)).tolist())
        index.remove(sorted(unwanted & live))
        live -= unwanted
    return index


@pytest.mark.parametrize("name", TREES)
@given(steps=changes)
def test_nodes_are_filled_linked_and_bound_tightly(name: str, steps: list) -> None:
    index = changed(name, steps)
    tree, root = index.tree.arrays, index.tree.root
    seen: list[int] = []
    for node in nodes_in_use(tree).tolist():
        used, height = tree.nodes[node, USED], tree.nodes[node, HEIGHT]
        assert used <= index.tree.B
        assert used >= (index.tree.b if node != root else min(2, height + 1) if index.tree.n_entries else 0)
        children = tree.child[node, :used]
        if height == 0:
            assert (tree.leaf_of[children] == node).all()
            assert np.array_equal(tree.boxes[node, :used], index.entries.boxes[children])
            seen += children.tolist()
            continue
        assert (tree.nodes[children, HEIGHT] == height - 1).all()
        assert (tree.nodes[children, PARENT] == node).all()
        assert tree.nodes[children, POSITION].tolist() == list(range(used))
        for i, child in enumerate(children):
            inside = tree.boxes[child, : tree.nodes[child, USED]]
            assert tree.boxes[node, i].tolist() == [*inside[:, :2].min(axis=0), *inside[:, 2:].max(axis=0)]
    assert sorted(seen) == index.table.live_entries().tolist()
    assert tree.nodes[tree.state[ROOT], PARENT] == NO_NODE


def what_nodes_know(index: TreeIndex, text: Any) -> dict[tuple[int, int], Any]:
    """By node and token: a count, or the members of a list."""
    tables, known = text.tables.arrays, {}
    for node in range(len(tables.sets.start)):
        if tables.sets.length[node] == 0:
            continue
        start = tables.sets.start[node]
        for place in range(start, start + (1 << int(tables.sets.klass[node]))):
            token, value = int(tables.sets.pool[place]), int(tables.values[place])
            if token == EMPTY:
                continue
            if index.name in ("rt", "rt+"):
                known[node, token] = value
            else:
                known[node, token] = [~value] if value < 0 else sorted(text.lists.values(value).tolist())
    return known


@pytest.mark.parametrize("name", TREES[1:])
@given(steps=changes)
def test_words_of_nodes_kept_up_equal_words_made_anew(name: str, steps: list) -> None:
    index = changed(name, steps)
    anew: Any = index._new_text()
    anew.make_room(index.tree.n_nodes)
    anew.words = index._words()
    anew.built(index.tree.arrays)
    assert what_nodes_know(index, index.text) == what_nodes_know(index, anew)


@given(steps=changes)
def test_every_subscription_is_listed_once_for_each_of_its_tokens(steps: list) -> None:
    """KDD'13 Property 1."""
    index = changed("rt++", steps)
    listed = [entry for members in what_nodes_know(index, index.text).values() for entry in members]
    counts = np.bincount(listed, minlength=len(index.entries.boxes))
    assert counts.tolist() == index.entries.term_count.tolist()


@given(rows=flat_rows(1, 24), posts=flat_rows(1, 6))
def test_fewer_tokens_prune_more(rows: list, posts: list) -> None:
    """KDD'13 Lemma 2: the candidate nodes of R^t+ are among those of R^t."""
    batch = flat_messages(posts)
    visited = []
    for name in ("rt+", "rt", "spatial-first"):
        index = indexes.create(name, b=2, B=4)
        index.insert(flat_subscriptions(rows))
        index.match(batch)
        visited.append(index.report().nodes)
    assert visited == sorted(visited)


@given(n=st.integers(1, 200), capacity=st.integers(3, 9))
def test_tiles_hold_everything_once_and_are_alike(n: int, capacity: int) -> None:
    corner = np.random.default_rng(n).integers(0, 9, (n, 2)).astype(np.float64)
    order, starts = tiles(np.concatenate([corner, corner + 1], axis=1), capacity)
    sizes = np.diff(starts)
    assert sorted(order.tolist()) == list(range(n))
    assert sizes.max() <= capacity
    assert sizes.max() - sizes.min() <= 1


# -- KDD'13 4.2: the choice of tokens --------------------------------------------------------------------


def entries_of(rows: list) -> Entries:
    columns = flat_subscriptions(rows)
    counts = np.diff(columns.term_from).astype(np.int32)
    return Entries(columns.boxes, columns.term_from[:-1], counts, columns.terms)


def chosen(tokens: str, rows: list, history: list | None = None) -> list[list[int]]:
    entries = entries_of(rows)
    order = TokenOrder("rt+", tokens, 2, flat_messages(history) if history else None)
    order.put(entries, np.arange(len(rows)), is_first=True)
    ranked = order.words(entries).terms
    return [ranked[a : a + n].tolist() for a, n in zip(entries.term_from, entries.term_count, strict=True)]


HERE, THERE = (0, 0, 1, 1), (9, 9, 10, 10)


def test_df_covers_greedily_and_idf_takes_the_rarest() -> None:
    """2 is in four rows; in what remains 3 and 4 are in two each, 1, frequent before, in one."""
    rows = [(HERE, t) for t in ([1, 2], [1, 2], [2, 3], [2, 4], [1, 3], [3, 4], [4])]
    first = [row[0] for row in chosen("df", rows)]
    assert first[:4] == [2, 2, 2, 2]
    assert len(set(first)) == 3
    assert [row[0] for row in chosen("idf", [(HERE, [1, 2]), (HERE, [2, 3]), (HERE, [2])])] == [1, 3, 2]


def test_local_prefers_what_is_rare_in_the_cell() -> None:
    rows = [(HERE, [1]), (HERE, [1]), (THERE, [2]), (THERE, [2]), (THERE, [2]), (HERE, [1, 2]), (THERE, [1, 2])]
    assert [row[0] for row in chosen("local", rows)][5:] == [2, 1]
    past = [(HERE, [2]), (THERE, [1])]
    assert [row[0] for row in chosen("local", rows, past)][5:] == [1, 2]


@pytest.mark.parametrize("tokens", CHOICES)
def test_an_order_holds_the_same_terms(tokens: str) -> None:
    rows = [(HERE, [1, 2, 3]), (THERE, [5]), (HERE, [0, 9])]
    assert [sorted(row) for row in chosen(tokens, rows)] == [terms for _, terms in rows]
    assert chosen(tokens, rows) == chosen(tokens, rows)


def test_boxes_outside_the_counted_extent_belong_to_the_border() -> None:
    counts = LocalCounts(2)
    counts.count(np.array([[0.0, 0, 1, 1], [9, 9, 10, 10]]), np.array([1, 1]), np.array([7, 8], dtype=np.int32))
    far = np.array([[50.0, 50, 60, 60], [-9, -9, -8, -8]])
    assert counts.of(far, np.array([0, 1]), np.array([8, 8], dtype=np.int32)).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("rt", {"b": 3, "B": 4}, "b=3, B=4 given; 2 <= b <= B / 2 is allowed"),
        ("rt+", {"tokens": "best"}, "tokens='best' given; there are random, df, idf, local"),
        ("rt++", {"grid": 0}, "grid=0 given; 1 to"),
        ("keyword-first", {"lists": "all"}, "lists='all' given; there are key, counting"),
    ],
)
def test_bad_options_are_named(name: str, options: dict, reason: str) -> None:
    with pytest.raises(CatalogueError, match=reason.replace("(", r"\(")):
        indexes.create(name, **options)
