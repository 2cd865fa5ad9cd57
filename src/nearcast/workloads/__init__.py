"""Workloads: generated ones with the papers' statistics, readers for real data, and a world of cities."""

from nearcast.workloads.cities import Cities, CityWorld, world_cities
from nearcast.workloads.real import REAL_SETS, DataAbsent, RealSet, RealSource, data_folder, read_real, real_texts
from nearcast.workloads.synthetic import (
    LONG,
    LONG_RANGE,
    RANGE,
    SHORT,
    STYLES,
    TweetStyle,
    messages,
    subscriptions,
    word_of,
    words,
)

__all__ = [
    "LONG",
    "LONG_RANGE",
    "RANGE",
    "REAL_SETS",
    "SHORT",
    "STYLES",
    "Cities",
    "CityWorld",
    "DataAbsent",
    "RealSet",
    "RealSource",
    "TweetStyle",
    "data_folder",
    "messages",
    "read_real",
    "real_texts",
    "subscriptions",
    "word_of",
    "words",
    "world_cities",
]
