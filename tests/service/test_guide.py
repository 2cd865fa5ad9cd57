"""The guide's way from a server to a webhook, step by step as it is written."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from nearcast.cli import app
from tests.service.serving import Running

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "service.md").read_text().partition("### The whole way")[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def told_to_run(step: int) -> list[str]:
    """The words of a numbered line of the guide, without `nearcast`."""
    [line] = re.findall(rf"^nearcast (.*?)\s+# {step}\. ", GUIDE, re.MULTILINE)
    return shlex.split(line)


def nearcast(server: Running, words: list[str]) -> str:
    result = CliRunner().invoke(app, [*words, "--server", server.url])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_the_whole_way(server: Running, tmp_path: Path) -> None:
    port = free_port()
    script = GUIDE.partition("```python\n")[2].partition("```")[0].replace("9000", str(port))
    (tmp_path / "hook.py").write_text(script)
    assert nearcast(server, told_to_run(2)) == "lunch\n"
    [body] = re.findall(r"-d '(\{.*?\})'\s+# 3\. ", GUIDE)
    made = server.client.post(
        "/v1/webhooks", content=body.replace("9000", str(port)), headers={"content-type": "application/json"}
    )
    secret = made.json()["secret"]
    receiver = subprocess.Popen(
        [sys.executable, str(tmp_path / "hook.py"), secret],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert receiver.stdout is not None
        _wait_until_open(port, receiver)
        assert "1 deliveries" in nearcast(server, told_to_run(5))
        assert receiver.stdout.readline() == "match Tonkotsu ramen tonight\n"
    finally:
        receiver.terminate()
        receiver.communicate(timeout=20)


def _wait_until_open(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(200):
        assert process.poll() is None, "the receiver ended"
        with socket.socket() as probe:
            probe.settimeout(1.0)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("the receiver does not listen")
