"""Clients of a nearcast server: `Client`, and `AsyncClient` with the same methods to await.

Whatever the server refuses is a `ServerError` with its reason. `pip install 'nearcast[service]'` brings httpx.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

import httpx

from nearcast.client import calls
from nearcast.client.calls import (
    Accepted,
    Answer,
    Call,
    DryRun,
    Event,
    EventLines,
    Logged,
    Moved,
    Ranked,
    Replayed,
    ServerError,
)
from nearcast.geo import Region

__all__ = [
    "Accepted",
    "Answer",
    "AsyncClient",
    "Client",
    "DryRun",
    "Event",
    "Logged",
    "Moved",
    "Ranked",
    "Replayed",
    "ServerError",
]

SERVER = "http://127.0.0.1:8080"
COME_BACK = 1.0
"""Seconds before a stream that broke is opened again."""

T = TypeVar("T")


def _settings(server: str, key: str | None, timeout: float) -> dict[str, Any]:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return {"base_url": server, "headers": headers, "timeout": timeout}


def _stream_options(subscriber: str, after: int | None) -> dict[str, Any]:
    return {"params": calls.without_none({"subscriber": subscriber, "after": after}), "timeout": httpx.Timeout(60.0)}


def unreachable(http: httpx.Client | httpx.AsyncClient, error: httpx.TransportError) -> ServerError:
    return ServerError(503, f"{http.base_url} cannot be reached: {error or type(error).__name__}")


class Client:
    def __init__(self, server: str = SERVER, *, key: str | None = None, timeout: float = 60.0) -> None:
        self._http = httpx.Client(**_settings(server, key, timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def _do(self, call: Call[T]) -> T:
        try:
            answer = self._http.request(call.method, call.path, **call.options())
        except httpx.TransportError as error:
            raise unreachable(self._http, error) from error
        return call.result(answer)

    def subscribe(
        self,
        subscriber: str,
        expression: str,
        within: Region,
        *,
        id: str | None = None,
        expires: float | None = None,
        max_events: int | None = None,
    ) -> str:
        """Leave a standing wish; its id. With an id given it is exchanged for one that exists."""
        return self._do(calls.subscribe(subscriber, expression, within, id, expires, max_events))

    def rank(
        self,
        subscriber: str,
        words: str,
        near: tuple[float, float],
        *,
        k: int = 10,
        alpha: float = 0.5,
        id: str | None = None,
    ) -> str:
        """Keep the k best recent messages about these words near this point; the ranking's id. Its changes come as
        events `enter` and `leave`."""
        return self._do(calls.rank(subscriber, words, near, k, alpha, id))

    def follow(self, id: str, expression: str, within: Region, *, subscriber: str) -> str:
        """A wish whose region moves by `move`. Changes come as events `enter` and `leave`."""
        return self._do(calls.follow(subscriber, expression, within, id))

    def move(self, regions: Mapping[str, Region]) -> Moved:
        """Followers to their new regions, as one step, all or none."""
        return self._do(calls.move(regions))

    def current(self, id: str) -> list[dict[str, Any]]:
        """The messages that a follower has now, or the best of a ranking, as GeoJSON Features."""
        return self._do(calls.current(id))

    def ranking(self, id: str) -> list[Ranked]:
        """The best now, best first."""
        return self._do(calls.ranking(id))

    def unsubscribe(self, id: str) -> None:
        self._do(calls.unsubscribe(id))

    def subscriptions(self, subscriber: str) -> list[dict[str, Any]]:
        return self._do(calls.subscriptions(subscriber))

    def publish(self, records: Iterable[Mapping[str, Any]]) -> Accepted:
        """Messages with id, text (or terms), lon and lat (or a box), ts, payload. Returns when they are on disk."""
        return self._do(calls.publish(records))

    def publish_lines(self, content: bytes) -> Accepted:
        """The same as NDJSON."""
        return self._do(calls.publish_lines(content))

    def logged(self, after: int = 0, *, up_to: int | None = None, limit: int = 1000) -> Logged:
        """A piece of the log: messages of all publishers, in order; `limit` 0 asks only where it begins and ends."""
        return self._do(calls.logged(after, up_to, limit))

    def explain(self, subscription: str, text: str, at: tuple[float, float]) -> Answer:
        return self._do(calls.explain(subscription, text, at))

    def dry_run(
        self,
        expression: str,
        within: Region,
        *,
        after: int | None = None,
        since: float | None = None,
        examples: int = 10,
    ) -> DryRun:
        """What a wish would have got, before it is left."""
        return self._do(calls.dry_run(expression, within, after, since, examples))

    def replay(
        self, subscriber: str, *, after: int | None = None, since: float | None = None, limit: int = 1000
    ) -> Iterator[Event]:
        """All past events behind `after`, since a time, or behind the cursor; `limit` is how many at a time."""
        page = self._do(calls.replay(subscriber, after, since, limit))
        while page.events:
            yield from page.events
            page = self._do(calls.replay(subscriber, page.position, None, limit))

    def acknowledge(self, subscriber: str, seq: int) -> None:
        """Everything up to this event has arrived."""
        self._do(calls.acknowledge(subscriber, seq))

    def events(self, subscriber: str, *, after: int | None = None) -> Iterator[Event]:
        """Live, for ever, each at least once and in order. A connection that breaks is opened again behind the last."""
        is_known = False  # the server has answered once
        while True:
            try:
                options = _stream_options(subscriber, after)
                with self._http.stream("GET", "/v1/events", **options) as answer:
                    if answer.is_error:
                        answer.read()
                        calls.refuse_errors(answer)
                    is_known, lines = True, EventLines()
                    for line in answer.iter_lines():
                        event = lines.take(line)
                        if event is not None:
                            after = after if event.more else event.seq
                            yield event
            except httpx.TransportError as error:
                if not is_known:
                    raise unreachable(self._http, error) from error
                time.sleep(COME_BACK)


class AsyncClient:
    def __init__(self, server: str = SERVER, *, key: str | None = None, timeout: float = 60.0) -> None:
        self._http = httpx.AsyncClient(**_settings(server, key, timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def _do(self, call: Call[T]) -> T:
        try:
            answer = await self._http.request(call.method, call.path, **call.options())
        except httpx.TransportError as error:
            raise unreachable(self._http, error) from error
        return call.result(answer)

    async def subscribe(
        self,
        subscriber: str,
        expression: str,
        within: Region,
        *,
        id: str | None = None,
        expires: float | None = None,
        max_events: int | None = None,
    ) -> str:
        return await self._do(calls.subscribe(subscriber, expression, within, id, expires, max_events))

    async def rank(
        self,
        subscriber: str,
        words: str,
        near: tuple[float, float],
        *,
        k: int = 10,
        alpha: float = 0.5,
        id: str | None = None,
    ) -> str:
        return await self._do(calls.rank(subscriber, words, near, k, alpha, id))

    async def follow(self, id: str, expression: str, within: Region, *, subscriber: str) -> str:
        return await self._do(calls.follow(subscriber, expression, within, id))

    async def move(self, regions: Mapping[str, Region]) -> Moved:
        return await self._do(calls.move(regions))

    async def current(self, id: str) -> list[dict[str, Any]]:
        return await self._do(calls.current(id))

    async def ranking(self, id: str) -> list[Ranked]:
        return await self._do(calls.ranking(id))

    async def unsubscribe(self, id: str) -> None:
        await self._do(calls.unsubscribe(id))

    async def subscriptions(self, subscriber: str) -> list[dict[str, Any]]:
        return await self._do(calls.subscriptions(subscriber))

    async def publish(self, records: Iterable[Mapping[str, Any]]) -> Accepted:
        return await self._do(calls.publish(records))

    async def publish_lines(self, content: bytes) -> Accepted:
        return await self._do(calls.publish_lines(content))

    async def logged(self, after: int = 0, *, up_to: int | None = None, limit: int = 1000) -> Logged:
        return await self._do(calls.logged(after, up_to, limit))

    async def explain(self, subscription: str, text: str, at: tuple[float, float]) -> Answer:
        return await self._do(calls.explain(subscription, text, at))

    async def dry_run(
        self,
        expression: str,
        within: Region,
        *,
        after: int | None = None,
        since: float | None = None,
        examples: int = 10,
    ) -> DryRun:
        return await self._do(calls.dry_run(expression, within, after, since, examples))

    async def replay(
        self, subscriber: str, *, after: int | None = None, since: float | None = None, limit: int = 1000
    ) -> AsyncIterator[Event]:
        page = await self._do(calls.replay(subscriber, after, since, limit))
        while page.events:
            for event in page.events:
                yield event
            page = await self._do(calls.replay(subscriber, page.position, None, limit))

    async def acknowledge(self, subscriber: str, seq: int) -> None:
        await self._do(calls.acknowledge(subscriber, seq))

    async def events(self, subscriber: str, *, after: int | None = None) -> AsyncIterator[Event]:
        is_known = False  # the server has answered once
        while True:
            try:
                options = _stream_options(subscriber, after)
                async with self._http.stream("GET", "/v1/events", **options) as answer:
                    if answer.is_error:
                        await answer.aread()
                        calls.refuse_errors(answer)
                    is_known, lines = True, EventLines()
                    async for line in answer.aiter_lines():
                        event = lines.take(line)
                        if event is not None:
                            after = after if event.more else event.seq
                            yield event
            except httpx.TransportError as error:
                if not is_known:
                    raise unreachable(self._http, error) from error
                await asyncio.sleep(COME_BACK)
