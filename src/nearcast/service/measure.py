"""What a server does for a second process on this machine: messages a second, time to a reader, memory.

Only HTTP is used, by the standard library, so that little of the time is the client's.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection
from itertools import cycle, islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

NDJSON = {"content-type": "application/x-ndjson"}
MARK = "nearcastprobe"  # a word that no generated message has
EVERYWHERE = {"west": -180, "south": -90, "east": 180, "north": 90}
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Throughput(NamedTuple):
    messages: int
    deliveries: int
    seconds: float
    server_cpu: float  # seconds of processor time
    client_cpu: float


class Delay(NamedTuple):
    """Seconds from before the request to the event at the reader, sorted."""

    seconds: list[float]
    per_second: float  # messages that were really published

    def at(self, share: float) -> float:
        return self.seconds[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


class Memory(NamedTuple):
    """Resident bytes of the server, second by second, beside a reader that reads nothing."""

    resident: list[int]
    messages: int
    fallbacks: int


def bodies(records: Iterator[dict[str, Any]], n: int, batch: int) -> list[bytes]:
    return [b"\n".join(json.dumps(row).encode() for row in islice(records, batch)) for _ in range(n)]


def throughput(address: str, pid: int, made: Sequence[bytes], seconds: float, connections: int = 2) -> Throughput:
    """NDJSON batches over a few connections, each sending the next when the last is answered."""
    end = time.monotonic() + seconds
    told: list[dict[str, Any]] = []

    def send(number: int) -> None:
        connection = _connection(address)
        for body in cycle(made[number::connections]):
            told.append(_asked(connection, "POST", "/v1/messages", body, NDJSON))
            if time.monotonic() > end:
                return

    before, cpu, started = cpu_seconds(pid), time.process_time(), time.monotonic()
    _together([lambda n=n: send(n) for n in range(connections)])  # type: ignore[misc]
    spent = time.monotonic() - started
    return Throughput(
        sum(answer["accepted"] for answer in told),
        sum(answer["deliveries"] for answer in told),
        spent,
        cpu_seconds(pid) - before,
        time.process_time() - cpu,
    )


def delay(address: str, records: Iterator[dict[str, Any]], rate: int, batch: int, seconds: float) -> Delay:
    """Batches at a steady pace; one message of each is for a reader of server-sent events."""
    connection = _connection(address)
    wish = {"subscriber": MARK, "expression": MARK, **EVERYWHERE}
    _asked(connection, "PUT", f"/v1/subscriptions/{MARK}", json.dumps(wish).encode(), _JSON)
    sent: dict[str, float] = {}
    found: list[float] = []
    reading = reader(address, MARK)
    n = int(rate * seconds / batch)

    def read() -> None:
        for line in reading:
            if line.startswith(b"data: "):
                now, told = time.perf_counter(), json.loads(line[6:])
                found.append(now - sent[told["data"]["id"]])
                if len(found) == n:
                    return

    def publish() -> None:
        started = time.monotonic()
        for number in range(n):
            rows = list(islice(records, batch))
            rows[0] |= {"id": f"{MARK}-{number}", "text": f"{rows[0]['text']} {MARK}"}
            body = b"\n".join(json.dumps(row).encode() for row in rows)
            time.sleep(max(0.0, started + number * batch / rate - time.monotonic()))
            sent[rows[0]["id"]] = time.perf_counter()
            _asked(connection, "POST", "/v1/messages", body, NDJSON)
        pace.append(n * batch / (time.monotonic() - started))

    pace: list[float] = []
    _together([read, publish])
    return Delay(sorted(found), pace[0])


def stuck(address: str, pid: int, made: Sequence[bytes], seconds: float, pause: float) -> Memory:
    """A reader that everything is for, and that reads nothing, while messages come."""
    connection = _connection(address)
    first = json.loads(made[0].split(b"\n")[0])
    words = " OR ".join(dict.fromkeys(word for word in first["text"].lower().split() if word.isalpha()))
    wish = {"subscriber": "stuck", "expression": f"{words} OR the OR in OR at", **EVERYWHERE}
    _asked(connection, "PUT", "/v1/subscriptions/stuck", json.dumps(wish).encode(), _JSON)
    silent = _opened(address, "stuck")
    resident, messages, started = [resident_bytes(pid)], 0, time.monotonic()
    for body in cycle(made):
        messages += _asked(connection, "POST", "/v1/messages", body, NDJSON)["accepted"]
        now = time.monotonic() - started
        if now > len(resident):
            resident.append(resident_bytes(pid))
        if now > seconds:
            break
        time.sleep(pause)
    fallbacks = _gauge(connection, "nearcast_stream_fallbacks")
    silent.close()
    return Memory(resident, messages, int(fallbacks))


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * _PAGE


def reader(address: str, subscriber: str) -> Iterator[bytes]:
    """Lines of a subscriber's events; connected, and at its position, when this returns."""
    opened = _opened(address, subscriber)
    lines = opened.makefile("rb")
    for line in lines:
        if line.startswith(b":"):  # the first sign of life: all that came before is given
            return iter(lines)
    raise ConnectionError("the stream ended before it began")


def _opened(address: str, subscriber: str) -> socket.socket:
    parts = urlsplit(address)
    made = socket.create_connection((parts.hostname or "", parts.port or 80))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    request = f"GET /v1/events?subscriber={quote(subscriber)} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
    made.sendall(request.encode())
    return made


_JSON = {"content-type": "application/json"}


def _connection(address: str) -> HTTPConnection:
    parts = urlsplit(address)
    made = HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    made.connect()
    made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _asked(connection: HTTPConnection, method: str, path: str, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    told = answer.read()
    if answer.status >= 300:
        raise ConnectionError(f"{method} {path}: {answer.status} {told[:200].decode(errors='replace')}")
    value: dict[str, Any] = json.loads(told)
    return value


def _gauge(connection: HTTPConnection, name: str) -> float:
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def _together(calls: Sequence[Callable[[], None]]) -> None:
    """All in threads; the first error of them is raised."""
    errors: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not errors:
            thread.join(0.5)
    if errors:
        raise errors[0]
