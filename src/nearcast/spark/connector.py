"""Spark's connector to Kafka, from Maven Central: the newest parts that are there and fit this Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyspark

from nearcast.errors import NearcastError
from nearcast.kernels import jit
from nearcast.spark.java import prepare_java

GROUP = "org.apache.spark"
CONNECTOR, CONNECTOR_VERSION = "spark-sql-kafka-0-10_2.13", "4.2.0"  # 4.3.0 is not there
TOKENS, TOKENS_VERSION = "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"  # nor is any later one


def kafka_settings() -> dict[str, str]:
    """Settings of a session that reads and writes Kafka.

    The connector comes when the session starts. What it needs for tokens has another version than it asks for, so
    that is fetched before, alone, and kept beside the compiled kernels.
    """
    return {
        "spark.jars.packages": f"{GROUP}:{CONNECTOR}:{CONNECTOR_VERSION}",
        "spark.jars.excludes": f"{GROUP}:{TOKENS}",
        "spark.jars": str(_fetched(TOKENS, TOKENS_VERSION)),
    }


def _fetched(artifact: str, version: str) -> Path:
    """A jar without what it depends on, by the Ivy that Spark carries, which knows where to look."""
    folder = jit.cache_root() / "jars"
    jar = folder / f"{artifact}-{version}.jar"
    if jar.is_file():
        return jar
    prepare_java()
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    what = ["-dependency", GROUP, artifact, version, "-notransitive", "-confs", "default", "-types", "jar"]
    where = ["-cache", str(folder / "cache"), "-retrieve", str(folder / "[artifact]-[revision].[ext]")]
    asked = [java, "-cp", str(ivy), "org.apache.ivy.Main", "-warn", *what, *where]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode or not jar.is_file():
        raise NearcastError(f"{artifact} {version} cannot be fetched: {(done.stderr or done.stdout).strip()[-500:]}")
    return jar
