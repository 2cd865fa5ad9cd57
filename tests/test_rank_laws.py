"""The laws of ranking: after every step, every ranking is the reference's; for all rankers, in both modes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast import ranking
from tests.ranked_worlds import Play, Stream, flat_streams, round_streams


def _case(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.xdist_group(f"rank-{name.partition(':')[0]}"))


every_ranker = pytest.mark.parametrize("name", [_case(name) for name in ranking.names()])


@every_ranker
@given(stream=flat_streams, batched=st.booleans())
def test_rankings_and_changes_are_the_reference_s(name: str, stream: Stream, batched: bool) -> None:
    Play(name, stream, batched).run()


@every_ranker
@given(stream=round_streams, batched=st.booleans())
def test_rankings_on_the_earth(name: str, stream: Stream, batched: bool) -> None:
    Play(name, stream, batched).run()


@every_ranker
@given(stream=flat_streams)
def test_numbers_that_start_anew_change_nothing(name: str, stream: Stream) -> None:
    play = Play(name, stream, True)
    play.ranker.renumber_from = 1
    play.run()
