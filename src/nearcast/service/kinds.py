"""The kinds of standing wishes that share one address: `match`, `rank` and `follow`. Only for the engine's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from nearcast.geo import Region
from nearcast.hub import Delivery, Hub
from nearcast.model import Id, Message, Subscription, Wish

Kind = Literal["match", "rank", "follow"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Follower:
    """A subscription whose region moves."""

    wish: Subscription

    @property
    def id(self) -> Id:
        return self.wish.id

    @property
    def receiver(self) -> Id:
        return self.wish.receiver


Standing = Subscription | Wish | Follower
Changing = Wish | Follower


class Holding(NamedTuple):
    """A message that a wish holds now; a ranking has its score."""

    message: Message
    score: float | None


class Current(NamedTuple):
    """All that a wish of a changing kind holds after message `seq`: a ranking best first, a follower oldest first."""

    seq: int
    wish: Changing
    holding: list[Holding]


def kind_of(wish: Standing) -> Kind:
    return "rank" if isinstance(wish, Wish) else "follow" if isinstance(wish, Follower) else "match"


def held(hub: Hub) -> int:
    return len(hub) + hub.rankings + hub.n_followers


def is_held(hub: Hub, identity: Id) -> bool:
    return identity in hub or hub.keeps_ranking(identity) or hub.is_following(identity)


def get(hub: Hub, identity: Id) -> Standing:
    if hub.keeps_ranking(identity):
        return hub.wish(identity)
    return Follower(hub.follower(identity)) if hub.is_following(identity) else hub.subscription(identity)


def of(hub: Hub, subscriber: Id) -> list[Standing]:
    return [*hub.subscriptions_of(subscriber), *_changing(hub, subscriber)]


def all_of(hub: Hub) -> list[Standing]:
    return [*hub.subscriptions(), *hub.wishes(), *map(Follower, hub.followers())]


def put(hub: Hub, wishes: Sequence[Standing]) -> None:
    """Take wishes in, each instead of the one with its id. Ids must differ."""
    for wish in wishes:
        if hub.keeps_ranking(wish.id) or hub.is_following(wish.id):
            remove(hub, wish.id)
        elif wish.id in hub and not isinstance(wish, Subscription):
            hub.unsubscribe(wish.id)
    hub.subscribe_all([wish for wish in wishes if isinstance(wish, Subscription)], replace=True)
    if ranking := [wish for wish in wishes if isinstance(wish, Wish)]:
        hub.rank_all(ranking)
    if following := [wish.wish for wish in wishes if isinstance(wish, Follower)]:
        hub.follow_all(following)


def remove(hub: Hub, identity: Id) -> None:
    if hub.keeps_ranking(identity):
        hub.unrank(identity)
    elif hub.is_following(identity):
        hub.unfollow(identity)
    else:
        hub.unsubscribe(identity)


def move(hub: Hub, regions: Mapping[Id, Region]) -> tuple[int, list[Delivery]]:
    """Followers to their new regions, all or none: what changes by that, after which message."""
    return hub.last_seq, hub.move_all(regions)


def current(hub: Hub, wish: Changing) -> Current:
    if isinstance(wish, Follower):
        return Current(hub.last_seq, wish, [Holding(message, None) for message in hub.current(wish.id)])
    return Current(hub.last_seq, wish, [Holding(*ranked) for ranked in hub.ranking(wish.id)])


def all_current(hub: Hub, subscriber: Id) -> list[Current]:
    """Of every wish of a subscriber that changes by itself."""
    return [current(hub, wish) for wish in _changing(hub, subscriber)]


def _changing(hub: Hub, subscriber: Id) -> list[Changing]:
    return [*hub.wishes_of(subscriber), *map(Follower, hub.followers_of(subscriber))]
