"""nearcast on Spark: DataFrames in, DataFrames out, with the kernels and the answers of the library."""

from nearcast.spark.build import Built, build
from nearcast.spark.connector import kafka_settings
from nearcast.spark.match import match, outcome, pairs_of, rejected_of
from nearcast.spark.message_files import MessageFiles, files
from nearcast.spark.plan import LayoutReport, PlanReport
from nearcast.spark.ranks.stream import RankReport, rank_stream, run_wish_changes
from nearcast.spark.read import read, read_kafka, read_stream
from nearcast.spark.session import register, session
from nearcast.spark.sinks import BY_WISH, FileSink, KafkaSink, Sink
from nearcast.spark.stream import ONCE, BatchReport, match_stream, run_changes, run_stream
from nearcast.spark.versions import Versions

__all__ = [
    "BY_WISH",
    "ONCE",
    "BatchReport",
    "Built",
    "FileSink",
    "KafkaSink",
    "LayoutReport",
    "MessageFiles",
    "PlanReport",
    "RankReport",
    "Sink",
    "Versions",
    "build",
    "files",
    "kafka_settings",
    "match",
    "match_stream",
    "outcome",
    "pairs_of",
    "rank_stream",
    "read",
    "read_kafka",
    "read_stream",
    "register",
    "rejected_of",
    "run_changes",
    "run_stream",
    "run_wish_changes",
    "session",
]
