"""The bench: compares indexes by name on described workloads, and knows none of them.

Answers are checked against each other before anything is timed, times are taken from outside, and what an
index says of itself (counters, bytes) only explains a result.
"""

from nearcast.bench.adjust import adjusted
from nearcast.bench.results import RunResult
from nearcast.bench.run import Runner, pairs_to_measure
from nearcast.bench.spec import BenchError
from nearcast.bench.suite import Suite, find_suite, packaged_suites, read_suites

__all__ = [
    "BenchError",
    "RunResult",
    "Runner",
    "Suite",
    "adjusted",
    "find_suite",
    "packaged_suites",
    "pairs_to_measure",
    "read_suites",
]
