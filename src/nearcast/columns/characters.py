"""What the analyzer makes of single characters, as a table for kernels.

Each character is shown to the analyzer's own rules; only what composes with what is worked out here.
Characters are read in blocks when a text first holds one of them (3 ms a block), because most streams use few
scripts and all of Unicode takes more than a second.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple
from unicodedata import combining, decomposition, normalize

import numpy as np

from nearcast.kernels import folding
from nearcast.kernels.folding import Characters
from nearcast.text import fold, word_pattern  # the two halves of the analyzer

CODE_POINTS = 0x20000
"""The planes that texts are written in; all others are rare Han, which the analyzer may do."""

BLOCK = 0x100

_ASCII = 128
_KEYCAP = "\u20e3"  # changes the character before it
_JOINING, _JOINED, _INVISIBLE = 250, 251, 255
"""Above all combining classes (240 is the highest), for the ends of characters: FIRST is _JOINING where one may
compose with the character before it, whose LAST is then _JOINED. After an invisible character nobody knows."""

_SIGNS = {"'": folding.APOSTROPHE, ".": folding.POINT, ",": folding.POINT, "#": folding.HASH, "_": folding.UNDERSCORE}


class CharacterTable:
    """The characters read so far; `arrays` is what kernels work on."""

    def __init__(self) -> None:
        entries = np.zeros((CODE_POINTS, 4), np.int32)
        entries[:, folding.COUNT] = -folding.UNREAD
        symbols = [_symbols(fold(chr(code)))[0] for code in range(_ASCII)]
        self.arrays = Characters(entries, np.array(symbols, np.uint16))
        self._places: dict[tuple[int, ...], int] = {}  # symbols to where they stand
        self._fresh: list[int] = []  # symbols that are not in the arrays yet

    def read(self, text: str) -> None:
        """Read the blocks of all characters of the text that were not read yet."""
        entries = self.arrays.entries
        for block in sorted({ord(char) // BLOCK for char in text}):
            codes = range(max(block * BLOCK, _ASCII), (block + 1) * BLOCK)
            if codes[0] < CODE_POINTS and entries[codes[0], folding.COUNT] == -folding.UNREAD:
                for code in codes:
                    entries[code] = self._entry(chr(code))
        fresh = np.array(self._fresh, np.uint16)
        self.arrays = Characters(entries, np.concatenate([self.arrays.symbols, fresh]))
        self._fresh.clear()

    def _entry(self, char: str) -> tuple[int, int, int, int]:
        """A row of `Characters.entries`."""
        folded = fold(char)
        if not folded:
            return 0, 0, 0, _INVISIBLE
        first = _first(char, folded)
        if first is None:
            return 0, -folding.SLOW, 0, 0
        symbols = tuple(_symbols(folded))
        if all(symbol < folding.APOSTROPHE for symbol in symbols):
            symbols = (folding.SEPARATOR,)  # any one is as good
        top = len(self.arrays.symbols) + len(self._fresh)
        place = self._places.setdefault(symbols, top)
        if place == top:
            self._fresh += symbols
        return place, len(symbols), first, _last(char, folded)


def _first(char: str, folded: str) -> int | None:
    """FIRST of a character, or None if it may fold to something else beside other characters.

    The analyzer folds by NFKC, casefold and NFKC. Casefold looks at single characters. NFKC of a text is NFKC of
    its characters, unless one begins (decomposed, before or after casefold) with a mark that moves before others
    or with something that composes. Three kinds are good: those that begin with neither; marks that are their own
    folding and compose with nothing, if no mark of a higher class is before them; and letters that compose with
    few others, if none of these is before them. The two conditions are checked by kernels.
    """
    begins = normalize("NFKD", char)[0], normalize("NFKD", folded)[0]
    found = _compositions()
    if char == _KEYCAP or any(part in found.marks for part in begins):
        return None
    if any(part in found.letters for part in begins):
        return _JOINING
    before, after = map(combining, begins)
    return before if folded == char or not (before or after) else None


def _last(char: str, folded: str) -> int:
    """LAST of a character: the highest class that any of its forms ends with."""
    ends = {normalize(form, text)[-1] for form in ("NFKC", "NFKD") for text in (char, folded)}
    return _JOINED if ends & _compositions().before_letters else max(map(combining, ends))


class _Compositions(NamedTuple):
    """What composes with a character before it."""

    marks: frozenset[str]
    letters: frozenset[str]  # not marks: vowel signs, and the parts of a Hangul syllable
    before_letters: frozenset[str]  # what those compose with


@cache
def _compositions() -> _Compositions:
    """From the decompositions into two that NFC takes back; those of Hangul are a rule, in no table."""
    pairs = set()
    for code in range(CODE_POINTS):
        parts = decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<") and normalize("NFC", chr(code)) == chr(code):
            pairs.add((chr(int(parts[0], 16)), chr(int(parts[1], 16))))
    syllables = {chr(code) for code in (*range(0x1100, 0x1113), *range(0xAC00, 0xD7A4, 28))}
    endings = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    return _Compositions(
        frozenset(second for _, second in pairs if combining(second)),
        frozenset(second for _, second in pairs if not combining(second)) | endings,
        frozenset(first for first, second in pairs if not combining(second)) | syllables,
    )


def _symbols(folded: str) -> list[int]:
    """Each byte with the kind of its character."""
    symbols: list[int] = []
    for char in folded:
        kind, (first, *rest) = _kind(char), char.encode()
        later = folding.MARK if kind == folding.SOLO else kind
        symbols += [kind + first, *(later + byte for byte in rest)]
    return symbols


def _kind(char: str) -> int:
    """The kind of a folded character, from what words it makes."""
    if char in _SIGNS:
        return _SIGNS[char]
    if not _is_word(char):
        return folding.MARK if _is_word("a" + char) else folding.SEPARATOR
    if not _is_word(char + char):
        return folding.SOLO
    if not _is_word("a" + char):
        return folding.KATAKANA
    return folding.DIGIT if re.fullmatch(r"\d", char) else folding.LETTER


def _is_word(text: str) -> bool:
    return word_pattern(text).fullmatch(text) is not None
