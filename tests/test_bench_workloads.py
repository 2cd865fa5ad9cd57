"""Workloads of the bench: decided by a seed, apart from each other, real ones by choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nearcast.bench import BenchError
from nearcast.bench.workload import Workloads, batches
from nearcast.workloads import DataAbsent
from tests.benched import TINY


def test_a_seed_decides_a_workload_and_message_length_leaves_subscriptions_alone():
    one, same, other = Workloads(1).prepare(TINY), Workloads(1).prepare(TINY), Workloads(2).prepare(TINY)
    assert np.array_equal(one.messages.terms, same.messages.terms)
    assert not np.array_equal(one.messages.boxes, other.messages.boxes)
    longer = Workloads(1).prepare(replace(TINY, message_words=(30, 30), message_area=(0.01, 0.01)))
    assert np.array_equal(one.subscriptions.boxes, longer.subscriptions.boxes)
    assert np.array_equal(one.subscriptions.terms, longer.subscriptions.terms)
    assert set(np.diff(longer.messages.term_from)) == {30}
    assert (longer.messages.boxes[:, 0] < longer.messages.boxes[:, 2]).any()
    points = Workloads(1).prepare(replace(TINY, data="range", message_area=(0.0, 0.0)))
    assert (points.messages.boxes[:, :2] == points.messages.boxes[:, 2:]).all()
    assert len(one.newcomers) == 6


def test_long_messages_still_have_subscriptions_of_short_ones():
    long = Workloads(1).prepare(replace(TINY, data="long", vocabulary=5_000, messages=5))
    assert np.diff(long.messages.term_from).min() >= 100


def test_batches_hold_all_messages_once():
    messages = Workloads(1).prepare(TINY).messages
    parts = batches(messages, 7)
    assert [len(part) for part in parts] == [7, 7, 7, 7, 2]
    assert np.array_equal(np.concatenate([part.terms for part in parts]), messages.terms)
    assert all(part.term_from[0] == 0 and part.terms.flags.owndata for part in parts)
    assert sum(map(len, batches(messages, 7, 10))) == 10


def own_words(columns):
    return {int(term) for term in columns.terms if term >= 3}


def test_real_samples_share_no_message(real_folder):
    spec = replace(TINY, data="tweets_terms", vocabulary=None, messages=50, history=60, keywords=(9, 9), churn=0.5)
    made = Workloads(3).prepare(spec)
    measured, history = own_words(made.messages), own_words(made.history)
    wanted = own_words(made.subscriptions) | own_words(made.newcomers)
    assert (len(measured), len(history)) == (50, 60)
    assert wanted
    assert not measured & history
    assert not (measured | history) & wanted


def test_real_messages_can_be_chosen_by_length_and_widened(real_folder):
    spec = replace(TINY, data="tweets_terms", vocabulary=None, message_words=(4, 4), message_area=(1e-3, 1e-3))
    made = Workloads(3).prepare(spec)
    assert set(np.diff(made.messages.term_from)) == {4}
    assert (made.messages.boxes[:, 0] < made.messages.boxes[:, 2]).all()
    with pytest.raises(BenchError, match="0 of 400 messages"):
        Workloads(3).prepare(replace(spec, message_words=(7, 9)))


def test_absent_real_data_is_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARCAST_DATA", str(tmp_path))
    with pytest.raises(DataAbsent):
        Workloads(1).prepare(replace(TINY, data="gn_gnis", vocabulary=None))
