"""IQ-Tree and RQ-Tree: what the laws do not say, above all that the chosen cells are the cheapest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import indexes
from nearcast.errors import CatalogueError
from nearcast.kernels.jit import kernel
from nearcast.kernels.quadtree import BITS, ROOT, Grid, associate, new_desk
from nearcast.workloads import messages, subscriptions

DEPTH = 3
SIDE = 2**DEPTH
both = pytest.mark.parametrize("name", ["iq-tree", "rq-tree"])


@kernel
def associated(grid, box, price, desk):  # type: ignore[no-untyped-def]
    return associate(grid, (box[0], box[1], box[2], box[3]), (0, 0, 0, ROOT), price, desk, 0)


def cheapest(share: np.ndarray, box: tuple[int, ...], price: float, level: int, x: int, y: int, code: int) -> float:
    """The cost of the part of a box (in smallest cells) inside a cell, by definition."""
    shift = DEPTH - level
    if box[0] >> shift > x or box[2] >> shift < x or box[1] >> shift > y or box[3] >> shift < y:
        return 0.0
    own = float(share[code]) + price
    if level == DEPTH:
        return own
    below = sum(
        cheapest(share, box, price, level + 1, 2 * x + (q & 1), 2 * y + (q >> 1), 4 * code + q) for q in range(4)
    )
    return min(own, below)


def path(x: int, y: int) -> list[int]:
    """Codes of all cells around a smallest cell, itself included."""
    code, codes = ROOT, [ROOT]
    for bit in range(DEPTH - 1, -1, -1):
        code = 4 * code + (x >> bit & 1) + 2 * (y >> bit & 1)
        codes.append(code)
    return codes


spans = st.tuples(st.integers(0, SIDE - 1), st.integers(0, SIDE - 1)).map(sorted)


@given(
    xs=spans,
    ys=spans,
    counts=st.lists(st.integers(0, 9), min_size=SIDE**2, max_size=SIDE**2),
    price=st.sampled_from([0.0, 0.5, 1.0, 3.0, 20.0]),
)
def test_the_chosen_cells_cover_the_box_once_at_the_least_cost(xs: list, ys: list, counts: list, price: float) -> None:
    share = np.zeros(2 * 4**DEPTH, dtype=np.float32)
    share[4**DEPTH :] = counts
    for code in range(4**DEPTH - 1, 0, -1):
        share[code] = share[4 * code : 4 * code + 4].sum()
    box = (xs[0], ys[0], xs[1], ys[1])
    steps = np.array(box, dtype=np.int64) << (BITS - DEPTH)
    desk = new_desk(DEPTH)
    end, cost = associated(Grid(np.zeros(4), share, np.array([DEPTH])), steps, price, desk)
    chosen = desk.cells[:end].tolist()
    assert cost == pytest.approx(cheapest(share, box, price, 0, 0, 0, ROOT))
    assert cost == pytest.approx(sum(float(share[code]) + price for code in chosen))
    for x in range(box[0], box[2] + 1):
        for y in range(box[1], box[3] + 1):
            assert len(set(path(x, y)) & set(chosen)) == 1


@both
def test_little_room_changes_nothing(name: str) -> None:
    batch = messages(60, 1)
    index = indexes.build(name, subscriptions(batch, 200, 2, area=(1e-2, 1e-1)))
    plenty = index.match(batch).as_set()
    index._room = 1
    assert index.match(batch).as_set() == plenty


@both
def test_a_loaded_index_is_built_anew_with_the_history_it_was_saved_with(name: str, tmp_path: Path) -> None:
    past, batch = messages(80, 1), messages(40, 2)
    columns, more = subscriptions(past, 50, 3), subscriptions(past, 200, 4)
    index = indexes.build(name, columns, history=past)
    index.save(tmp_path / "index")
    loaded = indexes.load(tmp_path / "index")
    for each in (index, loaded):
        each.insert(more)
    assert loaded.match(batch).as_set() == index.match(batch).as_set()
    assert loaded.report().details == index.report().details
    assert loaded.report().details["builds"] == 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("iq-tree", {"depth": 11}, "depth 11 given; 0 to 10"),
        ("rq-tree", {"update_weight": 0.0}, "update_weight 0.0 given; above 0"),
        ("rq-tree", {"capacity": 0}, "capacity 0 given; 1 or more"),
    ],
)
def test_bad_options_are_named(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        indexes.create(name, **options)


@both
def test_a_higher_update_weight_keeps_fewer_copies_and_looks_at_more(name: str) -> None:
    past = messages(400, 1)
    columns = subscriptions(past, 1000, 2, keywords=(1, 1), area=(1e-2, 1e-1), zipf=2.0)
    reports = []
    for weight in (1e-6, 1e-1):
        index = indexes.build(name, columns, history=past, update_weight=weight)
        index.match(past)
        reports.append(index.report())
    careful, lazy = reports
    assert careful.details["copies"] > lazy.details["copies"]
    assert careful.candidates < lazy.candidates
    assert careful.found == lazy.found
