"""A Kafka broker of its own for the tests: its published jars, fetched once, one process in KRaft mode."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from nearcast.kernels import jit
from nearcast.spark.java import prepare_java

VERSION = "4.3.1"
CLUSTER = "bmVhcmNhc3Qta2Fma2EhIQ"  # sixteen bytes in base 64; random ones may begin with "-", as options do
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Its address, while it runs. Topics come into being when they are first used."""
    classes = f"{_jars()}/*"
    port, controller = _free_ports(2)
    settings = folder / "server.properties"
    settings.write_text(_SETTINGS.format(port=port, controller=controller, folder=folder))
    storage = [_java(), "-cp", classes, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings)]
    subprocess.run(storage, check=True, capture_output=True)
    with (folder / "broker.log").open("wb") as log:
        command = [_java(), "-Xmx400m", "-cp", classes, "kafka.Kafka", str(settings)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_until_open(port, process, folder / "broker.log")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _jars() -> Path:
    """Fetched by the Ivy that PySpark carries; all there or not there."""
    folder = jit.cache_root() / f"kafka-{VERSION}"
    if not folder.exists():
        [ivy] = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        wanted = ["-dependency", "org.apache.kafka", "kafka_2.13", VERSION, "-confs", "default"]
        placed = ["-retrieve", f"{part}/[artifact]-[revision](-[classifier]).[ext]", "-cache", f"{part}.cache"]
        told = subprocess.run([_java(), "-jar", str(ivy), *wanted, *placed], capture_output=True, text=True)
        assert told.returncode == 0, told.stdout[-2000:] + told.stderr[-2000:]
        shutil.rmtree(f"{part}.cache")
        part.rename(folder)
    return folder


def _java() -> str:
    prepare_java()
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def _free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"the broker does not answer: {log.read_text()}")
