"""Drivers of rankings that are killed (SIGKILL, with their Java) and started again from the checkpoint
(`make test-cluster`): every change of the reference is told, once, under its number.

Not collected by `make test`: each start is a Spark of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.ranking import Window
from nearcast.spark.ranks import host
from tests.spark import mortal
from tests.spark.test_rank_stream import World, check

ROOT = Path(__file__).parents[2]
FILES = len(mortal.POINTS) // 2 + 1


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield World(tmp_path, FILES)
    host.stop(tmp_path / "checkpoint" / "rankings")


def started(world: World, *command: str) -> subprocess.Popen[bytes]:
    """In a group of its own, so that its Java dies with it."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with (world.folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def mortal_driver(world: World, distribution: str, point: str, batch: int) -> subprocess.Popen[bytes]:
    return started(world, "-m", "tests.spark.mortal", str(world.folder), distribution, point, str(batch))


def ended(world: World, process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            print((world.folder / "log").read_text()[-5000:])


def _drop_wish_and_add(world: World) -> None:
    """As `run_wish_changes` would hand it over."""
    world.change()
    lines = (world.folder / "changes" / "0.ndjson").read_bytes().splitlines()
    inbox = world.folder / "checkpoint" / "rankings" / "inbox"
    inbox.mkdir()
    pq.write_table(pa.table({"value": lines}), inbox / "changes-00000000.parquet")


@pytest.mark.parametrize(
    ("distribution", "points", "host_dies"),
    [("prefix", ("numbered", "halfway", "finished"), True), ("hash", ("decided", "written", "cleaning"), False)],
)
def test_a_driver_may_die_at_any_point(
    world: World, distribution: str, points: tuple[str, ...], host_dies: bool
) -> None:
    for number in range(FILES):
        world.post(number, ["{broken"] if number == 0 else [])
    for number, point in enumerate(points):
        told = ended(world, mortal_driver(world, distribution, point, number))
        assert told == -signal.SIGKILL, (point, (world.folder / "log").read_text()[-5000:])
        if number == 1:
            _drop_wish_and_add(world)  # batch 1 was decided and is what it is; batch 2 takes them up
        if host_dies:
            host.stop(world.folder / "checkpoint" / "rankings")
    told = ended(world, mortal_driver(world, distribution, "never", -1))
    assert told == 0, (world.folder / "log").read_text()[-5000:]
    check(world, mortal.WINDOW, changed_before=2)
    rejected = [file for file in (world.folder / "out.rejected").rglob("*.json") if file.stat().st_size]
    assert [file.parent.name for file in rejected] == ["batch=0"]
    left = (world.folder / "checkpoint" / "rankings" / "segments").iterdir()
    assert not [path for path in left if path.name.startswith(".")]


def test_the_command_is_killed_and_goes_on(world: World) -> None:
    folder = world.folder
    command = ["-c", "from nearcast.cli import main; main()", "spark", "rank", "-w", str(folder / "wishes.ndjson")]
    command += ["-m", str(folder / "posts"), "-o", str(folder / "out"), "--checkpoint", str(folder / "checkpoint")]
    command += ["--count", "30", "--distribution", "location", "--shards", "2", "--master", "local[2,4]"]
    world.post(0)
    running = started(world, *command)
    try:
        for number in range(1, FILES):
            _wait_for(running, world.folder / "out" / f"batch={number - 1}")
            world.post(number)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)  # the last file may have been found or not
    assert running.wait(60) == -signal.SIGKILL
    assert ended(world, started(world, *command, "--once")) == 0, (world.folder / "log").read_text()[-5000:]
    check(world, Window(count=30))


def _wait_for(process: subprocess.Popen[bytes], path: Path) -> None:
    for _ in range(3000):
        assert process.poll() is None, path
        if path.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} did not come")
