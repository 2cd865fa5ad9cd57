"""Eight lanes at a time: the instructions say what the plain text says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.kernels import vectors
from nearcast.kernels.jit import kernel
from nearcast.kernels.strata_layout import GUARD, NEVER, ONES

FIELDS = st.tuples(*[st.sampled_from((0, 1, 2, 32765, 32766))] * 4)


def word_of(fields: tuple[int, ...]) -> np.uint64:
    return np.uint64(sum(field << (16 * i) for i, field in enumerate(fields)))


@kernel
def compare_all(words, message, ones, guard, found):
    for first in range(np.uint64(len(words) - 7)):
        found[first] = vectors.compare_eight(words, first, message, ones, guard)


@kernel
def pick_all(source, bits, target, counts):
    n = np.uint64(0)
    for i in range(np.uint64(len(bits))):
        counts[i] = vectors.pick_eight(source, i, bits[i], target, n)
        n += counts[i]


@given(st.lists(FIELDS, min_size=8, max_size=12), FIELDS)
def test_comparing_eight_boxes_with_a_message(boxes: list[tuple[int, ...]], place: tuple[int, ...]) -> None:
    words = np.array([*(word_of(box) for box in boxes[:-1]), NEVER], dtype=np.uint64)
    found = np.zeros(len(words) - 7, dtype=np.uint64)
    compare_all(words, GUARD | word_of(place), ONES, GUARD, found)
    fields = np.array([*boxes[:-1], (32767,) * 4])
    reached, certain = (fields <= place).all(axis=1), (fields < place).all(axis=1)
    for first, bits in enumerate(found.tolist()):
        expected = [*reached[first : first + 8], *certain[first : first + 8]]
        assert [bool(bits >> i & 1) for i in range(16)] == expected


@given(st.lists(st.integers(0, 255), max_size=6))
def test_picking_the_lanes_of_the_set_bits(bits: list[int]) -> None:
    source = np.arange(100, 120, dtype=np.int32)
    target, counts = np.zeros(64, dtype=np.int32), np.zeros(len(bits), dtype=np.uint64)
    pick_all(source, np.array(bits, dtype=np.uint64), target, counts)
    picked = [100 + at + i for at, word in enumerate(bits) for i in range(8) if word >> i & 1]
    assert target[: len(picked)].tolist() == picked
    assert counts.sum() == len(picked)


@pytest.mark.parametrize("n", [0, 3, 8])
def test_the_portable_text_is_the_meaning(n: int) -> None:
    source, target = np.arange(8, dtype=np.int32), np.full(16, -1, dtype=np.int32)
    assert vectors._pick(source, np.uint64(0), np.uint64((1 << n) - 1), target, np.uint64(0)) == n
    assert target[:n].tolist() == list(range(n))
