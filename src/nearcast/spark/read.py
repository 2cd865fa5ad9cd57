"""Tables of messages and subscriptions from files and Kafka, with values exactly as they stand there.

JSON is read as text, and parsed by the rules of `nearcast match`: Spark's own parser would turn what it does
not understand into nulls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from nearcast.files import FileError, Role
from nearcast.spark.edge import CORRUPT, RAW

ENDINGS = {".parquet": "parquet", ".csv": "csv", ".ndjson": "json", ".jsonl": "json", ".json": "json"}
FORMATS = tuple(sorted(set(ENDINGS.values())))


def read(spark: SparkSession, path: str, role: Role, kind: str | None = None) -> DataFrame:
    """A file or a folder of files. Leaves the columns of the role; JSON leaves `value`."""
    return _opened(spark, spark.read, path, role, kind or kind_of(path))


def read_stream(spark: SparkSession, path: str, role: Role, kind: str | None = None, **options: Any) -> DataFrame:
    """New files of a folder as they come. `options` are those of Spark's file source, such as maxFilesPerTrigger."""
    return _opened(spark, spark.readStream.options(**options), path, role, kind or kind_of(path))


def read_kafka(spark: SparkSession, servers: str, topic: str, *, stream: bool = True, **options: Any) -> DataFrame:
    """The records of a topic: `value`, a JSON object. Needs the package spark-sql-kafka-0-10 of Spark's version."""
    reader: Any = spark.readStream if stream else spark.read
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"} | options
    frame: DataFrame = reader.format("kafka").options(**options).load()
    return frame.select(RAW)


def kind_of(path: str) -> str:
    """By the ending; a folder is what the files in it are."""
    names = [Path(path)]
    if not names[0].suffix and names[0].is_dir():
        names = sorted(p for p in names[0].iterdir() if not p.name.startswith(("_", ".")))
    for name in names:
        if name.suffix.lower() in ENDINGS:
            return ENDINGS[name.suffix.lower()]
    raise FileError(f"{path}: the ending says what a file is; one of {', '.join(ENDINGS)} needed, or a format given")


def _opened(spark: SparkSession, reader: Any, path: str, role: Role, kind: str) -> DataFrame:
    if kind == "json":
        return _text(reader, path)
    if kind == "csv":
        return _csv(spark, reader, path, role)
    if kind != "parquet":
        raise FileError(f"format {kind!r} given; one of {', '.join(FORMATS)} needed")
    frame: DataFrame = reader.schema(spark.read.parquet(path).schema).parquet(path)
    return columns_of(frame, role, path)


def _text(reader: Any, path: str) -> DataFrame:
    frame: DataFrame = reader.text(path)
    return frame.select(F.col(RAW).cast("binary").alias(RAW))  # bytes: what is not UTF-8 must not be repaired


def _csv(spark: SparkSession, reader: Any, path: str, role: Role) -> DataFrame:
    """All columns as text. A row with too few or too many fields is kept whole, to be rejected."""
    header = spark.read.option("header", True).csv(path).columns
    schema = StructType([StructField(name.strip(), StringType()) for name in [*header, CORRUPT]])
    parse = {"header": True, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "multiLine": True}
    frame: DataFrame = reader.schema(schema).options(**parse, escape='"').csv(path)
    return columns_of(frame, role, path)


def columns_of(frame: DataFrame, role: Role, name: str) -> DataFrame:
    """The columns that the role reads; FileError if they cannot make a record."""
    if RAW in frame.columns and "id" not in frame.columns:
        return frame.select(RAW)
    role.check(frame.columns, name)
    return frame.select(*(column for column in frame.columns if column in (*role.columns, CORRUPT)))
