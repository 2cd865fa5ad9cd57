"""The random draws behind generated workloads, on whole arrays at a time.

Every function takes its generator as an argument and draws from it in a fixed order, so that a seed decides
everything. Work matrices are bounded by `CHUNK_CELLS`, whatever the number of rows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import NearcastError

Bounds = tuple[float, float, float, float]  # west, south, east, north
Sizes = Literal["log", "uniform"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CHUNK_CELLS = 2_000_000  # cells of a work matrix: 8 MB of int32, a few such at a time
NONE = np.iinfo(np.int32).max  # an unused cell of a work matrix; sorts last
_REDRAWS = 32  # rounds of redrawing repeated words by frequency before drawing them evenly
_SPREAD = (0.003, 0.03)  # standard deviation of a cluster as a share of the space's side: a city to a state


def require(condition: bool, message: str) -> None:
    """Raise a `NearcastError` with the message unless the condition holds."""
    if not condition:
        raise NearcastError(message)


def check_bounds(bounds: Bounds) -> Bounds:
    """The bounds themselves, if they enclose an area."""
    west, south, east, north = bounds
    require(
        bool(np.isfinite(bounds).all()) and west < east and south < north,
        f"bounds must be finite with west < east and south < north, not {bounds}",
    )
    return bounds


def check_area(area: tuple[float, float]) -> None:
    """Refuse box areas that are not a range of shares of the space."""
    require(0 < area[0] <= area[1] <= 1, f"area must be 0 < low <= high <= 1, a share of the space, not {area}")


def generator(*seeds: int) -> np.random.Generator:
    """An independent stream for each distinct tuple of non-negative seeds."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seeds)))


def run_starts(counts: Ints) -> Ints:
    """`term_from` of rows with these numbers of terms."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def zipf_cumulative(n: int, exponent: float) -> Floats:
    """Cumulative probabilities of ranks 0..n-1 with weights (rank + 1) ** -exponent."""
    sums = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -exponent)
    sums /= sums[-1]
    return sums


def log_uniform(rng: np.random.Generator, limits: tuple[float, float], shape: int | tuple[int, int]) -> Floats:
    """Numbers between two positive limits, every magnitude alike."""
    low, high = limits
    return np.exp(rng.uniform(np.log(low), np.log(high), shape))


class World:
    """Clusters of places, each with its own order of the rarer nine tenths of the vocabulary.

    The order of a cluster is an affine permutation (factor coprime to the size, plus a shift): as good as
    random for word frequencies, and two integers per cluster instead of an array of the vocabulary's size.
    """

    def __init__(self, seed: int, clusters: int, vocabulary: int, zipf: float) -> None:
        rng = generator(seed, 0)
        self.vocabulary = vocabulary
        self._cumulative = zipf_cumulative(vocabulary, zipf)
        self._cluster_cumulative = zipf_cumulative(clusters, 1.0)
        self._centres = rng.random((clusters, 2))
        self._spread = log_uniform(rng, _SPREAD, clusters)
        self._head = vocabulary // 10
        self._tail = vocabulary - self._head
        self._factor = rng.integers(1, self._tail, clusters)
        while (common := np.gcd(self._factor, self._tail) > 1).any():
            self._factor[common] += 1
        self._shift = rng.integers(0, self._tail, clusters)

    def draw_clusters(self, rng: np.random.Generator, n: int, background: float) -> Ints:
        """A cluster for each of n messages; -1 for the uniform background."""
        cluster = np.searchsorted(self._cluster_cumulative, rng.random(n), side="right")
        cluster[rng.random(n) < background] = -1
        return cluster

    def draw_places(self, rng: np.random.Generator, cluster: Ints, bounds: Bounds) -> Floats:
        """Points [n, 2]. What falls outside the bounds is folded back, so that no border collects points."""
        gauss = self._centres[cluster] + self._spread[cluster, None] * rng.standard_normal((len(cluster), 2))
        folded = 1.0 - np.abs(1.0 - np.mod(gauss, 2.0))
        unit = np.where(cluster[:, None] < 0, rng.random((len(cluster), 2)), folded)
        west, south, east, north = bounds
        places = unit * (east - west, north - south) + (west, south)
        return np.clip(places, (west, south), (east, north))

    def draw_terms(self, rng: np.random.Generator, cluster: Ints, local: float) -> Ints:
        """One term for each entry of `cluster`, by frequency; a share `local` by the cluster's own order."""
        chance = rng.random(len(cluster))
        own = np.flatnonzero((rng.random(len(cluster)) < local) & (cluster >= 0))
        chance[own] *= self._cumulative[self._tail - 1]
        terms = np.searchsorted(self._cumulative, chance, side="right")
        where = cluster[own]
        terms[own] = self._head + (terms[own] * self._factor[where] + self._shift[where]) % self._tail
        return terms

    def draw_word_sets(self, rng: np.random.Generator, cluster: Ints, counts: Ints, local: float) -> NDArray[np.int32]:
        """Flat ascending distinct terms, exactly `counts[i]` of them for row i.

        Repeated words are drawn again until none is left, which gives the first `counts[i]` distinct words of
        an endless Zipf sequence. Where that would take too long (a steep exponent, long messages), words
        still missing after `_REDRAWS` rounds are drawn evenly from the vocabulary.
        """
        used = np.arange(counts.max(initial=0)) < counts[:, None]
        cells = np.full(used.shape, NONE, np.int32)
        cells[used] = self.draw_terms(rng, np.repeat(cluster, counts), local)
        rows = np.arange(len(counts))
        for attempt in range(1_000_000):
            part = np.sort(cells[rows], axis=1)
            cells[rows] = part
            repeated = (part[:, 1:] == part[:, :-1]) & (part[:, 1:] != NONE)
            open_rows = repeated.any(axis=1)
            if not open_rows.any():
                break
            rows = rows[open_rows]
            row, column = np.nonzero(repeated[open_rows])
            again = (
                self.draw_terms(rng, cluster[rows[row]], local)
                if attempt < _REDRAWS
                else rng.integers(0, self.vocabulary, len(row))
            )
            cells[rows[row], column + 1] = again
        return cells[used]


def even_picks(rng: np.random.Generator, lengths: Ints, counts: Ints) -> NDArray[np.int32]:
    """`counts[i]` distinct positions below `lengths[i]` per row, ascending, padded with NONE.

    Floyd's sampling, one column of the result per step: its cost does not depend on the lengths.
    """
    picks = np.full((len(counts), int(counts.max(initial=0))), NONE, np.int32)
    for step in range(picks.shape[1]):
        last = lengths - counts + step
        pick = (rng.random(len(counts)) * (last + 1)).astype(np.int32)
        taken = (picks[:, :step] == pick[:, None]).any(axis=1)
        pick[taken] = last[taken]
        picks[:, step] = np.where(step < counts, pick, NONE)
    picks.sort(axis=1)
    return picks


def weighted_picks(
    rng: np.random.Generator, starts: Ints, lengths: Ints, counts: Ints, weights: Floats
) -> NDArray[np.int32]:
    """As `even_picks`, where position p of row i has weight `weights[starts[i] + p]`.

    The positions with the smallest exponential variable divided by weight: sampling one after the other
    without replacement (Efraimidis and Spirakis).
    """
    positions = np.arange(lengths.max(initial=0))
    inside = positions < lengths[:, None]
    keys = np.full(inside.shape, np.inf)
    keys[inside] = rng.standard_exponential(int(lengths.sum())) / weights[(starts[:, None] + positions)[inside]]
    picks = np.argsort(keys, axis=1)[:, : int(counts.max(initial=0))].astype(np.int32)
    picks[np.arange(picks.shape[1]) >= counts[:, None]] = NONE
    picks.sort(axis=1)
    return picks


def rank_weights(terms: NDArray[np.int32], exponent: float) -> Floats:
    """For each entry of `terms` the weight rank ** -exponent, its rank by frequency among all entries."""
    if not len(terms):
        return np.empty(0)
    frequency = np.bincount(terms)
    weights = np.empty(len(frequency))
    weights[np.argsort(-frequency, kind="stable")] = np.arange(1, len(frequency) + 1.0) ** -exponent
    return weights[terms]


def boxes_around(
    rng: np.random.Generator, places: Floats, area: tuple[float, float], bounds: Bounds, sizes: Sizes
) -> Floats:
    """Boxes [n, 4] centred at the places' centres, of a share `area` of the bounds and cut at them.

    Sides relative to the bounds' sides have a log-uniform ratio between 1/2 and 2.
    """
    west, south, east, north = bounds
    n = len(places)
    share = rng.uniform(*area, n) if sizes == "uniform" else log_uniform(rng, area, n)
    ratio = log_uniform(rng, (0.5, 2.0), n)
    half = 0.5 * np.sqrt(np.column_stack((share * ratio, share / ratio))) * (east - west, north - south)
    centre = 0.5 * (places[:, :2] + places[:, 2:])
    boxes = np.hstack((centre - half, centre + half))
    np.clip(boxes, (west, south, west, south), (east, north, east, north), out=boxes)
    return boxes
