"""The language of expressions: what it means, what it refuses and where it points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nearcast.errors import ExpressionError
from nearcast.expression import Clause, Expression, Phrase, from_words, parse, phrase_found
from nearcast.text import Token, analyzer

ENGLISH = analyzer("english")


def clause(
    required: str,
    forbidden: str = "",
    phrases: Iterable[Phrase] = (),
    forbidden_phrases: Iterable[Phrase] = (),
) -> Clause:
    words = (frozenset(required.split()), frozenset(forbidden.split()))
    return Clause(*words, frozenset(phrases), frozenset(forbidden_phrases))


def tokens(text: str) -> list[Token]:
    return [Token(word, position) for position, word in enumerate(text.split())]


def outcome(text: str, name: str = "unicode") -> Expression | ExpressionError:
    try:
        return parse(text, analyzer(name))
    except ExpressionError as error:
        return error


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("ramen", [clause("ramen")]),
        ("Ramen RAMEN", [clause("ramen")]),
        ("a b & c AND d", [clause("a b c d")]),
        ("a OR b | c", [clause("a"), clause("b"), clause("c")]),
        ("a OR b c", [clause("a"), clause("b c")]),
        ("(a OR b) c", [clause("a c"), clause("b c")]),
        ("(a|b)&(c|d)", [clause("a c"), clause("a d"), clause("b c"), clause("b d")]),
        ("a NOT b", [clause("a", "b")]),
        ("a AND NOT b OR c", [clause("a", "b"), clause("c")]),
        ("NOT b a", [clause("a", "b")]),
        ("a -b -(c|d)", [clause("a", "b c d")]),
        ("a -(b c)", [clause("a", "b"), clause("a", "c")]),
        ("a NOT NOT b", [clause("a b")]),
        ("a --b", [clause("a b")]),
        ("a ---b", [clause("a", "b")]),
        ("a -NOT b", [clause("a b")]),
        ("NOT (a OR NOT b)", [clause("b", "a")]),
        ("a OR a b", [clause("a")]),
        ("a OR (b NOT b)", [clause("a")]),
        ("a and or not", [clause("a and or not")]),
        ("!a b!", [clause("a b")]),
        ("((((a))))", [clause("a")]),
        ("a - b --", [clause("a b")]),
        ("(ramen｜sushi)　－instant", [clause("ramen", "instant"), clause("sushi", "instant")]),
        ("a（b）", [clause("a b")]),
        ("it’s", [clause("it's")]),
        ("a-(b)", [clause("a", "b")]),
        ('a-"b"', [clause("a", "b")]),
        ("AT&T", [clause("at t")]),
    ],
)
def test_operators(text: str, clauses: list[Clause]) -> None:
    expression = parse(text)
    assert list(expression.clauses) == clauses
    assert expression.source == text


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ('"live jazz"', [clause("live jazz", phrases=[("live", "jazz")])]),
        ("“live jazz” «a b»", [clause("live jazz a b", phrases=[("live", "jazz"), ("a", "b")])]),
        ('"jazz"', [clause("jazz")]),
        ('a -"b c"', [clause("a", forbidden_phrases=[("b", "c")])]),
        ('a NOT ("b c" d)', [clause("a", forbidden_phrases=[("b", "c")]), clause("a", "d")]),
        ("e-mail", [clause("e mail", phrases=[("e", "mail")])]),
        ("x -e-mail", [clause("x", forbidden_phrases=[("e", "mail")])]),
        ("東京", [clause("東 京", phrases=[("東", "京")])]),
        ('"a AND (b"', [clause("a and b", phrases=[("a", "and", "b")])]),
        ('"a b" OR a', [clause("a")]),
        ('"a b" "b c" OR "a b"', [clause("a b", phrases=[("a", "b")])]),
        ('"a a"', [clause("a", phrases=[("a", "a")])]),
        ('x ""', [clause("x")]),
    ],
)
def test_phrases(text: str, clauses: list[Clause]) -> None:
    assert list(parse(text).clauses) == clauses


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("#Jazz", [clause("#jazz")]),
        ("＃jazz -#live", [clause("#jazz", "#live")]),
        ("#東京", [clause("#東京")]),
        ('"#live jazz"', [clause("#live jazz", phrases=[("#live", "jazz")])]),
        ("#e-mail", [clause("#e mail", phrases=[("#e", "mail")])]),
    ],
)
def test_a_tag_asks_for_the_tag(text: str, clauses: list[Clause]) -> None:
    assert list(parse(text).clauses) == clauses


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("the dogs AND of", [clause("dog")]),
        ("(the) (of the) dogs", [clause("dog")]),
        ("dogs OR the cats", [clause("cat"), clause("dog")]),
        ('"state of the arts"', [clause("state art", phrases=[("state", None, None, "art")])]),
        ('"the dogs of"', [clause("dog")]),
        ("#dogs #it", [clause("#dog #it")]),
    ],
)
def test_stop_words_are_left_out_and_leave_holes(text: str, clauses: list[Clause]) -> None:
    assert list(parse(text, ENGLISH).clauses) == clauses


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "empty"),
        ("  ", 0, "empty"),
        ("a (b", 2, "never closed"),
        ("((a) b", 0, "never closed"),
        ("a) b", 1, "closes nothing"),
        ("a () b", 2, "nothing between"),
        ("a (\t) b", 2, "nothing between"),
        ('a "b c', 2, "quotation mark is never closed"),
        ("a OR", 2, "OR has nothing after"),
        ("a AND", 2, "AND has nothing after"),
        ("(a |) b", 3, "OR has nothing after"),
        ("a OR AND b", 2, "OR has nothing after"),
        ("AND a", 0, "AND has nothing before"),
        ("a (| b)", 3, "OR has nothing before"),
        ("a NOT", 2, "NOT has nothing after"),
        ("a NOT OR b", 2, "NOT has nothing after"),
        ("(a NOT) b", 3, "NOT has nothing after"),
        ("NOT a", 4, "only forbids words"),
        ("-a -b", 1, "only forbids words"),
        ("a OR NOT b", 9, "only forbids words"),
        ('a OR -"b c"', 6, "only forbids words"),
        ("a OR NOT a", 9, "only forbids words"),
        ("a b NOT a", 8, "can never match"),
        ('"a b" -"a b"', 7, "can never match"),
        ('"a b c" -"b c"', 9, "can never match"),
        ('x "a b" -b', 9, "can never match"),
        ("(a -a) OR (b -b)", 4, "can never match"),
        ("...", 0, "... has no letters or digits"),
        ('""', 0, '"" has no letters or digits'),
        ("a OR ...", 5, "has no letters or digits, so it cannot be an alternative"),
        ("... OR a", 0, "has no letters or digits, so it cannot be an alternative"),
        ("a -...", 3, "has no letters or digits, so it cannot be forbidden"),
        ("a " + "(" * 101 + "a" + ")" * 101, 102, "more than 100 deep"),
        ("a" * 10_001, 10_000, "10,001 characters; 10,000 are allowed"),
        ("a \ud800", 2, "surrogate"),
    ],
)
def test_errors_point_at_the_character(text: str, position: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert reason in caught.value.reason
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("the", 0, "the is a stop word of the english analyzer"),
        ("the of", 0, "the is a stop word"),
        ('"the of"', 0, "is a stop word"),
        ("dog OR the", 7, "the is a stop word of the english analyzer, so it cannot be an alternative"),
        ("dog OR (the of)", 8, "so it cannot be an alternative"),
        ("dog -the", 5, "so it cannot be forbidden"),
        ("dog NOT (of the)", 9, "of is a stop word of the english analyzer, so it cannot be forbidden"),
        ("dog NOT (cat OR the)", 16, "so it cannot be an alternative"),
    ],
)
def test_errors_name_stop_words(text: str, position: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, ENGLISH)
    assert reason in caught.value.reason
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" & ".join(f"(a{i}|b{i})" for i in range(500)), "128 clauses up to here; 64 are allowed"),
        (" OR ".join(f"w{i}" for i in range(1000)), "65 clauses up to here; 64 are allowed"),
        ("NOT (" + " | ".join(f"(a{i} b{i})" for i in range(500)) + ")", "128 clauses"),
    ],
)
def test_too_many_clauses_fail_early(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        parse(text)


def test_the_bound_is_on_clauses_after_absorption() -> None:
    alternatives = "(" + "|".join(f"w{i}" for i in range(64)) + ")"
    assert len(parse(" & ".join([alternatives] * 20)).clauses) == 64
    assert len(parse("(a|b)(c|d)", max_clauses=4).clauses) == 4
    with pytest.raises(ExpressionError, match="4 clauses up to here; 3 are allowed"):
        parse("(a|b)(c|d)", max_clauses=3)


def test_long_chains_and_deep_nesting_within_the_bounds_are_fine() -> None:
    assert parse("NOT " * 2_000 + "a").clauses == (clause("a"),)
    assert parse("-" * 5_000 + "a").clauses == (clause("a"),)
    assert parse("NOT (" * 100 + "a" + ")" * 100).clauses == (clause("a"),)
    assert len(parse(" ".join(f"w{i}" for i in range(1_500))).clauses[0].required) == 1_500


def test_order_of_writing_does_not_matter() -> None:
    one = parse('(a OR "b c") -d OR e')
    other = parse('e OR NOT d AND ("b c" OR a)')
    assert one.clauses == other.clauses
    assert one != other


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        (("a", "b"), "x a b", True),
        (("a", "b"), "b a x b", False),
        (("a", None, "b"), "a x b", True),
        (("a", None, "b"), "a b", False),
        (("a", None, "b"), "a x y b", False),
        (("a", "b", "a"), "a b b a b a", True),
        (("a", "b", "a"), "a b b a", False),
        (("a", "z"), "a", False),
        ((), "", True),
    ],
)
def test_phrase_found(phrase: tuple[str | None, ...], text: str, found: bool) -> None:
    positions: dict[str, set[int]] = {}
    for word, position in tokens(text):
        positions.setdefault(word, set()).add(position)
    assert phrase_found(phrase, positions) is found


@pytest.mark.parametrize(
    ("text", "message", "accepted"),
    [
        ('"live jazz" -free', "live jazz tonight", True),
        ('"live jazz" -free', "jazz live tonight", False),
        ('"live jazz" -free', "free live jazz", False),
        ('jazz -"live jazz"', "live the jazz", True),
        ('jazz -"live jazz"', "live jazz", False),
        ("e-mail", "send an E-MAIL", True),
        ("e-mail", "mail e", False),
        ("東京", "大東京都", True),
        ("東京", "京東", False),
        ("#jazz", "jazz", False),
        ("jazz", "#jazz", True),
        ("ramen AND (tonkotsu OR miso) NOT instant", "Tonkotsu ramen pop-up tonight", True),
    ],
)
def test_an_expression_accepts_messages(text: str, message: str, accepted: bool) -> None:
    words = analyzer().tokens(message)
    expression = parse(text)
    assert expression.accepts(words) is accepted
    assert any(clause.accepts(words) for clause in expression.clauses) is accepted


def test_a_hole_is_one_word_whatever_it_is() -> None:
    expression = parse('"state of the art"', ENGLISH)
    assert expression.accepts(ENGLISH.tokens("state of the art"))
    assert expression.accepts(ENGLISH.tokens("state versus modern art"))
    assert not expression.accepts(ENGLISH.tokens("state of art"))


def test_from_words_takes_words_as_they_are() -> None:
    words = ["AND", "The", "#x", "a b"]
    assert from_words(iter(words)) == Expression("AND The #x a b", (Clause(frozenset(words)),))
    for bad in ([], ["a", ""], ["\udfff"]):
        with pytest.raises(ExpressionError):
            from_words(bad)


# --- the law: clauses mean what the tree means ------------------------------------------------------------

WORDS = "abcd"
SUBSETS = [set(subset) for size in range(5) for subset in combinations(WORDS, size)]
Tree = tuple[str, Callable[[set[str]], bool]]


def _word(word: str) -> Tree:
    return word, lambda present: word in present


def _not(tree: Tree, sign: str) -> Tree:
    text, holds = tree
    return f"{sign}({text})", lambda present: not holds(present)


def _pair(left: Tree, right: Tree, sign: str) -> Tree:
    one, other = left[1], right[1]
    if sign.strip() in ("OR", "|"):
        return f"({left[0]}{sign}{right[0]})", lambda present: one(present) or other(present)
    return f"({left[0]}{sign}{right[0]})", lambda present: one(present) and other(present)


trees = st.recursive(
    st.sampled_from(WORDS).map(_word),
    lambda inner: (
        st.builds(_not, inner, st.sampled_from(["NOT ", "-", "NOT --", "-NOT NOT "]))
        | st.builds(_pair, inner, inner, st.sampled_from([" AND ", "&", " ", " OR ", "|"]))
    ),
    max_leaves=12,
)


@given(trees)
def test_clauses_mean_what_the_tree_means(tree: Tree) -> None:
    text, holds = tree
    truth = [holds(subset) for subset in SUBSETS]
    expression = outcome(text)
    if isinstance(expression, ExpressionError):
        # True of a message without words means that one alternative requires nothing, and the reverse.
        assert truth[0] if "only forbids" in expression.reason else not any(truth)
        return
    assert not truth[0]
    for subset, expected in zip(SUBSETS, truth, strict=True):
        assert expression.accepts(tokens(" ".join(subset))) is expected
    assert all(clause.required for clause in expression.clauses)


@given(st.lists(st.sampled_from([*"abcd", "AND", "OR", "NOT"]), min_size=1, max_size=12))
def test_precedence_is_that_of_python(parts: list[str]) -> None:
    """Without parentheses: NOT before AND before OR, and nothing between two operands is AND."""
    python: list[str] = []
    for part in parts:
        if python and python[-1] in WORDS and (part in WORDS or part == "NOT"):
            python.append("and")
        python.append(part.lower() if len(part) > 1 else part)
    try:
        code = compile(" ".join(python), "expression", "eval")
    except SyntaxError:
        with pytest.raises(ExpressionError):
            parse(" ".join(parts))
        return
    truth = [bool(eval(code, {word: word in subset for word in WORDS})) for subset in SUBSETS]
    assume(not truth[0] and any(truth))
    expression = parse(" ".join(parts))
    assert [expression.accepts(tokens(" ".join(subset))) for subset in SUBSETS] == truth


mixtures = st.lists(
    st.sampled_from(["a", "b", "the", "#t", "AND", "OR", "NOT", "&", "|", "-", "(", ")", '"', "“", "”", " ", "東京"])
    | st.text(max_size=3),
    max_size=30,
).map("".join)


@given(mixtures | st.text(), st.sampled_from(["unicode", "english"]))
@example("(" * 5_000, "unicode")
@example('"' * 9_999, "unicode")
@example("-" * 10_000, "unicode")
@example("(a+)+$" * 1_500, "unicode")
def test_any_text_is_an_expression_or_an_expression_error(text: str, name: str) -> None:
    expression = outcome(text, name)
    if isinstance(expression, ExpressionError):
        assert expression.text == text
        assert 0 <= expression.position <= max(len(text) - 1, 0)
    else:
        assert 1 <= len(expression.clauses) <= 64
        for one in expression.clauses:
            assert one.required
            assert one.required.isdisjoint(one.forbidden)
            for phrase in one.phrases:
                assert len(phrase) > 1
                assert phrase[0] is not None
                assert phrase[-1] is not None
                assert {word for word in phrase if word is not None} <= one.required
