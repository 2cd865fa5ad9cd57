"""raw → cleaned, found → frequencies, matches, rejected: nearcast's steps as the tables of a declarative pipeline.

`mapInArrow` asks a table for its columns, and Spark 4.3 refuses that in the functions of a pipeline. So the two
steps that run nearcast's workers are written down here, outside of them; Spark runs them with the rest.
"""

from __future__ import annotations

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from nearcast.files import MESSAGES
from nearcast.spark import Built, outcome, pairs_of, read, rejected_of, steps

spark = SparkSession.active()
posts = read(spark, str(Path(spark.conf.get("nearcast.posts") or "").absolute()), MESSAGES)
made = Built.load(Path(spark.conf.get("nearcast.version") or "").absolute())
with_words_or_reason = steps.cleaned(posts)
with_ids_or_reason = outcome(posts, made)


@dp.materialized_view
def raw() -> DataFrame:
    """The rows as they came."""
    return posts


@dp.materialized_view
def cleaned() -> DataFrame:
    """id, words, west, south, east, north, ts"""
    return steps.with_words(with_words_or_reason)


@dp.materialized_view
def frequencies() -> DataFrame:
    """word, frequency"""
    return steps.frequencies(spark.read.table("cleaned"))


@dp.materialized_view
def found() -> DataFrame:
    """message_id, subscription_ids, reason, source"""
    return with_ids_or_reason


@dp.materialized_view
def matches() -> DataFrame:
    """message_id, subscription_id"""
    return pairs_of(spark.read.table("found"))


@dp.materialized_view
def rejected() -> DataFrame:
    """reason, source"""
    return rejected_of(spark.read.table("found"))
