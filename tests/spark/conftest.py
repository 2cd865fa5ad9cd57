"""One Spark session for all tests of this folder: it takes half a minute to start."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra spark)")

HERE = Path(__file__).parent
SHORT_LIVED = {
    "spark.sql.shuffle.partitions": "2",
    # Java that lives for minutes: compiling better code costs more than it saves.
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that need Spark on one worker of the run, which alone starts it."""
    for item in items:
        if HERE in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from nearcast.spark import session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        running = session("local[2,4]", settings=SHORT_LIVED)
        yield running
        running.stop()
