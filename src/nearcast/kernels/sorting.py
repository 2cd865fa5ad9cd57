"""Sorting inside kernels, which cannot allocate: the caller brings the spare room."""

from __future__ import annotations

from nearcast.kernels.jit import primitive

SHORT = 48  # so few values are sorted by insertion
DIGITS = 256


@primitive
def sort_by_bits(values, n, low_bit, spare, counts):
    """Sort values[:n], not negative, by their bits from low_bit on; equal ones keep their order.

    spare has n elements, counts DIGITS; all arrays are int64.
    """
    if n <= SHORT:
        for i in range(1, n):
            value, j = values[i], i
            while j > 0 and values[j - 1] >> low_bit > value >> low_bit:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    highest = 0
    for i in range(n):
        highest |= values[i]
    shift = low_bit
    while shift < 63 and highest >> shift > 0:
        _sort_by_digit(values, n, shift, spare, counts)
        shift += 8


@primitive
def _sort_by_digit(values, n, shift, spare, counts):
    """One pass of a radix sort."""
    for digit in range(DIGITS):
        counts[digit] = 0
    for i in range(n):
        spare[i] = values[i]
        counts[(values[i] >> shift) & (DIGITS - 1)] += 1
    total = 0
    for digit in range(DIGITS):
        total += counts[digit]
        counts[digit] = total - counts[digit]
    for i in range(n):
        digit = (spare[i] >> shift) & (DIGITS - 1)
        values[counts[digit]] = spare[i]
        counts[digit] += 1
