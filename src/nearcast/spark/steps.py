"""Steps from raw rows to statistics, each from table to table; the columns that leave a step are in its docstring."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DoubleType, StringType, StructField, StructType

from nearcast.files import MESSAGES
from nearcast.geo import Space, earth
from nearcast.lexicon import Lexicon
from nearcast.spark.read import columns_of
from nearcast.spark.storage import Settings, bounds_of
from nearcast.spark.words import SCHEMA, words_of

_KINDS = {"string": StringType(), "double": DoubleType(), "list<item: string>": ArrayType(StringType())}
_CLEANED = StructType([StructField(field.name, _KINDS[str(field.type)]) for field in SCHEMA])
CELLS = 16
HEAVIEST = 50


def cleaned(messages: DataFrame, *, space: Space = earth, analyzer: str = "unicode") -> DataFrame:
    """id, words (distinct, by the analyzer), west, south, east, north, ts, reason, source.

    A message has no reason; a row that is none has nothing but a reason and its source.
    """
    settings = Settings(analyzer, bounds_of(space))
    return columns_of(messages, MESSAGES, "messages").mapInArrow(partial(_words, settings), _CLEANED)


def _words(settings: Settings, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield words_of(batch, settings)


def with_words(cleaned: DataFrame) -> DataFrame:
    """id, words, west, south, east, north, ts: the messages among the cleaned rows."""
    return cleaned.where(F.col("reason").isNull()).drop("reason", "source")


def rejected(cleaned: DataFrame) -> DataFrame:
    """reason, source: the others."""
    return cleaned.where(F.col("reason").isNotNull()).select("reason", "source")


def frequencies(words: DataFrame) -> DataFrame:
    """word, frequency: how many messages have it."""
    return words.select(F.explode("words").alias("word")).groupBy("word").agg(F.count("*").alias("frequency"))


def lexicon(words: DataFrame, analyzer: str = "unicode") -> Lexicon:
    """The words of all messages with their frequencies, most frequent first; on the driver."""
    table = frequencies(words).orderBy(F.desc("frequency"), "word").toArrow()
    metadata = {b"nearcast.analyzer": analyzer.encode(), b"nearcast.messages": str(words.count()).encode()}
    return Lexicon.from_arrow(table.replace_schema_metadata(metadata))


def cell_frequencies(words: DataFrame, *, space: Space = earth, cells: int = CELLS) -> DataFrame:
    """cell, word, frequency: as `frequencies`, in each of cells x cells parts of the space (KDD'13 section 4.3:
    a word that is rare somewhere may be frequent elsewhere). The middle of a place says its cell."""
    b = space.bounds
    x = _part((F.col("west") + F.col("east")) / 2, b.west, b.east, cells)
    y = _part((F.col("south") + F.col("north")) / 2, b.south, b.north, cells)
    spread = words.select((y * cells + x).cast("int").alias("cell"), F.explode("words").alias("word"))
    return spread.groupBy("cell", "word").agg(F.count("*").alias("frequency"))


def heavy_pairs(words: DataFrame, heaviest: int = HEAVIEST) -> DataFrame:
    """first, second, frequency: how many messages have both, for the most frequent words, first < second."""
    heavy = [row["word"] for row in frequencies(words).orderBy(F.desc("frequency"), "word").limit(heaviest).collect()]
    held = words.select(F.array_intersect("words", F.array(*map(F.lit, heavy))).alias("held")) if heavy else None
    if held is None:
        return words.sparkSession.createDataFrame([], "first string, second string, frequency long")
    pairs = held.select("held", F.explode("held").alias("first")).select("first", F.explode("held").alias("second"))
    return pairs.where(F.col("first") < F.col("second")).groupBy("first", "second").agg(F.count("*").alias("frequency"))


def _part(value: F.Column, low: float, high: float, parts: int) -> F.Column:  # type: ignore[name-defined]
    return F.least(F.floor((value - low) / (high - low) * parts), F.lit(parts - 1))
