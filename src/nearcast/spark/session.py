"""A Spark session with quiet logs and settings that suit one machine; on a cluster use your own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from nearcast.spark.java import prepare_java

ROWS_A_BATCH = 20_000
"""Rows that a Python worker gets at a time. Large: entering a kernel costs the same for one row."""

LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_A_BATCH),
    "spark.sql.session.timeZone": "UTC",
    "spark.python.unix.domain.socket.enabled": "true",  # between Java and Python on one machine: cheaper than TCP
    # A process for every checkpoint file costs more than the file; renaming is atomic on local disks.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA = (
    f"-Dlog4j2.configurationFile=file:{_LOGGING}",
    # Spark asks whether a value is null before it reads it, and reads within the vector: where Arrow does not ask again
    # for each, ids that come from Python are taken over more cheaply.
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
)


def register(spark: SparkSession) -> None:
    """Make the data source `nearcast` known to a session that does not find it by itself (pip install does that)."""
    from pyspark_nearcast import DefaultSource

    spark.dataSource.register(DefaultSource)


def session(master: str = "local[*]", *, name: str = "nearcast", settings: Mapping[str, str] = {}) -> SparkSession:
    """The session of this process, started if there is none. `settings` are added to ours and win."""
    prepare_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run what the driver runs
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(name)
    chosen = LOCAL | {"spark.driver.extraJavaOptions": " ".join(_JAVA)} | dict(settings)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
