"""What a word is: folding, boundaries, tags, stems, and that no text is too hostile."""

from __future__ import annotations

import json
import pickle
import sys
import threading
from pathlib import Path
from unicodedata import category, combining, normalize

import pytest
import snowballstemmer
from hypothesis import example, given
from hypothesis import strategies as st

from nearcast import text as text_module
from nearcast.errors import AnalyzerError
from nearcast.text import ANALYZERS, Analyzer, Token, analyzer

DIRTY_SAMPLE = Path(__file__).parents[2] / "shared" / "data" / "dirty_sample.jsonl"

# Characters on which rules meet: marks of several classes, invisible ones, scripts without spaces, signs.
TRICKY = "aAiIİıßſǅΣςᾳ\u0345é\u0301\u0316\u0307\u0327\u0334'’ʼ.,_-#＃@09٣²½Ⅷ①ﬁ\u200b\u200d\u00ad\ufe0f\u034f"
TRICKY += "東京らーかがハﾊﾞ\uff9f\u3099한\u1100\u1161\u11a8กำ\u0e49ལ\u0f73\u0f71ក្\u17b4😀🏽1\u20e3\x00\n \ud800"
texts = st.text() | st.text(alphabet=TRICKY) | st.text(alphabet=st.characters(codec="ascii"))


def words(text: str, name: str = "unicode") -> list[str]:
    return analyzer(name).words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tonkotsu ramen pop-up TONIGHT!", ["tonkotsu", "ramen", "pop", "up", "tonight"]),
        ("it's it’s itʼs it＇s", ["it's"] * 4),
        ("'quoted' rock'n'roll dogs' a''b 5'10", ["quoted", "rock'n'roll", "dogs", "a", "b", "5", "10"]),
        ("3.14 1,000.5 1..2 a.b 3. .5", ["3.14", "1,000.5", "1", "2", "a", "b", "3", "5"]),
        ("snake_case __init__ ___ _", ["snake_case", "__init__"]),
        ("@user e-mail a/b", ["user", "e", "mail", "a", "b"]),
        ("ＦＵＬＬ　ｗｉｄｔｈ", ["full", "width"]),
        ("ﬁn oﬃce", ["fin", "office"]),
        ("Straße STRASSE ſtraße", ["strasse"] * 3),
        ("İstanbul ISTANBUL istanbul i\u0307\u0307stanbul", ["istanbul"] * 4),
        ("ΣΊΣΥΦΟΣ σίσυφος", ["σίσυφοσ"] * 2),
        ("😀👩‍👩‍👧 🇩🇪 1️⃣ #️⃣ … — «»", []),
        ("a\x00b\x1fc\u2028d\ud800e", ["a", "b", "c", "d", "e"]),
        ("", []),
        ("\u0301\u0316 \u0301x", ["x"]),
        ("ك\u064eت\u064eب", ["ك\u064eت\u064eب"]),
        ("हिन्दी", ["हिन्दी"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京タワー", ["東", "京", "タワー"]),
        ("らーめん", ["ら", "ー", "め", "ん"]),
        ("Tシャツ", ["t", "シャツ"]),
        ("ﾗｰﾒﾝ ﾊﾞｽ", ["ラーメン", "バス"]),
        ("か\u309a", ["か\u309a"]),
        ("佐々木", ["佐", "々", "木"]),
        ("서울 맛집", ["서울", "맛집"]),
        ("กรุง ๑๒", ["ก", "รุ", "ง", "๑๒"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
    ],
)
def test_scripts_without_spaces_give_letters_and_katakana_and_hangul_stay_together(
    text: str, expected: list[str]
) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("invisible", "\u00ad\u034f\u200b\u200c\u200d\u200e\u202e\u2060\u2066\ufe0f\ufeff\u3164")
def test_invisible_characters_make_no_word_different(invisible: str) -> None:
    assert words(f"{invisible}ra{invisible}men{invisible}") == ["ramen"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#Tag", [("tag", 0), ("#tag", 0)]),
        ("a ＃tag b", [("a", 0), ("tag", 1), ("#tag", 1), ("b", 2)]),
        ("##tag", [("tag", 0), ("#tag", 0)]),
        ("a#b _#c", [("a", 0), ("b", 1), ("c", 2)]),
        ("# tag C# #", [("tag", 0), ("c", 1)]),
        ("#東京タワー x", [("東", 0), ("#東京タワー", 0), ("京", 1), ("タワー", 2), ("x", 3)]),
        ("#e-mail", [("e", 0), ("#e", 0), ("mail", 1)]),
        ("#___", []),
    ],
)
def test_tags(text: str, expected: list[tuple[str, int]]) -> None:
    assert analyzer().tokens(text) == expected


def test_stop_words_are_dropped_and_take_a_position() -> None:
    tokens = analyzer("english").tokens("The dogs of it's running #dogs #it")
    expected = [("dog", 1), ("run", 4), ("dog", 5), ("#dog", 5), ("#it", 6)]
    assert tokens == [Token(*pair) for pair in expected]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("english", "we aren't listening to cities 2020s", ["listen", "citi", "2020s"]),
        ("porter", "the cities", ["citi"]),
        ("german", "die Straßen und daß STRASSE", ["strass", "strass"]),
        ("french", "c'est l'amour qu'il cherchait", ["amour", "cherch"]),
        ("spanish", "los perros también corren", ["perr", "corr"]),
        ("italian", "dell'amore e la città", ["amor", "citt"]),
        ("portuguese", "não são os livros", ["livr"]),
        ("dutch", "de huizen van het dorp", ["huis", "dorp"]),
        ("turkish", "DIŞARI Dışarı İSTANBUL istanbul I\u0307stanbul", ["dışar"] * 2 + ["istanbul"] * 3),
        ("swedish", "och bilarna", ["och", "bil"]),
    ],
)
def test_languages(name: str, text: str, expected: list[str]) -> None:
    assert words(text, name) == expected


def test_every_snowball_language_is_an_analyzer() -> None:
    assert set(ANALYZERS) == {"unicode", *snowballstemmer.algorithms()}
    for name in ANALYZERS:
        assert analyzer(name).words("1984 #12") == ["1984", "12", "#12"]


@pytest.mark.parametrize("name", ["", "klingon", "English", "unicode "])
def test_an_unknown_analyzer_is_named_with_those_that_exist(name: str) -> None:
    with pytest.raises(AnalyzerError, match=r"unicode, arabic.*yiddish") as caught:
        analyzer(name)
    assert repr(name) in str(caught.value)


def test_analyzers_are_values() -> None:
    english = analyzer("english")
    assert english is analyzer("english")
    assert english == Analyzer("english") != analyzer()
    assert pickle.loads(pickle.dumps(english)) is english
    assert repr(english) == "Analyzer(name='english')"
    with pytest.raises(AttributeError):
        english.name = "german"


def test_threads_share_an_analyzer() -> None:
    vocabulary = [f"{stem}{ending}" for stem in map("x{}y".format, "abcdefghij") for ending in ("ing", "ed", "s")]
    text = " ".join(vocabulary * 20)
    expected = words(text, "english")
    fresh = Analyzer("english")
    answers: list[list[str]] = []
    threads = [threading.Thread(target=lambda: answers.append(fresh.words(text))) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert answers == [expected] * 8


@given(texts)
@example("İ\u0334\u0307")
@example("ᾳ\u0301")
@example("²\u20e3")
def test_words_of_words_are_the_words(text: str) -> None:
    found = [word for word in words(text) if not word.startswith("#")]
    assert words(" ".join(found)) == found


@given(texts)
def test_composed_and_decomposed_text_has_the_same_words(text: str) -> None:
    expected = analyzer().tokens(text)
    for form in ("NFC", "NFD"):
        assert analyzer().tokens(normalize(form, text)) == expected


@given(texts, st.sampled_from(ANALYZERS))
def test_tokens_are_words_in_order(text: str, name: str) -> None:
    tokens = analyzer(name).tokens(text)
    positions = [position for _, position in tokens]
    assert positions == sorted(positions)
    for word, _ in tokens:
        assert word not in ("", "#")
        assert not any(char.isspace() or category(char) in ("Cc", "Cf", "Cs") for char in word)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_the_ascii_path_finds_what_the_unicode_path_finds(text: str) -> None:
    folded = text_module.fold(text)
    assert folded == normalize("NFKC", normalize("NFKC", text).casefold())
    unicode_spans = [match.span() for match in text_module._unicode_word().finditer(folded)]
    assert [match.span() for match in text_module._ASCII_WORD.finditer(folded)] == unicode_spans


def test_only_listed_characters_become_marks_without_being_in_the_flood_pattern() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if combining(char) or char in "\u0f73\u0f75\u0f81\uff9e\uff9f":
            assert text_module._FLOOD.fullmatch(char * 31), hex(code)
        elif code < 0x20000 and not char.isascii() and category(char)[0] in "LM":
            assert not all(combining(part) for part in normalize("NFKD", char)), hex(code)


@given(st.text(alphabet="a\u0301\u0316\u0327\u0334\u0345\uff9e\uff9f\u0f73", min_size=31))
def test_sorting_marks_beforehand_does_not_change_nfkc(text: str) -> None:
    sorted_text = text_module._FLOOD.sub(text_module._in_canonical_order, text)
    assert normalize("NFKC", sorted_text) == normalize("NFKC", text)


@pytest.mark.parametrize("name", ["unicode", "english"])
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("y" * 100_000, 1),
        ("word " * 20_000, 20_000),
        ("(a+)+$ b" * 5_000, None),
        ("e" + "\u0301\u0316" * 50_000, 1),
        ("e" + "\u0f73" * 50_000, 1),
        ("ﾊ" + "ﾞﾟ" * 50_000, 1),
        ("\u0301\u0316" * 50_000, 0),
        ("b'" * 50_000, 1),
        ("1." * 50_000, 1),
        ("_" * 100_000, 0),
        ("#" * 100_000, 0),
        ("#" + "東" * 20_000, 20_001),
        ("#東" * 20_000, 20_001),
        ("\u1100\u1161\u11a8" * 30_000, 1),
        ("\u200b" * 100_000 + "b", 1),
    ],
    ids=lambda value: ascii(value[:12]) if isinstance(value, str) else None,
)
def test_hostile_text_is_done_in_linear_time(name: str, text: str, count: int | None) -> None:
    """At these sizes anything quadratic takes minutes; no clock is asked."""
    tokens = analyzer(name).tokens(text)
    if count is not None:
        assert len(tokens) == count


@pytest.mark.real_data
@pytest.mark.skipif(not DIRTY_SAMPLE.exists(), reason="the shared sample of bad and odd rows is not here")
@pytest.mark.parametrize("name", ["unicode", "english", "turkish"])
def test_every_dirty_text_can_be_analysed(name: str) -> None:
    rows = [json.loads(line) for line in DIRTY_SAMPLE.read_text("utf-8").split("\n") if line]
    values = [value for row in rows for value in (*(row.get("record") or {}).values(), row.get("raw"))]
    found = [analyzer(name).tokens(value) for value in values if isinstance(value, str)]
    assert len(rows) > 400
    assert sum(map(len, found)) > 20_000
