"""The example of a declarative pipeline, run as a user runs it (`make test-pipeline`): `spark-pipelines run`.

Not collected by `make test`: it starts a Spark with a server of Spark Connect, in processes of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest

from nearcast.spark.java import prepare_java
from tests.spark.test_match import POSTS, TRUTH, WISHES
from tests.spark.test_shards import build, table

REPOSITORY = Path(__file__).parents[2]
RUN = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
BAD = {"id": "bad", "text": "x"}


def test_the_example_keeps_raw_rows_words_matches_and_what_was_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pipeline"
    shutil.copytree(REPOSITORY / "examples" / "pipeline", folder)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/nearcast-pipeline", (tmp_path / "storage").as_uri()))
    (folder / "posts.ndjson").write_text("".join(json.dumps(row) + "\n" for row in [*POSTS, BAD]))
    build(folder / "subscriptions", [table(WISHES)], layout="replicated")
    prepare(monkeypatch)
    done = subprocess.run([RUN, "run"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert Counter((int(row["message_id"]), row["subscription_id"]) for row in rows(folder, "matches")) == TRUTH
    assert [json.loads(row["source"]) for row in rows(folder, "rejected")] == [BAD]
    assert len(rows(folder, "raw")) == len(POSTS) + 1
    assert len(rows(folder, "cleaned")) == len(POSTS)
    words = Counter(word for post in POSTS for word in set(post["text"].split()))
    assert {row["word"]: row["frequency"] for row in rows(folder, "frequencies")} == words


def prepare(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `nearcast.spark.session` does for its own process."""
    paths = os.pathsep.join([str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")])
    for name, value in {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": paths}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    prepare_java()
    if not os.environ["JAVA_HOME"]:
        monkeypatch.delenv("JAVA_HOME")


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(pq.read_table(folder / "spark-warehouse" / name).to_pylist())
