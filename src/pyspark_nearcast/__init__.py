"""The data source `nearcast`, under the name by which Spark finds sources that are installed.

Spark imports every package `pyspark_*` before the first use of any Python data source, whoever asks for it. So
this one is small, and loads nearcast only when it is the one that is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from nearcast.spark.publish import BatchPublisher, StreamPublisher

__all__ = ["DefaultSource"]

SCHEMA = (
    "seq long, accepted double, id string, text string, terms array<string>, lon double, lat double, "
    "west double, south double, east double, north double, ts double, ttl double, payload string"
)


class DefaultSource(DataSource):
    """Reads the log of a running nearcast server, as a table or a stream, and publishes rows into one."""

    @classmethod
    def name(cls) -> str:
        return "nearcast"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        from nearcast.spark.source import LogReader

        return LogReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        from nearcast.spark.source import LogStreamReader

        return LogStreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> BatchPublisher:
        from nearcast.spark.publish import BatchPublisher

        return BatchPublisher(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamPublisher:  # noqa: N802
        from nearcast.spark.publish import StreamPublisher

        return StreamPublisher(self.options, schema, overwrite)
