"""Deliveries for those who read are the deliveries of all, without the others; and all are counted."""

from __future__ import annotations

import random

import pytest

from nearcast import Hub, box
from nearcast.hub import Delivery

WORDS = ("jazz", "blues", "rock", "folk")
NAMES = ("ana", "bo", "cy")


def shown(deliveries: list[Delivery]) -> list[tuple[object, ...]]:
    return sorted((d.seq, d.subscriber, d.subscription, d.operation) for d in deliveries)


@pytest.mark.parametrize("seed", range(8))
def test_watched_and_all_agree(seed: int) -> None:
    chance = random.Random(seed)
    plain, watched = Hub(), Hub()
    reading: list[str] = []
    seq = 1
    for step in range(60):
        act = chance.random()
        if act < 0.3:
            who, word, where = chance.choice(NAMES), chance.choice(WORDS), box(0, 0, chance.randint(0, 3), 3)
            ends = {"max_events": chance.choice((None, 2)), "expires": chance.choice((None, 40.0))}
            identity = f"s{chance.randint(0, 9)}"
            for hub in (plain, watched):
                hub.subscribe(who, word, where, id=identity, replace=True, **ends)
        elif act < 0.4 and len(plain):
            gone = chance.choice([w.id for w in plain.subscriptions()])
            plain.unsubscribe(gone)
            watched.unsubscribe(gone)
        elif act < 0.5:
            reading.append(chance.choice(NAMES))
            watched.watch(reading[-1])
        elif act < 0.6 and reading:
            watched.unwatch(reading.pop(chance.randrange(len(reading))))
        else:
            posts = [
                plain.message(chance.choice(WORDS), at=(chance.randint(0, 3), 1), id=n, ts=float(step))
                for n in range(chance.randint(1, 4))
            ]
            everything = plain.deliver(posts, seq)
            few, total = watched.deliver_watched(posts, seq)
            assert total == len(everything)
            assert shown(few) == shown([d for d in everything if d.subscriber in reading])
            seq += len(posts)
