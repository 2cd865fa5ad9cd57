"""What the CIKM'15 structures promise beyond the laws: ids in order, small covers, choices by cost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nearcast import indexes
from nearcast.columns import MessageBatch
from nearcast.errors import CatalogueError
from nearcast.indexes.lfilter import LFilter
from nearcast.indexes.mbr_trie import MbrTrie
from nearcast.indexes.pivotal_sets import choose, cover_sets
from nearcast.indexes.pt_quadtree import PtQuadtree
from nearcast.indexes.token_trie import TokenTrie
from nearcast.kernels.jit import PURE
from nearcast.kernels.token_trie import COUNT, FIRST, HIGH, LEAF, LOW, NONE, ROOT
from nearcast.workloads import LONG_RANGE, messages, subscriptions
from tests.worlds import flat_messages, flat_subscriptions, flat_truth

EVERYWHERE = (0, 0, 6, 6)


def ids_in_order(trie: TokenTrie) -> list[int]:
    """The ids of all leaves, a node before its children; checks box and id range of every node on the way."""
    arrays = trie.arrays

    def below(node: int) -> list[int]:
        links = arrays.links[node]
        found = [int(arrays.label[links[LEAF]])] if links[LEAF] != NONE else []
        children = range(links[FIRST], links[FIRST] + links[COUNT])
        assert all(arrays.token[a] < arrays.token[b] for a, b in pairwise(children))
        for child in children:
            assert (arrays.box[child, :2] >= arrays.box[node, :2]).all()
            assert (arrays.box[child, 2:] <= arrays.box[node, 2:]).all()
            found += below(child)
        assert (links[LOW], links[HIGH]) == (found[0], found[-1])
        return found

    return below(ROOT)


def is_ascending(numbers: list[int]) -> bool:
    return all(a < b for a, b in pairwise(numbers))


@pytest.mark.parametrize("order", ["rare", "frequent", "alphabetical"])
def test_ids_follow_the_token_set_order_after_bulk_and_single_inserts(order: str) -> None:
    batch = messages(40, 1)
    index = indexes.build("mbr-trie", subscriptions(batch, 60, 2), order=order)
    assert isinstance(index, MbrTrie)
    assert is_ascending(ids_in_order(index.trie))
    for seed in range(20):
        index.insert(subscriptions(batch, 2, seed))
    assert is_ascending(ids_in_order(index.trie))
    assert len(ids_in_order(index.trie)) == index.trie.n_leaves


@pytest.mark.parametrize("name", ["mbr-trie", "lfilter"])
def test_ids_are_given_anew_when_the_reserved_ones_run_out(name: str) -> None:
    """Each new token set falls between the one before it and the same neighbour: the gap halves."""
    n = 70
    rows = [(EVERYWHERE, [term]) for term in range(n)]
    past = flat_messages([(EVERYWHERE, list(range(term + 1))) for term in range(n)])  # a later term is rarer
    index = indexes.build(name, flat_subscriptions(rows), history=past)
    assert isinstance(index, MbrTrie | LFilter)
    for term in range(n - 2):
        rows.append((EVERYWHERE, [term, n - 2]))
        index.insert(flat_subscriptions(rows[-1:]))
    assert index.trie.renumbered >= 2
    assert is_ascending(ids_in_order(index.trie))
    posts = [((3, 3, 3, 3), [0, 5, n - 2]), (EVERYWHERE, list(range(n)))]
    assert index.match(flat_messages(posts)).as_set() == flat_truth(rows, posts)


def test_the_three_ways_to_probe_visit_the_same_nodes() -> None:
    batch = messages(100, 3)
    columns = subscriptions(batch, 400, 4)
    built = {probe: indexes.build(f"mbr-trie:{probe}", columns) for probe in ("tokens", "trie", "cost")}
    for index in built.values():
        index.match(batch)
    reports = {probe: index.report() for probe, index in built.items()}
    assert len({(r.nodes, r.candidates, r.found) for r in reports.values()}) == 1
    assert reports["tokens"].details["nodes probed by token"] == 0
    assert reports["trie"].details["nodes probed by child"] == 0
    assert min(reports["cost"].details[f"nodes probed by {way}"] for way in ("token", "child")) > 0


def test_pivotal_tokens_are_chosen_by_the_largest_remaining_frequency() -> None:
    """Token 1 hits four; of the rest, 5 hits two; 9 is left."""
    sets = [[1, 2], [1, 3], [1, 2, 4], [1, 5], [2, 5], [4, 5], [9]]
    entries = indexes.build("scan", flat_subscriptions([(EVERYWHERE, terms) for terms in sets])).entries
    run_from, run = np.array([0, 7, 7, 8], dtype=np.int64), np.arange(8, dtype=np.int32) % 7
    whole, nothing, single = (tokens.tolist() for tokens in choose(entries, run_from, run))
    assert (whole, nothing) == ([1, 5, 9], [])
    assert single in ([1], [2])


def test_cover_sets_hold_what_all_leaves_have_and_leave_it_out_below() -> None:
    """As node 1 and node 16 of Figure 4: b covers the first, nothing the second, an empty leaf does not count."""
    b, d, x = 1, 2, 7
    child = np.array([1, 5, 9, -1, -1] + [-1] * 8, dtype=np.int32)
    leaf_sets = {5: [b], 6: [b, x], 7: [b], 8: [b], 9: [d], 10: [b], 11: [b], 3: [b]}
    chosen = [np.array(tokens, dtype=np.int32) for tokens in leaf_sets.values()]
    sets = cover_sets(child, list(range(13)), np.array(list(leaf_sets)), chosen)
    told = {node: (cover.tolist(), rest.tolist()) for node, (cover, rest) in sets.items()}
    assert told[1] == ([b], [x])
    assert told[2] == ([], [b, d])
    assert told[0] == ([], [b, d, x])
    assert told[5] == ([], [])
    assert told[6] == ([], [x])
    assert told[9] == ([], [d])
    assert told[12] == ([], [])


def test_every_subscription_is_represented_at_every_node_above_it() -> None:
    """Lemma 1, after bulk build and inserts: some token of it is in a set of the node or a cover set above."""
    batch = messages(60, 5)
    index = indexes.build("pt-quadtree", subscriptions(batch, 200, 6), tau_num=8)
    assert isinstance(index, PtQuadtree)
    for seed in range(10):
        index.insert(subscriptions(batch, 20, seed))
    tree, entries = index.tree, index.entries
    seen = set()
    waiting: list[tuple[int, list[int], frozenset[int]]] = [(ROOT, [], frozenset())]
    while waiting:
        node, path, above = waiting.pop()
        cover = above | set(tree.sets.values(2 * node).tolist())
        path = [*path, node]
        for entry in tree.lists.values(node).tolist():
            start = entries.term_from[entry]
            terms = set(entries.terms[start : start + entries.term_count[entry]].tolist())
            covered: set[int] = set()
            for at in path:
                covered |= set(tree.sets.values(2 * at).tolist())
                assert terms & (covered | set(tree.sets.values(2 * at + 1).tolist()))
            seen.add(entry)
        if tree.child[node] != NONE:
            waiting += [(int(tree.child[node]) + q, path, frozenset(cover)) for q in range(4)]
    assert seen == set(range(400))
    assert index.report().details["quadtree leaves"] > 4


def test_mx_cif_keeps_every_subscription_once() -> None:
    batch = messages(60, 5)
    columns = subscriptions(batch, 300, 6)
    once = indexes.build("pt-quadtree:mx-cif", columns, tau_num=8).report().details
    leaves = indexes.build("pt-quadtree", columns, tau_num=8).report().details
    assert once["ids in lists"] == 300 < leaves["ids in lists"]


def test_regions_that_nothing_separates_are_not_divided() -> None:
    rows = [(EVERYWHERE, [term % 7]) for term in range(200)]
    index = indexes.build("pt-quadtree", flat_subscriptions(rows), tau_num=4)
    index.insert(flat_subscriptions(rows[:50]))
    assert index.report().details["quadtree nodes"] == 1


def test_lfilter_says_what_it_chose_and_prunes_lists() -> None:
    n = 300 if PURE else 3000
    batch = messages(n, 1)
    columns = subscriptions(batch, n, 2)
    found = {}
    candidates = {}
    for variant in ("lfilter", "lfilter:lists", "lfilter:direct", "lfilter:quadtree"):
        index = indexes.build(variant, columns, tau_num=16, algorithm="quadtree")
        found[variant] = index.match(batch).as_set()
        report = index.report()
        candidates[variant] = report.candidates
        assert report.details["messages by quadtree"] == n
        assert report.details["leaves expected"] == n  # points
        assert report.details["leaves chosen"] <= n
    assert len({frozenset(pairs) for pairs in found.values()}) == 1
    assert candidates["lfilter:lists"] <= candidates["lfilter"] < candidates["lfilter:direct"]


def test_lfilter_chooses_by_message() -> None:
    """A long message at a point costs the trie much, a message everywhere the quadtree."""
    n = 200 if PURE else 2000
    base = messages(n, 1)
    index = indexes.build("lfilter", subscriptions(base, 10 * n, 2, area=(1e-6, 1e-5)), tau_num=4, tau_area=1e-6)
    long = messages(20, 3, LONG_RANGE)
    points = MessageBatch.from_flat(np.tile(long.boxes[:, :2], 2), long.term_from, long.terms)
    index.match(points)
    by_quadtree = index.report().details["messages by quadtree"]
    everywhere = MessageBatch.from_flat(np.tile([0.0, 0.0, 1.0, 1.0], (20, 1)), long.term_from, long.terms)
    index.match(everywhere)
    assert by_quadtree > 10
    assert index.report().details["messages by quadtree"] - by_quadtree < 10


@pytest.mark.parametrize(
    ("name", "option", "value", "words"),
    [
        ("mbr-trie", "probe", "all", "it can be tokens, trie, cost"),
        ("mbr-trie", "order", 3, "it can be rare, frequent, alphabetical"),
        ("pt-quadtree", "tau_num", 0, "1 or more"),
        ("pt-quadtree", "tau_area", 2.0, "a share of the region"),
        ("pt-quadtree", "lists", "both", "it can be leaves, mx-cif"),
        ("lfilter", "verification", "none", "it can be hybrid, lists, direct"),
        ("lfilter", "algorithm", "best", "it can be cost, trie, quadtree"),
        ("lfilter", "k", 99, "a level from 0 to 8"),
    ],
)
def test_a_wrong_option_is_told_what_is_allowed(name: str, option: str, value: object, words: str) -> None:
    with pytest.raises(CatalogueError, match=words):
        indexes.create(name, **{option: value})


@pytest.mark.parametrize("name", ["mbr-trie", "pt-quadtree", "lfilter"])
def test_a_batch_larger_than_the_index_is_built_in_at_once(name: str) -> None:
    batch = messages(50, 1)
    index = indexes.build(name, subscriptions(batch, 5, 2))
    index.insert(subscriptions(batch, 1200, 3))
    assert index.report().rebuilds == 1
    index.remove(np.arange(1205))
    assert index.report().rebuilds == 2
    assert len(index.match(batch).message) == 0
