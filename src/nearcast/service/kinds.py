"""The kinds of standing wishes that share one address: `match` and `rank`. Only for the engine's thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from nearcast.hub import Hub
from nearcast.model import Id, Message, Subscription, Wish

Standing = Subscription | Wish
Kind = Literal["match", "rank"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Holding(NamedTuple):
    """A message that a wish holds now; a ranking has its score."""

    message: Message
    score: float | None


class Current(NamedTuple):
    """All that a wish of a changing kind holds after message `seq`, best first."""

    seq: int
    wish: Standing
    holding: list[Holding]


def kind_of(wish: Standing) -> Kind:
    return "rank" if isinstance(wish, Wish) else "match"


def held(hub: Hub) -> int:
    return len(hub) + hub.rankings


def is_held(hub: Hub, identity: Id) -> bool:
    return identity in hub or hub.keeps_ranking(identity)


def get(hub: Hub, identity: Id) -> Standing:
    return hub.wish(identity) if hub.keeps_ranking(identity) else hub.subscription(identity)


def of(hub: Hub, subscriber: Id) -> list[Standing]:
    return [*hub.subscriptions_of(subscriber), *hub.wishes_of(subscriber)]


def put(hub: Hub, wishes: Sequence[Standing]) -> None:
    """Take wishes in, each instead of the one with its id. Ids must differ."""
    matching = [wish for wish in wishes if isinstance(wish, Subscription)]
    ranking = [wish for wish in wishes if isinstance(wish, Wish)]
    for wish in wishes:
        if hub.keeps_ranking(wish.id):
            hub.unrank(wish.id)
    for wish in ranking:
        if wish.id in hub:
            hub.unsubscribe(wish.id)
    hub.subscribe_all(matching, replace=True)
    if ranking:
        hub.rank_all(ranking)


def remove(hub: Hub, identity: Id) -> None:
    if hub.keeps_ranking(identity):
        hub.unrank(identity)
    else:
        hub.unsubscribe(identity)


def current(hub: Hub, wish: Wish) -> Current:
    return Current(hub.last_seq, wish, [Holding(*ranked) for ranked in hub.ranking(wish.id)])


def all_current(hub: Hub, subscriber: Id) -> list[Current]:
    """Of every wish of a subscriber that changes by itself."""
    return [current(hub, wish) for wish in hub.wishes_of(subscriber)]


def all_of(hub: Hub) -> list[Standing]:
    return [*hub.subscriptions(), *hub.wishes()]
