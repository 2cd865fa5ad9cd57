"""Webhooks: deliveries posted and signed (Standard Webhooks), in order, tried again, and kept when nobody takes them.
The address may be a Kafka topic as well.

A courier reads its subscriber's stream as any other reader does, and keeps its own cursor: while an endpoint is
down nothing piles up, and when it is back the log is matched again.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import random
from collections.abc import Callable
from enum import Enum

import httpx

from nearcast.service.engine import Engine, Event
from nearcast.service.kafka import SCHEME, Topics, topic_of
from nearcast.service.kinds import Current, all_current
from nearcast.service.live import Live, Reader, events_of, stream
from nearcast.service.metrics import Metrics
from nearcast.service.settings import Settings
from nearcast.service.wire import current_value, event_value
from nearcast.store import StoreError
from nearcast.store.access import DeadLetter, Webhook

SECRET_PREFIX = "whsec_"
CURSOR_EVERY = 50
"""Events after which a busy courier writes its cursor; an idle one writes it at once."""


def new_secret(random_bytes: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(random_bytes).decode()


def signed_headers(secret: str, identity: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Standard Webhooks: HMAC-SHA256 over id, time and body. A retry has the same id and a new time."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    content = f"{identity}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {
        "content-type": "application/cloudevents+json",
        "webhook-id": identity,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }


class Outcome(Enum):
    TAKEN = "taken"
    FAILED = "failed"
    GONE = "gone"  # the endpoint asks for no more: 410


class Couriers:
    """One task for each webhook that is in use. Used on the event loop only."""

    def __init__(
        self,
        engine: Engine,
        live: Live,
        metrics: Metrics,
        settings: Settings,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._engine, self._live, self._metrics, self._settings, self._chance = engine, live, metrics, settings, chance
        self._webhooks, self._cursors = engine.store.webhooks, engine.store.cursors
        self._client = httpx.AsyncClient(timeout=settings.webhook_timeout, follow_redirects=False)
        self._topics = Topics(settings.webhook_timeout)
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def start(self) -> None:
        for webhook in self._webhooks.all():
            if webhook.disabled is None:
                self._begin(webhook)

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._client.aclose()

    async def put(self, webhook: Webhook) -> None:
        """Register, and deliver what is published from now on."""
        await asyncio.to_thread(self._webhooks.put, webhook)
        seq = await self._engine.call(webhook.tenant, lambda hub: hub.last_seq)
        await asyncio.to_thread(self._cursors.advance, _cursor_room(webhook), webhook.id, seq)
        self._begin(webhook)

    async def enable(self, webhook: Webhook) -> None:
        """Go on where it was disabled."""
        await asyncio.to_thread(self._webhooks.put, webhook._replace(disabled=None))
        self._begin(webhook)

    async def remove(self, webhook: Webhook) -> None:
        task = self._tasks.pop((webhook.tenant, webhook.id), None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.to_thread(self._webhooks.remove, webhook.tenant, webhook.id)

    async def redrive(self, webhook: Webhook) -> tuple[int, int]:
        """Send dead letters once more, oldest first; how many were taken, and how many stay."""
        letters = await asyncio.to_thread(self._webhooks.dead_letters, webhook.tenant, webhook.id)
        taken = 0
        for letter in letters:
            events = await self._events_again(webhook, letter.seq)
            if events and await self._all_taken(webhook, events):
                await asyncio.to_thread(self._webhooks.forget_letter, webhook.tenant, webhook.id, letter.seq)
                self._metrics.delivered.labels(_sink(webhook)).inc()
                taken += 1
        return taken, len(letters) - taken

    async def _events_again(self, webhook: Webhook, seq: int) -> list[Event | Current]:
        """The match of this message, from the log, and what the subscriber's changing wishes hold now."""
        subscriber = webhook.subscriber
        hub, changing = await self._engine.call(webhook.tenant, lambda held: (held, all_current(held, subscriber)))
        past = await asyncio.to_thread(hub.past_of, subscriber, seq - 1)
        chunk = await asyncio.to_thread(past.chunk, seq - 1, seq)
        return [*events_of(chunk, subscriber), *changing]

    async def _all_taken(self, webhook: Webhook, events: list[Event | Current]) -> bool:
        for event in events:
            if (await self._post(webhook, event))[0] is not Outcome.TAKEN:
                return False
        return True

    # -- one courier --------------------------------------------------------------------------------

    def _begin(self, webhook: Webhook) -> None:
        before = self._tasks.get((webhook.tenant, webhook.id))
        if before is None or before.done():
            self._tasks[webhook.tenant, webhook.id] = asyncio.create_task(self._run(webhook))

    async def _run(self, webhook: Webhook) -> None:
        """Until disabled, removed or closed. A store that cannot answer is asked again later."""
        while not self._live.is_closing:
            try:
                if not await self._deliver_stream(webhook):
                    return
            except StoreError:
                self._metrics.webhook_failures.inc()
            await asyncio.sleep(self._settings.retry_seconds[0])

    async def _deliver_stream(self, webhook: Webhook) -> bool:
        """Everything behind the cursor, then live; False when the endpoint wants no more."""
        room = _cursor_room(webhook)
        done = written = await asyncio.to_thread(self._cursors.get, room, webhook.id) or 0
        reader = Reader(webhook.tenant, webhook.subscriber, _sink(webhook))
        reading = stream(self._engine, self._live, reader, done, self._settings.ping_seconds)
        async with contextlib.aclosing(reading) as items:
            async for item in items:
                if isinstance(item, Event | Current):
                    if not await self._deliver(webhook, item):
                        return False
                    done = item.seq if _is_last(item) else done
                if done > written and (item is None or done - written >= CURSOR_EVERY):
                    await asyncio.to_thread(self._cursors.advance, room, webhook.id, done)
                    written = done
        return True

    async def _deliver(self, webhook: Webhook, event: Event | Current) -> bool:
        """Try until it is taken or the schedule ends; False if the endpoint is gone."""
        reason, attempts = "", 0
        for delay in (*self._settings.retry_seconds, None):
            outcome, reason = await self._post(webhook, event)
            attempts += 1
            if outcome is Outcome.TAKEN:
                self._metrics.delivered.labels(_sink(webhook)).inc()
                return True
            self._metrics.webhook_failures.inc()
            if outcome is Outcome.GONE:
                await asyncio.to_thread(self._webhooks.disable, webhook.tenant, webhook.id, reason)
                return False
            if delay is not None:
                await asyncio.sleep(delay * (0.5 + self._chance()))  # jitter: not all at once
        letter = DeadLetter(event.seq, reason, attempts, self._engine.clock())
        await asyncio.to_thread(self._webhooks.put_letter, webhook.tenant, webhook.id, letter)
        self._metrics.dead_letters.inc()
        return True

    async def _post(self, webhook: Webhook, event: Event | Current) -> tuple[Outcome, str]:
        value = event_value(event) if isinstance(event, Event) else current_value(event)
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        if is_topic(webhook):
            topic, key = topic_of(webhook.url), str(webhook.subscriber)
            failed = await asyncio.to_thread(self._topics.send, topic, key, value["id"], body)
            return (Outcome.TAKEN, "") if failed is None else (Outcome.FAILED, failed[:200])
        headers = signed_headers(webhook.secret, _identity(webhook, value["id"]), int(self._engine.clock()), body)
        try:
            async with self._client.stream("POST", webhook.url, content=body, headers=headers) as answer:
                status = answer.status_code  # the answer's body is nobody's concern, however long
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return Outcome.FAILED, f"{type(error).__name__}: {error}"[:200]
        if 200 <= status < 300:
            return Outcome.TAKEN, ""
        return Outcome.GONE if status == 410 else Outcome.FAILED, f"status {status}"


def is_topic(webhook: Webhook) -> bool:
    return webhook.url.startswith(f"{SCHEME}://")


def _sink(webhook: Webhook) -> str:
    return SCHEME if is_topic(webhook) else "webhook"


def _is_last(item: Event | Current) -> bool:
    """Whether everything of its seq has come with it."""
    return isinstance(item, Event) and not item.more


def _identity(webhook: Webhook, event_id: str) -> str:
    """Of printable ASCII, whatever is in the id of a message."""
    plain = event_id if event_id.isdigit() else hashlib.sha256(event_id.encode()).hexdigest()[:32]
    return f"msg_{webhook.id}_{plain}"


def _cursor_room(webhook: Webhook) -> str:
    """Cursors of webhooks stand apart from those of subscribers."""
    return f"{webhook.tenant}\x1fwebhook"
