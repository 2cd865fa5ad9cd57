"""Streams: what was missed from the log, then live, in order, each message at least once.

Every reader has a bounded outbox. A reader that is too slow loses its outbox, not its messages: it goes on from
its position in the log (DESIGN 6), so that it costs neither memory nor anybody else's time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import NamedTuple

from nearcast.hub import Hub
from nearcast.keeping.rematch import Chunk, Rematch
from nearcast.model import Id
from nearcast.service.engine import Engine, Event
from nearcast.service.kinds import Current, all_current

SINKS = ("sse", "websocket", "webhook", "kafka")


class Gap(NamedTuple):
    """Messages between these numbers (the last included) are not kept any more: some may have been missed."""

    after: int
    up_to: int


class Reader(NamedTuple):
    tenant: str
    subscriber: Id
    sink: str  # by what it reads: one of SINKS


class Outbox:
    """Events that wait for one reader. Used on the event loop only."""

    def __init__(self, most: int) -> None:
        self._events: deque[Event] = deque()
        self._most = most
        self._news = asyncio.Event()
        self.position: int | None = None  # last number of the log that the reader was given; None: it has everything
        self.is_behind = False  # events were dropped: the log has them
        self.is_closed = False

    def put(self, event: Event) -> bool:
        """False if there was no room: what waited is dropped, and the reader goes on from the log."""
        if self.is_behind:
            return True
        self._news.set()
        if self.position is None:
            self.position = event.seq - 1
        if len(self._events) < self._most:
            self._events.append(event)
            return True
        self.send_back()
        return False

    def send_back(self) -> None:
        """To the log."""
        self._events.clear()
        self.is_behind = True
        self._news.set()

    def take(self) -> list[Event]:
        taken = list(self._events)
        self._events.clear()
        self._news.clear()
        return taken

    def start_again(self) -> None:
        self.is_behind = False
        self._events.clear()

    def rest(self) -> None:
        """The reader was given all that came out of here."""
        self.position = self.position if self._events else None

    def close(self) -> None:
        self.is_closed = True
        self._news.set()

    async def wait(self, seconds: float) -> None:
        """Until there is something, or for this long."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return


class Live:
    """All open outboxes by tenant and subscriber."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop, self._most = loop, most
        self._outboxes: dict[tuple[str, Id], set[Outbox]] = {}
        self._by_sink: dict[str, set[Outbox]] = {sink: set() for sink in SINKS}
        self.is_closing = False
        self.fallbacks = 0  # times that a slow reader was sent back to the log

    @property
    def open_streams(self) -> int:
        return sum(map(len, self._outboxes.values()))

    def lag(self, sink: str, last_seq: int) -> int:
        """Messages of the log between the sink's last reader and the end; 0 if all readers have what is theirs."""
        return max((last_seq - box.position for box in self._by_sink[sink] if box.position is not None), default=0)

    def hand_over(self, tenant: str, events: list[Event] | None) -> None:
        """Called on the engine's thread. None: nobody knows who is concerned, so everybody looks into the log."""
        if events is None:
            self._loop.call_soon_threadsafe(self._send_back, tenant)
        elif events and self._outboxes:
            self._loop.call_soon_threadsafe(self._distribute, tenant, events)

    def _send_back(self, tenant: str) -> None:
        for (owner, _), readers in self._outboxes.items():
            for outbox in readers if owner == tenant else ():
                outbox.send_back()
                self.fallbacks += 1

    def _distribute(self, tenant: str, events: list[Event]) -> None:
        for event in events:
            for outbox in self._outboxes.get((tenant, event.subscriber), ()):
                self.fallbacks += not outbox.put(event)

    def open(self, reader: Reader) -> Outbox:
        outbox = Outbox(self._most)
        self._outboxes.setdefault(reader[:2], set()).add(outbox)
        self._by_sink[reader.sink].add(outbox)
        if self.is_closing:
            outbox.close()
        return outbox

    def leave(self, reader: Reader, outbox: Outbox) -> None:
        self._by_sink[reader.sink].discard(outbox)
        readers = self._outboxes[reader[:2]]
        readers.discard(outbox)
        if not readers:
            del self._outboxes[reader[:2]]

    def close(self) -> None:
        """Every stream ends after what it is sending; readers come back with their position."""
        self.is_closing = True
        for readers in self._outboxes.values():
            for outbox in readers:
                outbox.close()


async def stream(
    engine: Engine, live: Live, reader: Reader, after: int | None, ping: float
) -> AsyncGenerator[Event | Current | Gap | None]:
    """Events behind `after` (None: from now on), then live ones; None when all is given, and every `ping` seconds.

    Matches that were missed come from the log. Of wishes that change by themselves (rankings, followers) the
    reader gets what they hold now instead, then changes again.
    """
    tenant, subscriber, _ = reader
    outbox = live.open(reader)  # first, so that nothing falls between the log and the outbox
    try:
        now = await engine.watch(tenant, subscriber)
        position = now if after is None else min(after, now)
        outbox.is_behind = after is not None
        while not outbox.is_closed:
            if outbox.is_behind:
                outbox.start_again()
                outbox.position = position
                async for item in _missed(engine, tenant, subscriber, position):
                    outbox.position = position
                    if isinstance(item, int):
                        position = item
                    else:
                        yield item
            done = position
            for event in outbox.take():  # all events of a message are put at once, so they are taken at once
                if event.moved or event.seq > done:
                    outbox.position, position = (
                        position,
                        max(position, event.seq),
                    )  # it has this one when it comes again
                    yield event
            if not outbox.is_behind and not outbox.is_closed:
                outbox.rest()
                yield None
                await outbox.wait(ping)
    finally:
        live.leave(reader, outbox)
        engine.unwatch(tenant, subscriber)  # also if the reader left before its turn came: then it comes first


async def _missed(
    engine: Engine, tenant: str, subscriber: Id, after: int
) -> AsyncIterator[Event | Current | Gap | int]:
    """The log behind `after` up to what is there now: events, and how far it is done."""
    up_to, changing = await engine.call(tenant, lambda hub: (hub.last_seq, all_current(hub, subscriber)))
    first = engine.store.log.first_seq
    if after < first - 1:
        yield Gap(after, first - 1)
        after = first - 1
    if after < up_to:
        hub = await engine.call(tenant, _itself)
        past = await asyncio.to_thread(hub.past_of, subscriber, after)  # reads the store, not the hub
        async for chunk in _chunks(past, after, up_to):
            for event in events_of(chunk, subscriber):
                yield event
            yield chunk.position
    for wish in changing:
        yield wish


async def _chunks(past: Rematch, after: int, up_to: int) -> AsyncIterator[Chunk]:
    """Off the event loop, so that a long way through the log stops nobody."""
    while after < up_to:
        chunk = await asyncio.to_thread(past.chunk, after, up_to)
        yield chunk
        after = chunk.position


def events_of(chunk: Chunk, subscriber: Id) -> Iterable[Event]:
    for found in chunk.found:
        yield Event(subscriber, found.seq, found.message, tuple(valid.wish.id for valid in found.wanted))


def _itself(hub: Hub) -> Hub:
    return hub
