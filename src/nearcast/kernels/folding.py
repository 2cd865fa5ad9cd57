"""From UTF-8 to folded symbols, one character at a time. A symbol is a byte of UTF-8 and its kind.

Folding a text is folding its characters, as long as none of them composes with the one before it or changes
places with it. The table of characters says for each whether that holds; a text with any other character is
left to the analyzer, which folds texts as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.jit import primitive

SEPARATOR, APOSTROPHE, POINT, HASH, SOLO, KATAKANA, LETTER, DIGIT, UNDERSCORE, MARK = (kind << 8 for kind in range(10))
"""Kinds of folded characters. A symbol is kind + byte, so that symbols of one kind are a range of numbers.

SOLO to UNDERSCORE begin a word; LETTER and above go on in one. POINT is `.` or `,`; SOLO is a letter that is a
word by itself. All bytes of a character have its kind, but the later bytes of a SOLO are MARKs: they belong to
the letter before them and begin nothing, as marks do.
"""

KINDS = 0xFF00
"""symbol & KINDS is its kind."""

DONE, FULL, LONG, UNREAD, SLOW = range(5)
"""How a row ended: written; no room for its words; none for its folded text; a character that the table of
characters has yet to be told; a row for the analyzer."""

BEHIND = 8
"""Symbols that must have room behind a folded text: a SEPARATOR, and what `chunk_of` reads and masks."""

FROM, COUNT, FIRST, LAST = range(4)
"""Columns of `Characters.entries`."""


class Characters(NamedTuple):
    """What the analyzer makes of each character: COUNT symbols from FROM on.

    FIRST and LAST are about its neighbours: where FIRST is not 0 and less than LAST of the character before it,
    the two change each other. They are the combining classes at both ends; what composes without being a mark
    has numbers above all classes. An invisible character has no symbols and the highest LAST.
    """

    entries: NDArray[np.int32]  # [code points, 4]  FROM, COUNT (or -UNREAD, -SLOW), FIRST, LAST
    symbols: NDArray[np.uint16]  # [*]  the first 128 are those of ASCII


@primitive
def code_point(data, at, high):
    """The character at data[at], which is not ASCII; -1 unless it is whole and well-formed UTF-8."""
    lead = np.int64(data[at])
    if lead < 0xE0:
        size, code, least = 2, lead & 0x1F, 0x80
    elif lead < 0xF0:
        size, code, least = 3, lead & 0x0F, 0x800
    else:
        size, code, least = 4, lead & 0x07, 0x10000
    if lead < 0xC0 or lead > 0xF4 or at + size > high:
        return -1
    for i in range(at + 1, at + size):
        byte = np.int64(data[i])
        if byte & 0xC0 != 0x80:
            return -1
        code = code << 6 | byte & 0x3F
    if code < least or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return -1
    return code


@primitive
def bytes_of(code):
    """How many bytes UTF-8 takes for a character that is not ASCII."""
    if code < 0x800:
        return 2
    return 3 if code < 0x10000 else 4


@primitive
def fold(data, low, high, characters, folded):
    """Fold data[low:high] into symbols and a SEPARATOR behind them; how many, or minus the reason why not."""
    room = len(folded) - BEHIND
    at, out, before = low, 0, 0
    if high - low > room:
        return -LONG
    while at < high:
        if data[at] < 128:
            folded[out] = characters.symbols[data[at]]
            at += 1
            out += 1
            before = 0
            continue
        code = code_point(data, at, high)
        if code < 0 or code >= len(characters.entries):
            return -SLOW
        source, count = characters.entries[code, FROM], characters.entries[code, COUNT]
        if count < 0:
            return count
        if 0 < characters.entries[code, FIRST] < before:  # these two must be folded together
            return -SLOW
        before = characters.entries[code, LAST]
        at += bytes_of(code)
        if out + count + high - at > room:  # so that ASCII, which never grows, need not ask
            return -LONG
        for i in range(source, source + count):
            folded[out] = characters.symbols[i]
            out += 1
    folded[out] = SEPARATOR
    return out
