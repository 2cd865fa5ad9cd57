"""The part of a hub that moves: subscriptions whose region changes, and what enters and leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from nearcast.deliveries import Delivery, UnknownSubscriptionError
from nearcast.expression import parse
from nearcast.geo import Region, Space
from nearcast.keeping.followers import FollowKeeper
from nearcast.keeping.keeper import Keeper
from nearcast.model import Id, Message, Subscription
from nearcast.moving import MoveReport
from nearcast.moving.tracker import MoveChange, Tracker
from nearcast.ranking import Window
from nearcast.records import read_id
from nearcast.text import Analyzer


class Following:
    """`follow`, `move` and `current` of a hub. Messages live in the hub's window, or for their own `ttl`."""

    space: Space
    _analyzer: Analyzer
    _window: Window
    _numbers: count[int]
    _keeper: Keeper | None = None
    _tracker: Tracker | None = None

    def follow(self, id: Id, expression: str, within: Region, *, subscriber: Id | None = None) -> Id:
        """Leave a wish whose region may move: `move` moves it, `current` says which live messages it has.

        Changes come as deliveries of `move`, `publish` and `advance`: `enter` and `leave`. Messages live in the window
        of the hub, which begins with the first such wish, or for their own `ttl`. With a store, who
        follows and the live messages are there again after a restart, and where everybody was at the last
        checkpoint. Ids are apart from those of `subscribe`.
        """
        wish = Subscription(
            read_id({"id": id}),
            parse(expression, self._analyzer),
            self.space.check_region(within),
            None if subscriber is None else read_id({"subscriber": subscriber}, "subscriber"),
        )
        self.follow_all([wish])
        return wish.id

    def follow_all(self, wishes: Sequence[Subscription]) -> None:
        """Many at once, all or none."""
        if self._tracker is None:
            self._tracker = self._new_tracker()
        if self._keeper is not None:
            self._tracker.check_new(wishes)
            FollowKeeper(self._keeper).begin(wishes, self._tracker)
        self._tracker.follow(wishes)

    def _new_tracker(self) -> Tracker:
        return Tracker.create(self.space, count=self._window.count, seconds=self._window.seconds)

    def _restore_followers(self, keeper: Keeper) -> None:
        kept = FollowKeeper(keeper)
        if wishes := kept.wishes():
            self._tracker = self._new_tracker()
            kept.fill(self._tracker, wishes)

    def unfollow(self, id: Id) -> None:
        tracker = self._followers()
        tracker.subscription(id)  # or an error, before anything is written
        if self._keeper is not None:
            FollowKeeper(self._keeper).end(id)
        tracker.unfollow(id)

    def move(self, id: Id, region: Region) -> list[Delivery]:
        """The region of a moving subscription is this now; what enters and leaves by that."""
        return self.move_all({id: region})

    def move_all(self, regions: Mapping[Id, Region]) -> list[Delivery]:
        """Many moves as one step, much faster than one by one. All or none: on an error nobody has moved."""
        return self._followed(self._followers().move(regions), None)

    def current(self, id: Id) -> list[Message]:
        """The live messages that a moving subscription has now, in the order in which they came."""
        return self._followers().current(id)

    def follower(self, id: Id) -> Subscription:
        """A moving subscription as it is now."""
        return self._followers().subscription(id)

    def followers(self) -> list[Subscription]:
        return [] if self._tracker is None else self._tracker.subscriptions()

    def followers_of(self, subscriber: Id) -> list[Subscription]:
        return [] if self._tracker is None else self._tracker.subscriptions_of(subscriber)

    def is_following(self, id: Id) -> bool:
        return self._tracker is not None and id in self._tracker

    @property
    def n_followers(self) -> int:
        return 0 if self._tracker is None else len(self._tracker)

    def move_report(self) -> MoveReport:
        return self._followers().report()

    def _followers(self) -> Tracker:
        if self._tracker is None:
            raise UnknownSubscriptionError("this hub holds no moving subscription; leave one by follow")
        return self._tracker

    def _followed(self, changes: list[MoveChange], seqs: tuple[int, int] | None) -> list[Delivery]:
        """`seqs`: numbers in the log of the first and last message of the batch that brought the changes."""
        deliveries = []
        for change in changes:
            wish = change.subscription
            seq = None if seqs is None else seqs[1] if change.number is None else seqs[0] + change.number
            operation, reason = ("enter", wish) if change.entered else ("leave", None)
            deliveries.append(
                Delivery(wish.id, wish.receiver, change.message, operation, seq, None, reason, self.space)
            )
        return deliveries
