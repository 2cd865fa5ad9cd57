"""Where an AP-Tree cuts keywords and space, and what a partition costs (VLDBJ'17 3.3.1 to 3.3.3).

Both partitions are one-dimensional: positions 0 … n on a `Line`, of which some become borders. A part [i, j)
has begun[j] - ended[i] subscriptions, its weight, and is explored with probability chance[j] - chance[i].
Keywords begin and end at the same position; a box begins at its west side and ends at its east side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive
from nearcast.kernels.primitives import lower_bound
from nearcast.kernels.sorting import sort_by_bits

DP_POSITIONS = 2048  # the optimal partition is exact up to so many keywords
MIDDLE_KEY = 1 << 20  # key of the first term in the order of keywords; those of later terms are below or above


class Line(NamedTuple):
    at: NDArray[np.int64]  # [n + 1]  the key or coordinate of a position
    mass: NDArray[np.int64]  # [n + 1]  what the first partition divides evenly, summed up below a position
    begun: NDArray[np.int64]  # [n + 1]  subscriptions that begin below a position
    ended: NDArray[np.int64]  # [n + 1]  subscriptions that end below a position
    chance: NDArray[np.float64]  # [n + 1]  probability of a hit below a position


class Best(NamedTuple):
    """Scratch of the optimal partition."""

    places: NDArray[np.int64]  # [positions + 1]
    cost: NDArray[np.float64]  # [2, positions + 1]
    last: NDArray[np.int32]  # [parts + 1, positions + 2]  where the last part begins


@primitive
def part_cost(line, i, j):
    """Weight times hit probability (equations 1 and 3)."""
    return (line.begun[j] - line.ended[i]) * (line.chance[j] - line.chance[i])


@primitive
def divide_evenly(line, n, parts, borders):
    """Parts of nearly equal mass, none without a position (Algorithm 3, line 1). Needs parts <= n."""
    borders[0] = 0
    for k in range(1, parts):
        least = borders[k - 1] + 1
        wanted = (line.mass[n] * k + parts - 1) // parts
        borders[k] = min(lower_bound(line.mass, least, n, wanted), n - (parts - k))
    borders[parts] = n


@primitive
def improve(line, parts, borders):
    """Move each border to the cheapest position between its neighbours (Algorithm 3, lines 2 to 5)."""
    for k in range(1, parts):
        low, high = borders[k - 1], borders[k + 1]
        best = borders[k]
        cost = part_cost(line, low, best) + part_cost(line, best, high)
        for position in range(low + 1, high):
            other = part_cost(line, low, position) + part_cost(line, position, high)
            if other < cost:
                best, cost = position, other
        borders[k] = best


@primitive
def divide_optimally(line, n, parts, borders, best):
    """Algorithm 2, equation 2, over at most DP_POSITIONS positions.

    With more, neighbours of little weight are tied together first (`divide_evenly`); the result is optimal
    among the partitions that respect these ties. The part cost fulfils the quadrangle inequality, because
    weights and probabilities only add up, so the best last border never moves back when a position or a
    part is added (Knuth): O(n² + n f) steps instead of O(f n²).
    """
    size = min(n, max(DP_POSITIONS, parts))
    places, cost, last = best.places, best.cost, best.last
    divide_evenly(line, n, size, places)
    for i in range(size + 1):
        cost[1, i] = part_cost(line, 0, places[i])
        last[1, i] = 0
    for part in range(2, parts + 1):
        now, before = part & 1, 1 - (part & 1)
        last[part, size + 1] = size - 1
        for i in range(size, part - 1, -1):
            cost[now, i] = np.inf
            for j in range(max(last[part - 1, i], part - 1), min(last[part, i + 1], i - 1) + 1):
                other = cost[before, j] + part_cost(line, places[j], places[i])
                if other < cost[now, i]:
                    cost[now, i] = other
                    last[part, i] = j
    borders[parts] = n
    at = size
    for part in range(parts, 0, -1):
        at = np.int64(last[part, at])
        borders[part - 1] = places[at]


@primitive
def chance_of(chances, key):
    """Share of messages with a key; one without statistics came after they were taken, and is rare."""
    at = key - MIDDLE_KEY
    return chances[at] if 0 <= at < len(chances) else 0.0


@primitive
def line_of_words(packs, n, chances, line):
    """The keywords of sorted packs (key << 32 | entry) as positions; how many."""
    words = 0
    total = 0.0
    for i in range(n):
        key = packs[i] >> 32
        if i == 0 or key != line.at[words - 1]:
            line.at[words] = key
            line.mass[words] = i
            line.chance[words] = total
            words += 1
            total += chance_of(chances, key)
    line.mass[words] = n
    line.chance[words] = total
    for i in range(words + 1):
        line.begun[i] = line.mass[i]
        line.ended[i] = line.mass[i]
    return words


@primitive
def line_of_spans(spans, n, seen, n_seen, axis, low, high, line, packs, spare, counts):
    """The ends of spans within [low, high] on an axis as positions; how many lie between the first and last.

    spans[:n] are boxes cut to the node's region, seen[:n_seen] points of past messages in it. One message
    that may be anywhere is added to them; without any it stands alone: the uniform distribution of 3.3.1.
    """
    packs[0], packs[1] = low, high + 1
    for i in range(n):
        packs[2 * i + 2] = spans[i, axis]
        packs[2 * i + 3] = spans[i, axis + 2] + 1
    sort_by_bits(packs, 2 * n + 2, 0, spare, counts)
    last = 0
    for i in range(2 * n + 2):
        if i == 0 or packs[i] != line.at[last]:
            last = last + 1 if i else 0
            line.at[last] = packs[i]
            line.mass[last] = 0
            line.begun[last] = 0
            line.ended[last] = 0
    for i in range(n):
        west, east = spans[i, axis], spans[i, axis + 2]
        line.begun[lower_bound(line.at, 0, last, west) + 1] += 1
        line.ended[lower_bound(line.at, 0, last, east + 1)] += 1
        line.mass[lower_bound(line.at, 0, last, (west + east) // 2 + 1)] += 1
    for i in range(n_seen):
        packs[i] = seen[i, axis]
    sort_by_bits(packs, n_seen, 0, spare, counts)
    for i in range(last + 1):
        if i > 0:
            line.mass[i] += line.mass[i - 1]
            line.begun[i] += line.begun[i - 1]
            line.ended[i] += line.ended[i - 1]
        share = (line.at[i] - low) / (high + 1 - low)
        line.chance[i] = (lower_bound(packs, 0, n_seen, line.at[i]) + share) / (n_seen + 1)
    return last


@primitive
def cells_cost(spans, n, seen, n_seen, region, xs, columns, ys, rows, cells):
    """Equation 1 over columns × rows cells: (expected cost, weight of all cells).

    xs[:columns - 1] and ys[:rows - 1] are the inner borders.
    """
    width = columns + 1
    for cell in range(2 * width * (rows + 1)):
        cells[cell] = 0
    hits = width * (rows + 1)
    for i in range(n):
        x0, x1 = place_of(xs, columns, spans[i, 0]), place_of(xs, columns, spans[i, 2]) + 1
        y0, y1 = place_of(ys, rows, spans[i, 1]), place_of(ys, rows, spans[i, 3]) + 1
        cells[y0 * width + x0] += 1
        cells[y0 * width + x1] -= 1
        cells[y1 * width + x0] -= 1
        cells[y1 * width + x1] += 1
    for i in range(n_seen):
        cells[hits + place_of(ys, rows, seen[i, 1]) * width + place_of(xs, columns, seen[i, 0])] += 1
    total, stored = 0.0, 0
    for y in range(rows):
        south = ys[y - 1] if y > 0 else region[1]
        north = ys[y] if y < rows - 1 else region[3] + 1
        row_weight = 0
        for x in range(columns):
            west = xs[x - 1] if x > 0 else region[0]
            east = xs[x] if x < columns - 1 else region[2] + 1
            cell = y * width + x
            row_weight += cells[cell]
            above = cells[cell - width + hits + hits] if y > 0 else 0
            cells[cell + hits + hits] = row_weight + above
            stored += row_weight + above
            share = (east - west) / (region[2] + 1 - region[0]) * ((north - south) / (region[3] + 1 - region[1]))
            total += (row_weight + above) * (cells[hits + cell] + share) / (n_seen + 1)
    return total, stored


@primitive
def place_of(borders, parts, value):
    """The part that holds a coordinate: how many of its parts - 1 inner borders do not lie above it."""
    low, high = 0, parts - 1
    while low < high:
        middle = (low + high) >> 1
        if borders[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low
