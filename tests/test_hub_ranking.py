"""Rankings of a hub: text in, changes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast import Hub
from nearcast.errors import NearcastError, RowError
from nearcast.geo import plane
from nearcast.lexicon import Lexicon
from nearcast.ranking import Window, WindowError
from nearcast.ranking.board import UnknownWishError

LINE = plane(0, 0, 10, 1)


def told(deliveries: list) -> list[tuple]:
    return [(d.operation, d.subscription, d.message.id) for d in deliveries]


def test_a_ranking_changes_as_messages_come_and_go() -> None:
    hub = Hub(space=LINE, window=Window(count=2))
    cy = hub.rank("cy", "live jazz", near=(0, 0), k=1, alpha=0.5)
    assert told(hub.publish("jazz tonight", at=(5, 0), id=1)) == [("enter", cy, 1)]
    first = hub.publish("live jazz", at=(1, 0), id=2)
    assert sorted(told(first)) == [("enter", cy, 2), ("leave", cy, 1)]
    assert first[0].subscriber == "cy"
    assert hub.publish("rock", at=(0, 0), id=3) == []
    assert told(hub.publish("soul", at=(0, 0), id=4)) == [("leave", cy, 2)]
    hub.publish("more jazz", at=(9, 0), id=5)
    [(message, score)] = hub.ranking(cy)
    assert (message.id, round(score, 3)) == (5, 0.302)
    late = hub.rank("bo", "jazz", near=(0, 0), k=3)
    assert [message.id for message, _ in hub.ranking(late)] == [5]
    hub.unrank(cy)
    assert told(hub.publish("live jazz", at=(0, 0), id=6)) == [("enter", late, 6)]
    assert hub.rank_report().live == 1


def test_time_and_recorded_weights() -> None:
    lexicon = Lexicon()
    terms = lexicon.intern_all(["common", "rare"])
    import numpy as np

    lexicon.count(np.array(terms[:1] * 99 + terms[1:], np.int32), 99)
    hub = Hub(space=LINE, window=Window(seconds=10.0), recorded=lexicon)
    wish = hub.rank("cy", "common rare", near=(0, 0), k=1, alpha=0.0)
    hub.publish("common", at=(0, 0), id=1, ts=100)
    assert sorted(told(hub.publish("rare", at=(9, 0), id=2, ts=105))) == [("enter", wish, 2), ("leave", wish, 1)]
    assert hub.publish("rare", at=(0, 0), id=3, ts=104) == []
    assert hub.rank_report().late == 1
    assert told(hub.advance(115)) == [("leave", wish, 2)]
    with pytest.raises(WindowError, match="does not run back"):
        hub.advance(1)
    with pytest.raises(NearcastError, match="has no ts"):
        hub.publish("rare", at=(0, 0))


def test_bad_wishes_get_a_clear_error() -> None:
    hub = Hub()
    assert hub.advance(5.0) == []
    with pytest.raises(NearcastError, match="holds no ranking"):
        hub.ranking("nobody")
    for options, why in [({"k": 0}, "k: 0"), ({"k": 10**6}, "1 to 10,000"), ({"alpha": 2.0}, "alpha: 2.0")]:
        with pytest.raises(RowError, match=why):
            hub.rank("cy", "jazz", near=(0, 0), **options)
    with pytest.raises(RowError, match="at least one word"):
        hub.rank("cy", "!!", near=(0, 0))
    hub.rank("cy", "jazz", near=(0, 0), id="cy")
    with pytest.raises(NearcastError, match="'cy' exists"):
        hub.rank("cy", "jazz", near=(0, 0), id="cy")
    with pytest.raises(UnknownWishError, match="'bo' given"):
        hub.unrank("bo")
    [delivery] = hub.publish("jazz", at=(1, 1))
    with pytest.raises(NearcastError, match="has a score"):
        _ = delivery.why


def seen(hub: Hub, wish: object) -> list[tuple]:
    return [(message.id, round(score, 9)) for message, score in hub.ranking(wish)]  # type: ignore[arg-type]


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("window", [Window(count=4), Window(seconds=4.0)])
def test_rankings_and_their_window_survive_a_restart(tmp_path: Path, window: Window, closed: bool) -> None:
    """Closed or not: the wishes are in the store, the window comes from the log, and both go on as if nothing was."""
    url, memory = f"sqlite:///{tmp_path}/alerts.db", Hub(space=LINE, window=window)
    kept = Hub.open(url, space=LINE, window=window)
    for hub in (kept, memory):
        hub.publish("jazz before any wish", at=(0, 0), id=0, ts=0)
        hub.rank("cy", "live jazz jazz", near=(0, 0), k=2, alpha=0.5, id="best")
        hub.rank("bo", "jazz", near=(9, 0), k=1, alpha=1.0, id="gone")
        for i in range(1, 8):
            hub.publish("live jazz" if i % 3 else "jazz", at=(i, 0), id=i, ts=i - 2 * (i == 5))
        hub.unrank("gone")
    if closed:
        kept.close()
    else:
        assert kept._keeper is not None
        kept._keeper.store.close()
    with Hub.open(url, window=window) as again:
        assert again.wishes() == memory.wishes()
        assert seen(again, "best") == seen(memory, "best")
        for i in range(8, 14):
            ours, other = (hub.publish("jazz", at=(i % 4, 0), id=i, ts=i) for hub in (again, memory))
            assert sorted(told(ours)) == sorted(told(other))
        assert again.rank("cy", "soul", near=(0, 0)) not in ("best", "gone")
        again.unrank("best")
        with pytest.raises(UnknownWishError):
            again.unrank("best")
    with Hub.open(url, window=window) as last:
        assert [wish.words for wish in last.wishes()] == [("soul",)]
        with pytest.raises(NearcastError, match="exists"):
            last.rank("cy", "soul", near=(0, 0), id=last.wishes()[0].id)


def test_time_that_passed_without_a_message_is_kept_on_closing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/alerts.db"
    with Hub.open(url, space=LINE, window=Window(seconds=5.0)) as hub:
        wish = hub.rank("cy", "jazz", near=(0, 0))
        hub.publish("jazz", at=(1, 0), id=1, ts=1)
        hub.publish("jazz", at=(1, 0), id=2, ts=4)
        hub.advance(7.0)
    with Hub.open(url, window=Window(seconds=5.0)) as hub:
        assert [message.id for message, _ in hub.ranking(wish)] == [2]
        with pytest.raises(WindowError, match="does not run back"):
            hub.advance(6.0)
    with Hub.open(url, window=Window(count=5)) as hub:  # another window: what the log has of it
        assert [message.id for message, _ in hub.ranking(wish)] == [2]
