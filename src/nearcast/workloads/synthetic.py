"""Generated messages and subscriptions with the statistics of the papers' experiments.

Words follow Zipf's law (KDD'13 section 6, Table 1); messages are short (6 to 20 words) or long (100 to 1000),
with a point or a box (KDD'13 section 6, CIKM'15 section 6); places gather around cities, and part of a
message's words belong to its place. Subscriptions are drawn from messages (VLDBJ'17 section 5.1.1, Skype
section 8.1.1). The same arguments always give the same arrays; nothing is kept between calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from nearcast.columns import MessageBatch, SubscriptionColumns
from nearcast.workloads.sampling import (
    CHUNK_CELLS,
    NONE,
    Bounds,
    Sizes,
    World,
    boxes_around,
    check_area,
    check_bounds,
    even_picks,
    generator,
    rank_weights,
    require,
    run_starts,
    weighted_picks,
)

_MESSAGES, _SUBSCRIPTIONS = 1, 2  # keep the streams of equal seeds apart


@dataclass(frozen=True)
class TweetStyle:
    """How messages look. Batches of one style with different seeds come from the same world.

    Term 0 is the most frequent word. A cluster of places has its own order of the rarer nine tenths of the
    vocabulary, and draws a share `local` of its words by that order, so that words and places are correlated
    as they are in tweets. Messages of the uniform background use the common order only.
    """

    vocabulary: int = 200_000  # TWEETS: 1.7M terms in 12.7M messages, GN: 208K in 2.2M (VLDBJ'17 Table 2)
    zipf: float = 1.0  # exponent; 0 (with local 0) is uniform, as USA in KDD'13 Table 1
    local: float = 0.3  # share of words drawn by the place's own order
    words: tuple[int, int] = (6, 20)  # distinct words of a message, evenly, both ends included
    clusters: int = 200  # Gaussian groups of places, sizes by Zipf's law
    background: float = 0.1  # share of messages placed evenly over the space
    area: tuple[float, float] | None = None  # message boxes as a share of the space; None gives points
    bounds: Bounds = (0.0, 0.0, 1.0, 1.0)  # the papers normalise their spaces; degrees work as well
    world: int = 0  # seed of clusters and their vocabularies

    def __post_init__(self) -> None:
        low, high = self.words
        require(1 <= low <= high, f"words must be 1 <= low <= high, not {self.words}")
        require(self.vocabulary >= 4 * high, f"vocabulary must be at least {4 * high}, not {self.vocabulary}")
        require(self.zipf >= 0, f"zipf must not be negative, not {self.zipf}")
        require(0 <= self.local <= 1, f"local must be a share in [0, 1], not {self.local}")
        require(0 <= self.background <= 1, f"background must be a share in [0, 1], not {self.background}")
        require(self.clusters >= 1, f"clusters must be at least 1, not {self.clusters}")
        check_bounds(self.bounds)
        if self.area is not None:
            check_area(self.area)


SHORT = TweetStyle()
LONG = replace(SHORT, words=(100, 1000))
RANGE = replace(SHORT, area=(1e-6, 1e-4))
LONG_RANGE = replace(LONG, area=(1e-6, 1e-4))

# The four message groups of KDD'13 section 6, then the data sets of VLDBJ'17 Table 2 and Skype Table 3 (YELP)
# by vocabulary and mean number of words. CARS and AIS have words tagged at random: none are local.
STYLES: dict[str, TweetStyle] = {
    "short": SHORT,
    "long": LONG,
    "range": RANGE,
    "long-range": LONG_RANGE,
    "tweets": replace(SHORT, vocabulary=1_700_000, words=(4, 14)),
    "gn": replace(SHORT, vocabulary=208_000, words=(3, 11)),
    "yelp": replace(SHORT, vocabulary=85_000, words=(10, 64)),
    "cars": replace(SHORT, vocabulary=81_000, words=(10, 50), local=0.0),
    "ais": replace(SHORT, vocabulary=81_000, words=(20, 80), local=0.0),
}


def messages(n: int, seed: int, style: TweetStyle = SHORT) -> MessageBatch:
    """`n` messages of the style; the mean number of distinct words is the middle of `style.words`."""
    require(n >= 0, f"the number of messages must not be negative, not {n}")
    rng = generator(seed, _MESSAGES)
    world = World(style.world, style.clusters, style.vocabulary, style.zipf)
    cluster = world.draw_clusters(rng, n, style.background)
    boxes = np.tile(world.draw_places(rng, cluster, style.bounds), 2)
    if style.area is not None:
        boxes = boxes_around(rng, boxes, style.area, style.bounds, "log")
    counts = rng.integers(*style.words, n, endpoint=True)
    step = CHUNK_CELLS // style.words[1] + 1
    parts = [slice(start, start + step) for start in range(0, n, step)]
    terms = [world.draw_word_sets(rng, cluster[part], counts[part], style.local) for part in parts]
    return MessageBatch.from_flat(boxes, run_starts(counts), np.concatenate([np.empty(0, np.int32), *terms]))


def subscriptions(
    messages: MessageBatch,
    n: int,
    seed: int,
    *,
    keywords: tuple[int, int] = (1, 5),
    area: tuple[float, float] | None = (1e-4, 1e-2),
    bounds: Bounds | None = None,
    zipf: float | None = None,
    sizes: Sizes = "log",
) -> SubscriptionColumns:
    """`n` subscriptions, each drawn from a random message that has words (VLDBJ'17 section 5.1.1).

    A number of distinct words of the message, evenly from `keywords`, both ends included (all its words when
    it has fewer), and a box centred at its place that covers a share `area` of the space, cut at the bounds.
    `bounds` is the extent of the messages unless given; `area=None` gives the message's own place, as in
    Skype section 8.1.1.

    VLDBJ'17 draws the area evenly between 1e-4 and 1e-2 (`sizes="uniform"`), so that nearly all regions are
    large; log-uniform areas, the default, have every magnitude alike. Words are drawn evenly, as there; with
    an exponent `zipf` a word has weight rank ** -zipf, its rank by frequency in the messages, for workloads
    of frequent tokens (CIKM'15 section 6).
    """
    require(n >= 0, f"the number of subscriptions must not be negative, not {n}")
    require(1 <= keywords[0] <= keywords[1], f"keywords must be 1 <= low <= high, not {keywords}")
    boxes, term_from, terms = messages.boxes, messages.term_from, messages.terms
    eligible = np.flatnonzero(np.diff(term_from))
    require(n == 0 or len(eligible) > 0, "subscriptions are drawn from messages with words; there are none")
    rng = generator(seed, _SUBSCRIPTIONS)
    rows = rng.choice(eligible, n)
    starts, lengths = term_from[rows], term_from[rows + 1] - term_from[rows]
    counts = np.minimum(rng.integers(*keywords, n, endpoint=True), lengths)
    regions = boxes[rows]
    if area is not None:
        check_area(area)
        regions = boxes_around(rng, regions, area, check_bounds(bounds or _extent(messages)), sizes)
    weights = None if zipf is None else rank_weights(terms, zipf)
    step = CHUNK_CELLS // (keywords[1] if weights is None else int(lengths.max(initial=1))) + 1
    chosen = [np.empty(0, np.int32)]
    for part in (slice(start, start + step) for start in range(0, n, step)):
        if weights is None:
            picks = even_picks(rng, lengths[part], counts[part])
        else:
            picks = weighted_picks(rng, starts[part], lengths[part], counts[part], weights)
        chosen.append(terms[(picks + starts[part, None])[picks != NONE]])
    return SubscriptionColumns.from_flat(regions, run_starts(counts), np.concatenate(chosen))


def _extent(messages: MessageBatch) -> Bounds:
    """The smallest bounds that hold all messages."""
    if not len(messages):
        return 0.0, 0.0, 1.0, 1.0
    west, south = messages.boxes[:, :2].min(axis=0).tolist()
    east, north = messages.boxes[:, 2:].max(axis=0).tolist()
    return west, south, east, north


_CONSONANTS = (
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "w",
    "y",
    "z",
    "sh",
)
_VOWELS = ("a", "e", "i", "o", "u")


def word_of(term: int) -> str:
    """A pronounceable made-up word, different for every term; frequent (small) terms have short words.

    Two syllables below 10,000, three below 1,010,000, then five. A syllable is a consonant and a vowel, so a
    word can be read back in one way only.
    """
    require(term >= 0, f"a term is not negative, not {term}")
    syllables = 2
    while term >= 100**syllables:
        term -= 100**syllables
        syllables += 1 if syllables == 2 else 2
    number = (term * 61_803_399 + 4_271) % 100**syllables  # a permutation: the factor is coprime to 10
    word = ""
    for _ in range(syllables):
        number, digit = divmod(number, 100)
        word += _CONSONANTS[digit // 5] + _VOWELS[digit % 5]
    return word


def words(terms: Iterable[int]) -> list[str]:
    """The made-up words of the terms, in their order."""
    return [word_of(int(term)) for term in terms]
