"""nearcast on Spark: DataFrames in, DataFrames out, with the kernels and the answers of the library."""

from nearcast.spark.build import Built, build
from nearcast.spark.match import match, outcome, pairs_of, rejected_of
from nearcast.spark.plan import LayoutReport, PlanReport
from nearcast.spark.read import read, read_kafka, read_stream
from nearcast.spark.session import session

__all__ = [
    "Built",
    "LayoutReport",
    "PlanReport",
    "build",
    "match",
    "outcome",
    "pairs_of",
    "read",
    "read_kafka",
    "read_stream",
    "rejected_of",
    "session",
]
