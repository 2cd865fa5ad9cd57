"""A small table of bits that answers most questions "has this row that term?" with one look: no."""

from __future__ import annotations

from nearcast.kernels.jit import primitive
from nearcast.kernels.primitives import lower_bound

SIEVE = 4096  # places of a sieve: those of the row's terms are set


@primitive
def set_sieve(sieve, rows, row, value):
    """Set the places of the row's terms, or clear them again."""
    for k in range(rows.term_from[row], rows.term_from[row + 1]):
        sieve[rows.terms[k] & (SIEVE - 1)] = value


@primitive
def sifted(sieve, terms, low, high, term):
    """Is a term in the ascending run terms[low:high], for which the sieve is set?"""
    if not sieve[term & (SIEVE - 1)]:
        return False
    at = lower_bound(terms, low, high, term)
    return at < high and terms[at] == term
