"""What every request needs, made once when the server starts."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection, Request

from nearcast.hub import Hub
from nearcast.service.access import Caller, Gate
from nearcast.service.engine import Engine, Event
from nearcast.service.faults import TooLargeError
from nearcast.service.intake import Intake
from nearcast.service.live import SINKS, Live
from nearcast.service.metrics import Metrics
from nearcast.service.settings import Settings
from nearcast.service.webhooks import Couriers
from nearcast.store import open_store
from nearcast.text import analyzer


class Service:
    """The running parts. Made on the event loop that serves."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.store = open_store(settings.store)
        gc.disable()  # while subscriptions are read, nothing becomes garbage
        try:
            self.live = Live(asyncio.get_running_loop(), settings.limits.outbox)
            self.engine = Engine(
                self.store,
                listener=self._hand_over,
                analysis=settings.analysis,
                pending=settings.limits.pending,
                clock=clock,
            )
            self.gate = Gate(self.store)
        except BaseException:
            self.store.close()
            raise
        finally:
            _settle_memory()
        self.couriers = Couriers(self.engine, self.live, self.metrics, settings)
        self._watch()
        self._intakes: dict[str, Intake] = {}

    def _hand_over(self, tenant: str, events: list[Event] | None) -> None:
        if events is None:
            self.metrics.unmatched.inc()
        self.live.hand_over(tenant, events)

    def _watch(self) -> None:
        watch, log = self.metrics.watch, self.store.log
        watch("subscriptions", "Live subscriptions", lambda: self.engine.subscriptions)
        watch("log_last_seq", "Number of the last message", lambda: log.last_seq)
        watch("log_first_seq", "Number of the first message that is kept", lambda: log.first_seq)
        watch("log_bytes", "Size of the messages that are kept", lambda: log.nbytes)
        watch("messages_waiting", "Messages that wait to be written", lambda: self.engine.waiting)
        watch("streams_open", "Connected readers", lambda: self.live.open_streams)
        watch("stream_fallbacks", "Times that a slow reader was sent back to the log", lambda: self.live.fallbacks)
        for sink in SINKS:
            self.metrics.lag.labels(sink).set_function(partial(self._lag, sink))

    def _lag(self, sink: str) -> int:
        return self.live.lag(sink, self.store.log.last_seq)

    async def intake(self, tenant: str) -> Intake:
        if tenant not in self._intakes:
            hub = await self.hub(tenant)
            self._intakes[tenant] = Intake(hub.space, analyzer(hub.lexicon.analyzer), self.settings.limits)
        return self._intakes[tenant]

    async def hub(self, tenant: str) -> Hub:
        """For questions to the store, which any thread may ask; whatever touches the index goes by `engine.call`."""
        return await self.engine.call(tenant, lambda hub: hub)

    async def retain(self) -> None:
        """Until cancelled: let the log forget what the retention does not cover."""
        settings = self.settings
        while settings.keep_seconds is not None or settings.keep_bytes is not None:
            before = None if settings.keep_seconds is None else self.engine.clock() - settings.keep_seconds
            purged = await self.engine.purge(before=before, max_bytes=settings.keep_bytes)
            self.metrics.purged.inc(purged)
            await asyncio.sleep(settings.purge_seconds)

    async def close(self) -> None:
        self.live.close()
        await self.couriers.close()
        await asyncio.to_thread(self.engine.close)
        self.store.close()


def _settle_memory() -> None:
    """What is there now stays: a million subscriptions need not be searched for garbage again and again, which would
    be pauses of a second in the middle of requests."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _service(connection: HTTPConnection) -> Service:
    service: Service = connection.app.state.service
    return service


Serving = Annotated[Service, Depends(_service)]


def _caller(connection: HTTPConnection, service: Serving) -> Caller:
    return service.gate.caller(connection.headers.get("authorization"))


Calling = Annotated[Caller, Depends(_caller)]


async def body_of(request: Request, service: Service) -> bytes:
    """The whole body, read no further than its limit."""
    most = service.settings.limits.body_bytes
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise TooLargeError(f"more than {most:,} bytes in one request; nothing of it was taken")
        parts.append(part)
    return b"".join(parts)
