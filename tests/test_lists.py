"""Growing lists against plain Python lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.indexes.lists import GrowingLists

steps = st.lists(st.tuples(st.booleans(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=20)))


@given(steps=steps)
def test_agrees_with_python_lists(steps: list) -> None:
    lists, model = GrowingLists(), [set() for _ in range(5)]
    lists.make_room(5)
    for adds, pairs in steps:
        chosen = {(at, v) for at, v in pairs if (v in model[at]) != adds}
        if not chosen:
            continue
        targets, values = np.array(sorted(chosen)).T
        if adds:
            lists.append(targets, values)
            for at, v in chosen:
                model[at].add(v)
        else:
            gone = set(values.tolist())
            lists.drop(targets, values, 21)
            for at in set(targets.tolist()):
                model[at] -= gone
        lists = GrowingLists.restored(lists.state())
        assert [sorted(lists.values(at).tolist()) for at in range(5)] == [sorted(m) for m in model]


def test_room_is_used_again() -> None:
    lists = GrowingLists()
    lists.make_room(2)
    sizes = []
    for _ in range(50):
        lists.append(np.zeros(100, dtype=np.int64), np.arange(100))
        lists.drop(np.zeros(1, dtype=np.int64), np.arange(100), 100)
        sizes.append(lists.nbytes)
    assert sizes[-1] == sizes[0]
