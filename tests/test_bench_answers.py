"""Answers of the bench: every difference is seen."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.bench import BenchError
from nearcast.bench.answers import Agreement, Answer
from nearcast.columns import Pairs


def pairs(*rows):
    message, slot = zip(*rows, strict=True)
    return Pairs(np.array(message, dtype=np.int32), np.array(slot, dtype=np.int32))


ROWS = [(0, 5), (0, 6), (1, 5), (3, 0), (3, 7)]


def test_order_does_not_change_an_answer():
    assert Answer.of(pairs(*ROWS), 4).first_difference(Answer.of(pairs(*ROWS[::-1]), 4)) is None


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[:-1], 3),  # one is missing
        ([*ROWS, (2, 1)], 2),  # one too many
        ([*ROWS, (3, 7)], 3),  # one twice
        ([*ROWS[:-1], (3, 8)], 3),  # another one
        ([(0, 5), (0, 5), (1, 5), (3, 0), (3, 7)], 0),  # one twice in place of another
        ([*ROWS, (1, 9), (1, 9)], 1),  # two alike, which an xor alone would not see
    ],
)
def test_every_kind_of_wrong_answer_differs(rows, message):
    assert Answer.of(pairs(*ROWS), 4).first_difference(Answer.of(pairs(*rows), 4)) == message


def test_answers_on_fewer_messages_are_compared_where_both_have_some():
    agreement = Agreement("here")
    agreement.join("short", Answer.of(pairs(*ROWS[:3]), 2))
    agreement.join("long", Answer.of(pairs(*ROWS), 4))
    with pytest.raises(BenchError, match="here: long and wrong disagree on message 3: 2 and 1 matches"):
        agreement.join("wrong", Answer.of(pairs(*ROWS[:-1]), 4))
