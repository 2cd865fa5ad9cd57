"""`Engine`: all hubs, on one thread. What comes in while one group is written is the next group.

Group commit: everything that publishers sent meanwhile goes to the log in one transaction, and each publisher
is answered when its messages are on disk. The order of the log is the order of matching, and subscribing takes
its turn in it, so that `from_seq` is exact.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from nearcast.geo import Region
from nearcast.hub import Delivery, Hub
from nearcast.model import Id, Message
from nearcast.service import kinds
from nearcast.service.faults import TooManyError
from nearcast.store import Store
from nearcast.store.codec import message_bytes

T = TypeVar("T")

GROUP = 50_000
"""Messages after which a group is written even if more wait."""


class Event(NamedTuple):
    """One message for one subscriber, with all of its subscriptions that it matches, or enters or leaves.

    `seq` is the message that brought the event: with `match` this one, with `leave` a later one. The position
    `seq` is reached with the last event of that number; those before it say that there are `more`.
    """

    subscriber: Id
    seq: int
    message: Message
    subscriptions: tuple[Id, ...]
    operation: str = "match"
    scores: tuple[float, ...] = ()  # of rankings, beside subscriptions
    more: bool = False
    moved: bool = False  # brought by a move behind message `seq`: no position in the log


class Published(NamedTuple):
    """What became of messages that are on disk. Without matching, readers get them from the log."""

    first_seq: int
    deliveries: int | None
    unmatched: str | None = None  # why matching failed


@dataclass(slots=True)
class _Job:
    """Work for the thread: messages to publish, or a call to make with the tenant's hub."""

    tenant: str
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]
    messages: Sequence[Message] = ()
    call: Callable[[Hub], Any] | None = None
    bodies: list[tuple[str, bytes]] = field(default_factory=list)

    def settle(self, result: Any, error: BaseException | None = None) -> None:
        def tell() -> None:
            if self.answer.done():  # the client has gone
                return
            if error is None:
                self.answer.set_result(result)
            else:
                self.answer.set_exception(error)

        self.loop.call_soon_threadsafe(tell)


Listener = Callable[[str, list[Event] | None], None]
"""Called on the engine's thread with a tenant's events for those who read, in message order; None: matching failed,
the log knows."""


class Engine:
    def __init__(
        self,
        store: Store,
        *,
        listener: Listener,
        analysis: str | None = None,
        pending: int = 200_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store, self.clock = store, clock
        self._listener, self._analysis, self._most = listener, analysis, pending
        self._hubs: dict[str, Hub] = {}
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._waiting = 0  # messages in the queue
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="nearcast-engine", daemon=True)
        self.failure: str | None = None  # why the last write failed; None: it did not
        for tenant in ["", *{key.tenant for key in store.api_keys.all()}]:
            self.hub(tenant)
        self._thread.start()

    def hub(self, tenant: str) -> Hub:
        """The tenant's hub, opened when it is first asked for. Only for the engine's thread, once it runs."""
        if tenant not in self._hubs:
            self._hubs[tenant] = Hub.open(self.store, tenant=tenant, analysis=self._analysis, clock=self.clock)
        return self._hubs[tenant]

    @property
    def subscriptions(self) -> int:
        """Of all kinds and tenants."""
        return sum(kinds.held(hub) for hub in list(self._hubs.values()))

    @property
    def waiting(self) -> int:
        return self._waiting

    async def publish(self, tenant: str, messages: Sequence[Message]) -> Published:
        """Log and match; returns when the messages are on disk and handed to the listener."""
        with self._counting:
            if self._waiting and self._waiting + len(messages) > self._most:
                raise TooManyError(f"{self._waiting:,} messages wait to be written; at most {self._most:,} may")
            self._waiting += len(messages)
        bodies = [(tenant, message_bytes(message)) for message in messages]
        published: Published = await self._ask(tenant, messages=messages, bodies=bodies)
        return published

    async def call(self, tenant: str, function: Callable[[Hub], T]) -> T:
        """The function's result, from the engine's thread, in turn with everything else."""
        result: T = await self._ask(tenant, call=function)
        return result

    async def watch(self, tenant: str, subscriber: Id) -> int:
        """From the message behind the returned number on, the listener gets this subscriber's events."""

        def step(hub: Hub) -> int:
            hub.watch(subscriber)
            return hub.last_seq

        return await self.call(tenant, step)

    def unwatch(self, tenant: str, subscriber: Id) -> None:
        """In its turn; nobody waits for it."""
        loop = asyncio.get_running_loop()
        self._jobs.put(_Job(tenant, loop, loop.create_future(), call=lambda hub: hub.unwatch(subscriber)))

    async def move(self, tenant: str, regions: Mapping[Id, Region]) -> list[Event]:
        """Moving subscriptions to their new regions; what changes by that, which the listener gets as well."""

        def step(hub: Hub) -> list[Event]:
            seq, deliveries = kinds.move(hub, regions)
            events = _events([replace(delivery, seq=seq) for delivery in deliveries])
            moved = [event._replace(more=True, moved=True) for event in events]
            self._listener(tenant, moved)
            return moved

        return await self.call(tenant, step)

    async def purge(self, *, before: float | None, max_bytes: int | None) -> int:
        """Let the log forget; how many messages."""

        def forget(_: Hub) -> int:
            for hub in self._hubs.values():
                hub.mark_counted()
            return self.store.log.purge(before=before, max_bytes=max_bytes)

        return await self.call("", forget)

    async def _ask(self, tenant: str, **work: Any) -> Any:
        loop = asyncio.get_running_loop()
        job = _Job(tenant, loop, loop.create_future(), **work)
        self._jobs.put(job)
        return await job.answer

    def close(self) -> None:
        """Do what is waiting, write checkpoints, stop."""
        self._jobs.put(None)
        self._thread.join()
        for hub in self._hubs.values():
            hub.close()

    # -- the thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            jobs, more = self._gathered()
            group: list[_Job] = []
            for job in jobs:
                if job.call is None:
                    group.append(job)
                else:
                    self._publish(group)
                    group = []
                    self._answer(job)
            self._publish(group)
            if not more:
                return

    def _gathered(self) -> tuple[list[_Job], bool]:
        """All that waits now, at least one job; False after the last."""
        jobs: list[_Job] = []
        n_messages = 0
        while n_messages < GROUP:
            try:
                job = self._jobs.get(block=not jobs)
            except queue.Empty:
                break
            if job is None:
                return jobs, False
            jobs.append(job)
            n_messages += len(job.messages)
        return jobs, True

    def _answer(self, job: _Job) -> None:
        assert job.call is not None
        try:
            result = job.call(self.hub(job.tenant))
        except Exception as error:
            job.settle(None, error)
        else:
            job.settle(result)

    def _publish(self, group: list[_Job]) -> None:
        """One transaction for the group; then each job is matched and its publisher answered."""
        if not group:
            return
        with self._counting:
            self._waiting -= sum(len(job.messages) for job in group)
        try:
            seq = self.store.log.append([body for job in group for body in job.bodies], self.clock())
            self.failure = None
        except Exception as error:
            self.failure = str(error)
            for job in group:
                job.settle(None, error)
            return
        for job in group:
            self._match(job, seq)
            seq += len(job.messages)

    def _match(self, job: _Job, first_seq: int) -> None:
        try:
            deliveries, total = self.hub(job.tenant).deliver_watched(job.messages, first_seq)
            self._listener(job.tenant, _events(deliveries))
        except Exception as error:  # on disk all the same: readers are sent to the log, which is matched apart
            self.failure = f"matching: {error or type(error).__name__}"
            self._listener(job.tenant, None)
            job.settle(Published(first_seq, None, self.failure))
        else:
            job.settle(Published(first_seq, total))


def _events(deliveries: Sequence[Delivery]) -> list[Event]:
    """One event for each subscriber, message and operation, in the order of seq."""
    grouped: dict[tuple[int, Id, str, int], list[Delivery]] = {}
    changes = False
    for delivery in deliveries:
        assert delivery.seq is not None
        key = delivery.seq, delivery.subscriber, delivery.operation, id(delivery.message)
        grouped.setdefault(key, []).append(delivery)
        changes = changes or delivery.operation != "match"
    events = [
        Event(
            subscriber,
            seq,
            several[0].message,
            tuple(delivery.subscription for delivery in several),
            operation,
            tuple(delivery.score for delivery in several if delivery.score is not None),
        )
        for (seq, subscriber, operation, _), several in grouped.items()
    ]
    return _with_more(sorted(events, key=lambda event: event.seq)) if changes else events


def _with_more(events: list[Event]) -> list[Event]:
    """All but the last event of each subscriber and seq say that there are more."""
    seen: set[tuple[int, Id]] = set()
    for place in range(len(events) - 1, -1, -1):
        key = events[place].seq, events[place].subscriber
        if key in seen:
            events[place] = events[place]._replace(more=True)
        seen.add(key)
    return events
