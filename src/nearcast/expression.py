"""What a subscriber writes, as clauses: `ramen AND (tonkotsu OR "miso soup") -instant`.

Words and "quoted phrases", AND (also `&`, or nothing between two operands), OR (`|`), NOT (`-` before a word,
phrase or parenthesis), parentheses. NOT binds tighter than AND, AND tighter than OR. Only upper-case AND, OR
and NOT are operators; a hyphen inside a word is part of it. Any double quotation mark opens and closes a
phrase, and the full-width forms of the operators count, because keyboards and phones write them.

The same analyzer reads messages and expressions. A written word that is several words to it (e-mail, 東京) is
a phrase; `#tag` asks for the tag itself. A word that is nothing to it (a stop word, punctuation) cannot be
asked for: beside others it is left out, as if true of every message; alone, after NOT or as an alternative it
is an error.

Parsing builds the disjunctive normal form on the way, without a tree and without recursion: a group that is
negated swaps AND with OR and negates its words (De Morgan). While parsing, a clause is an integer: bit 2i
means that atom i is required, bit 2i + 1 that it is forbidden. One clause absorbs another if its bits are a
subset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, NoReturn

from nearcast.errors import ExpressionError
from nearcast.text import Analyzer, Token
from nearcast.text import analyzer as analyzer_named

LONGEST_TEXT = 10_000
"""Characters in an expression."""

DEEPEST_NESTING = 100
"""Parentheses within parentheses; nobody reads more."""

Phrase = tuple[str | None, ...]
"""Words at consecutive positions; None is one position, whatever stands there: a stop word was written."""


@dataclass(frozen=True)
class Clause:
    """Conditions that must all hold. Words of a required phrase are in `required` too."""

    required: frozenset[str]
    forbidden: frozenset[str] = frozenset()
    phrases: frozenset[Phrase] = frozenset()
    forbidden_phrases: frozenset[Phrase] = frozenset()

    def accepts(self, tokens: Iterable[Token]) -> bool:
        """Whether the clause is true of a message with these words."""
        return self._holds(positions_of(tokens))

    def _holds(self, positions: Mapping[str, AbstractSet[int]]) -> bool:
        return (
            self.required <= positions.keys()
            and self.forbidden.isdisjoint(positions)
            and all(phrase_found(phrase, positions) for phrase in self.phrases)
            and not any(phrase_found(phrase, positions) for phrase in self.forbidden_phrases)
        )


@dataclass(frozen=True)
class Expression:
    """True of a message if one of its clauses is; `source` is what the subscriber wrote."""

    source: str
    clauses: tuple[Clause, ...]

    def accepts(self, tokens: Iterable[Token]) -> bool:
        """Whether the expression is true of a message with these words."""
        positions = positions_of(tokens)
        return any(clause._holds(positions) for clause in self.clauses)


def positions_of(tokens: Iterable[Token]) -> dict[str, set[int]]:
    """Where each word stands in the message."""
    positions: dict[str, set[int]] = {}
    for word, position in tokens:
        positions.setdefault(word, set()).add(position)
    return positions


def phrase_found(phrase: Phrase, positions: Mapping[str, AbstractSet[int]]) -> bool:
    """Whether the words of the phrase stand one after the other, starting from its rarest word."""
    words = [(offset, word) for offset, word in enumerate(phrase) if word is not None]
    if not all(word in positions for _, word in words):
        return False
    anchor_offset, anchor = min(words, key=lambda item: len(positions[item[1]]), default=(0, None))
    if anchor is None:
        return True
    return any(
        all(place - anchor_offset + offset in positions[word] for offset, word in words) for place in positions[anchor]
    )


def parse(text: str, analyzer: Analyzer | None = None, *, max_clauses: int = 64) -> Expression:
    """The expression that the text means, or an `ExpressionError` that points at the offending character.

    Equal meanings by reordering give equal clauses in equal order. No part of the expression may have more
    than `max_clauses` clauses after absorption, so that multiplying out two parts looks at no more than its
    square. The default keeps hostile texts cheap; raise it with care.
    """
    if len(text) > LONGEST_TEXT:
        reason = f"the expression has {len(text):,} characters; {LONGEST_TEXT:,} are allowed"
        raise ExpressionError(reason, text[: LONGEST_TEXT + 1], LONGEST_TEXT)
    _check_unicode(text)
    return _parsed(text, analyzer or analyzer_named(), max_clauses)


@lru_cache(maxsize=1 << 14)
def _parsed(text: str, analyzer: Analyzer, max_clauses: int) -> Expression:
    """Remembered, because many subscribers write the same few expressions."""
    return Expression(text, _Parser(text, analyzer, max_clauses).clauses())


def from_words(words: Iterable[str]) -> Expression:
    """All of these words, taken as they are: no operators, no analysis."""
    required = list(words)
    source = " ".join(required)
    if not required or "" in required:
        raise ExpressionError("an expression needs at least one word, and no empty one", source, 0)
    _check_unicode(source)
    return Expression(source, (Clause(frozenset(required)),))


def _check_unicode(text: str) -> None:
    """Half a surrogate pair is not text: no store, file or socket would take it."""
    lone = re.search("[\ud800-\udfff]", text)
    if lone:
        raise ExpressionError("half a surrogate pair is not a character", text, lone.start())


# --- pieces --------------------------------------------------------------------------------------------

_OPEN, _CLOSE, _AND, _OR, _MINUS, _QUOTES = "(（", ")）", "&＆", "|｜", "\\-－", '"“”„‟＂«»'
_PIECE = re.compile(
    rf"""(?P<open>[{_OPEN}])
    |(?P<close>[{_CLOSE}])
    |(?P<AND>[{_AND}])
    |(?P<OR>[{_OR}])
    |(?P<NOT>[{_MINUS}](?=[{_MINUS}]*[^{_MINUS}{_CLOSE}{_AND}{_OR}\s]))
    |(?P<phrase>[{_QUOTES}][^{_QUOTES}]*[{_QUOTES}])
    |(?P<unclosed>[{_QUOTES}])
    |(?P<word>(?:[^{_OPEN}{_CLOSE}{_AND}{_OR}{_QUOTES}{_MINUS}\s]|[{_MINUS}](?![{_OPEN}{_QUOTES}]))+)""",
    re.VERBOSE,
)
_KEYWORDS = ("AND", "OR", "NOT")


class _Piece(NamedTuple):
    kind: str  # open, close, AND, OR, NOT, word, phrase
    written: str
    position: int


def _pieces(text: str) -> Iterator[_Piece]:
    for match in _PIECE.finditer(text):
        kind, written = str(match.lastgroup), match.group()
        if kind == "unclosed":
            raise ExpressionError("this quotation mark is never closed", text, match.start())
        if kind == "word" and written in _KEYWORDS:
            kind = written
        yield _Piece(kind, written, match.start())


# --- parser --------------------------------------------------------------------------------------------


@dataclass
class _Group:
    """An open parenthesis, or the whole expression, while its operands come in."""

    position: int
    negated: bool  # an odd number of NOTs stands before this group and those around it
    negation: _Piece | None  # the NOT directly before it
    alternatives: list[int] | None = None  # clauses of the alternatives before the last OR
    conjunction: list[int] | None = None  # clauses of the operands since then
    operands: int = 0  # since the last OR, also those left out
    left_out: ExpressionError | None = None  # why the first operand of the group was left out


@dataclass
class _Parser:
    text: str
    analyzer: Analyzer
    max_clauses: int
    groups: list[_Group] = field(default_factory=lambda: [_Group(0, negated=False, negation=None)])
    waiting: _Piece | None = None  # the operator that still needs its right operand
    negations: int = 0  # NOTs directly before the next operand
    atoms: dict[Phrase, int] = field(default_factory=dict)
    required_bits: int = 0  # bit 2i of every atom
    places: dict[int, int] = field(default_factory=dict)  # literal's bit number to its first position
    clash: int | None = None  # position of the first word that is both required and forbidden

    def clauses(self) -> tuple[Clause, ...]:
        for piece in _pieces(self.text):
            self._take(piece)
        self._check_operand()
        if len(self.groups) > 1:
            self._fail("this parenthesis is never closed", self.groups[-1].position)
        masks = self._close_group()
        if masks is None:
            raise self.groups[0].left_out or ExpressionError("the expression is empty", self.text, 0)
        return self._finished(masks)

    def _take(self, piece: _Piece) -> None:
        match piece.kind:
            case "open":
                self._open(piece)
            case "close":
                self._close(piece)
            case "NOT":
                self.negations += 1
                self.waiting = piece
            case "AND" | "OR":
                self._operator(piece)
            case _:
                self._leaf(piece)

    def _open(self, piece: _Piece) -> None:
        if len(self.groups) > DEEPEST_NESTING:
            self._fail(f"parentheses are nested more than {DEEPEST_NESTING} deep", piece.position)
        negation = self.waiting if self.negations else None
        self.groups.append(_Group(piece.position, self._negated(), negation))
        self.negations, self.waiting = 0, None

    def _close(self, piece: _Piece) -> None:
        self._check_operand()
        if len(self.groups) == 1:
            self._fail("this parenthesis closes nothing", piece.position)
        group = self.groups[-1]
        if not group.operands:
            self._fail("there is nothing between these parentheses", group.position)
        masks = self._close_group()
        self.groups.pop()
        self._add_operand(masks, group.left_out, group.negation, group.position)

    def _operator(self, piece: _Piece) -> None:
        self._check_operand()
        group = self.groups[-1]
        if not group.operands:
            self._fail(f"{piece.kind} has nothing before it", piece.position)
        self.waiting = piece
        if piece.kind == "OR":
            self._end_alternative(piece.position)

    def _leaf(self, piece: _Piece) -> None:
        negation = self.waiting if self.negations else None
        atom = self._atom(piece)
        masks = None if atom is None else [self._literal(atom, self._negated(), piece.position)]
        left_out = self._why_nothing(piece) if atom is None else None
        self._add_operand(masks, left_out, negation, piece.position)

    def _add_operand(
        self,
        masks: list[int] | None,
        left_out: ExpressionError | None,
        negation: _Piece | None,
        position: int,
    ) -> None:
        group = self.groups[-1]
        group.operands += 1
        self.negations, self.waiting = 0, None
        if masks is None:
            assert left_out is not None
            if negation:
                self._fail(f"{left_out.reason}, so it cannot be forbidden", left_out.position)
            group.left_out = group.left_out or left_out
        else:
            group.conjunction = self._combined(group.conjunction, masks, not group.negated, position)

    def _end_alternative(self, position: int) -> None:
        group = self.groups[-1]
        if group.conjunction is None:
            assert group.left_out is not None
            self._fail(f"{group.left_out.reason}, so it cannot be an alternative", group.left_out.position)
        group.alternatives = self._combined(group.alternatives, group.conjunction, group.negated, position)
        group.conjunction, group.operands, group.left_out = None, 0, None

    def _close_group(self) -> list[int] | None:
        """The clauses of the innermost group; None if all of it was left out."""
        group = self.groups[-1]
        if group.alternatives is None:
            return group.conjunction
        self._end_alternative(group.position)
        return group.alternatives

    def _check_operand(self) -> None:
        if self.waiting:
            self._fail(f"{self.waiting.kind} has nothing after it", self.waiting.position)

    def _negated(self) -> bool:
        return self.groups[-1].negated ^ (self.negations % 2 == 1)

    def _fail(self, reason: str, position: int) -> NoReturn:
        raise ExpressionError(reason, self.text, position)

    # --- words

    def _atom(self, piece: _Piece) -> Phrase | None:
        """What the written word or phrase is to the analyzer; a tag stands for the words it is made of."""
        tokens = self.analyzer.tokens(piece.written)
        tags = [token.word for token in tokens if token.word.startswith("#")]
        others = [token.word for token in tokens if not token.word.startswith("#")]
        if len(tags) == 1 and tags[0] == "#" + "".join(others):
            return (tags[0],)
        by_position: dict[int, str] = {}
        for token in tokens:  # a tag comes after the word at its position
            by_position[token.position] = token.word
        if not by_position:
            return None
        return tuple(by_position.get(at) for at in range(min(by_position), max(by_position) + 1))

    def _why_nothing(self, piece: _Piece) -> ExpressionError:
        shown = piece.written if len(piece.written) <= 40 else piece.written[:40] + "…"
        if analyzer_named().tokens(piece.written):
            reason = f"{shown} is a stop word of the {self.analyzer.name} analyzer"
        else:
            reason = f"{shown} has no letters or digits"
        return ExpressionError(reason, self.text, piece.position)

    def _literal(self, atom: Phrase, negated: bool, position: int) -> int:
        mask = self._bit(atom, negated, position)
        if not negated and len(atom) > 1:
            for word in atom:
                if word is not None:
                    mask |= self._bit((word,), False, position)
        return mask

    def _bit(self, atom: Phrase, negated: bool, position: int) -> int:
        number = 2 * self.atoms.setdefault(atom, len(self.atoms))
        self.required_bits |= 1 << number
        self.places.setdefault(number + negated, position)
        return 1 << (number + negated)

    # --- clauses as bits

    def _combined(self, left: list[int] | None, right: list[int], multiply: bool, position: int) -> list[int]:
        """left AND right if `multiply`, else left OR right; None is neutral in both."""
        if left is None:
            return right
        masks = self._product(left, right) if multiply else {*left, *right}
        kept: list[int] = []
        # A subset has fewer bits, so what absorbs a clause comes before it.
        for mask in sorted(masks, key=lambda mask: (mask.bit_count(), mask)):
            if not any(smaller & mask == smaller for smaller in kept):
                kept.append(mask)
                if len(kept) > self.max_clauses:
                    self._fail(
                        f"multiplied out, the expression has {len(masks):,} clauses up to here;"
                        f" {self.max_clauses} are allowed",
                        position,
                    )
        return kept

    def _product(self, left: list[int], right: list[int]) -> set[int]:
        masks = set()
        for one in left:
            for other in right:
                mask = one | other
                clash = mask & (mask >> 1) & self.required_bits
                if not clash:
                    masks.add(mask)
                elif self.clash is None:
                    self.clash = self.places[clash.bit_length()]  # one above the highest clashing bit
        return masks

    def _finished(self, masks: list[int]) -> tuple[Clause, ...]:
        atoms = list(self.atoms)
        clauses = []
        for mask in masks:
            clause = _clause(mask, atoms)
            if not mask & self.required_bits:
                place = min(self.places[number] for number in _bits(mask))
                self._fail("this alternative only forbids words; it needs a word to look for", place)
            if _contradicts_itself(clause):
                self.clash = min(self.places[number] for number in _bits(mask) if number % 2)
            else:
                clauses.append(clause)
        if not clauses:
            self._fail("the expression can never match: it forbids what it requires", self.clash or 0)
        return tuple(sorted(clauses, key=_order))


def _bits(mask: int) -> list[int]:
    numbers = []
    while mask:
        lowest = mask & -mask
        numbers.append(lowest.bit_length() - 1)
        mask ^= lowest
    return numbers


def _clause(mask: int, atoms: Sequence[Phrase]) -> Clause:
    sides: tuple[list[Phrase], list[Phrase]] = ([], [])
    for number in _bits(mask):
        sides[number % 2].append(atoms[number // 2])
    words = [frozenset(str(atom[0]) for atom in side if len(atom) == 1) for side in sides]
    phrases = [frozenset(atom for atom in side if len(atom) > 1) for side in sides]
    return Clause(words[0], words[1], phrases[0], phrases[1])


def _contradicts_itself(clause: Clause) -> bool:
    """Whether a required phrase has a forbidden one within; single words were compared before."""
    return any(
        _within(inner, outer[start:])
        for outer in clause.phrases
        for inner in clause.forbidden_phrases
        for start in range(len(outer) - len(inner) + 1)
    )


def _within(inner: Phrase, outer: Phrase) -> bool:
    return all(word is None or word == other for word, other in zip(inner, outer, strict=False))


def _order(clause: Clause) -> tuple[list[str], list[str], list[list[str]], list[list[str]]]:
    """Any fixed order will do; None sorts as the empty word, which no analyzer gives."""

    def listed(phrases: Iterable[Phrase]) -> list[list[str]]:
        return sorted([word or "" for word in phrase] for phrase in phrases)

    return (
        sorted(clause.required),
        sorted(clause.forbidden),
        listed(clause.phrases),
        listed(clause.forbidden_phrases),
    )
