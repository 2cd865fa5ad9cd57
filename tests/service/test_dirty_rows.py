"""Every row of the dirty sample through the service: served or rejected as `nearcast match` does."""

from __future__ import annotations

import json

import pytest

from nearcast.records import MAX_TEXT
from nearcast.service.settings import Limits, Settings
from tests.service.serving import running
from tests.test_dirty import SAMPLE, SERVED_AND_REJECTED, counted, sample

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not SAMPLE.is_file(), reason=f"{SAMPLE} is not here"),
]
NDJSON = {"content-type": "application/x-ndjson"}


def test_every_row_is_served_or_rejected_and_comes_back_unchanged() -> None:
    rows = [row for row in sample() if row.get("raw") != ""]
    lines = [row["raw"] if "raw" in row else json.dumps(row["record"]) for row in rows]
    with running(Settings("memory:", limits=Limits(text_characters=MAX_TEXT))) as server:
        server.subscribe("all", "ana", "the OR a OR de OR la OR in OR i OR 的")
        rejected, reasons = [], 0
        for number, line in enumerate(
            lines
        ):  # one by one: every reason is in an answer; not as the first line, where a byte order mark may stand
            answer = server.client.post("/v1/messages", content=b"\n" + line.encode(), headers=NDJSON)
            assert answer.status_code in (200, 422), answer.text
            if answer.status_code == 422:
                rejected.append(number)
                reasons += bool(answer.json()["error"].strip())
        assert counted((row["kind"] for row in rows), (rows[n]["kind"] for n in rejected)) == SERVED_AND_REJECTED
        assert reasons == len(rejected)
        once = server.client.post("/v1/messages", content="\n".join(lines).encode(), headers=NDJSON).json()
        assert (once["accepted"], once["rejected"]) == (len(lines) - len(rejected), len(rejected))
        assert len(once["rejections"]) == 100
        replayed = server.client.get("/v1/replay", params={"subscriber": "ana"}).text.split("\n")
        events = [json.loads(line)["data"] for line in replayed if line]
        served = [row["record"] for n, row in enumerate(rows) if n not in set(rejected)]
        first = {event["nearcast"]["seq"]: event for event in events}
        assert len(first) > 100
        for seq, event in first.items():
            record = served[(seq - 1) % len(served)]
            assert (event["id"], event["properties"]["text"]) == (record["id"], record["text"])
