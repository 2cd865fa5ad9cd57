"""The fast way from texts to a batch says exactly what the slow one says."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nearcast import records
from nearcast.columns import MessageBatch, Rejected, encoder
from nearcast.columns.encoder import Encoded, TextEncoder, from_texts
from nearcast.columns.texts import TextColumn
from nearcast.columns.wordtable import LexiconTable
from nearcast.errors import ColumnsError, NearcastError
from nearcast.geo import Space, earth, plane, point
from nearcast.kernels import jit, wordtable
from nearcast.lexicon import Lexicon
from nearcast.model import Message
from nearcast.records import read_message
from nearcast.text import TextTokens, Token, analyzer

DATA = Path(__file__).parents[2] / "shared" / "data"
ROWS = 300 if jit.PURE else 3000  # of each real set

# Characters on which rules meet: marks of several classes, invisible ones, scripts without spaces, letters that
# compose (Hangul, Bengali, Tamil), characters that fold to several or to none, signs, ends of UTF-8 lengths.
TRICKY = "aAiIİıßſǅΣςᾳ\u0345é\u0301\u0316\u0307\u0327\u0334\u0651\u05bc\u05c1שׁ'’ʼŉ´.,_-#＃@09٣²½Ⅷ①ﬁﷺ"
TRICKY += "\u200b\u200d\u00ad\ufe0f\u034f"
TRICKY += "東京らーかがハﾊﾞ\uff9f\u3099한가\u1100\u1161\u11a8ㅋㅠ\u09c7\u09be\u0bc6\u0bbeกำ\u0e49ལ\u0f73\u0f71ក្\u17b4"
TRICKY += "😀🏽1\u20e3\x00\x7f\u0080\u07ff\u0800\uffff\U00010000\U0001ffff\U00020000\U000e0101\n\u3000 "
ORDINARY = "abcXYZ019 '#.,_-!\t\x00"
texts = (
    st.text()
    | st.text(alphabet=TRICKY)
    | st.text(alphabet=ORDINARY)
    | st.text(alphabet=st.characters(codec="ascii"))
    | st.lists(
        st.sampled_from(["it's", "3.14", "#tag", "Über", "naïve", "Straße", "東京", "ラーメン", "Привет", "#"])
    ).map(" ".join)
)
HERE = np.array([[13.4, 52.5]])


def slow(
    given_texts: Sequence[Any], places: Any, lexicon: Lexicon, space: Space = earth
) -> tuple[MessageBatch, list[int], list[Rejected]]:
    """What the encoder must say: every row through `read_message`."""
    names = ("lon", "lat") if np.shape(places)[1] == 2 else ("west", "south", "east", "north")
    kept: dict[int, Message] = {}
    rejected: list[Rejected] = []
    for row, (text, sides) in enumerate(zip(given_texts, np.asarray(places, np.float64).tolist(), strict=True)):
        record = {"id": row, "text": text, **dict(zip(names, sides, strict=True))}
        try:
            kept[row] = read_message(record, space, analyzer(lexicon.analyzer))
        except NearcastError as error:
            rejected.append(Rejected(row, str(error)))
    return MessageBatch.from_values(list(kept.values()), lexicon, space=space), list(kept), rejected


def assert_same(found: Encoded, expected: tuple[MessageBatch, list[int], list[Rejected]]) -> None:
    (batch, rows, rejected), (wanted, wanted_rows, wanted_rejected) = found, expected
    assert rejected == wanted_rejected
    assert rows.tolist() == wanted_rows
    assert len(batch) == len(wanted)
    assert batch.order is not None
    assert wanted.order is not None
    for name in ("boxes", "term_from", "terms", "message"):
        assert_equal(getattr(batch, name), getattr(wanted, name), name)
    for name in ("word_from", "words", "positions"):
        assert_equal(getattr(batch.order, name), getattr(wanted.order, name), name)


def assert_equal(array: np.ndarray | None, wanted: np.ndarray | None, name: str) -> None:
    if array is None or wanted is None:
        assert array is wanted, name
        return
    assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape), name
    assert np.array_equal(array, wanted), (name, array, wanted)
    assert array.flags.c_contiguous
    assert array.flags.writeable


def knowing(given_texts: Sequence[str], name: str = "unicode", share: int = 2) -> Lexicon:
    """A lexicon with every `share`th word of the texts, so that there are unknown ones."""
    lexicon = Lexicon(name)
    for text in given_texts:
        lexicon.intern_all(analyzer(name).words(text)[::share])
    return lexicon


def check(given_texts: Sequence[str], lexicon: Lexicon | None = None) -> None:
    places = np.repeat(HERE, len(given_texts), axis=0)
    known = knowing(given_texts) if lexicon is None else lexicon
    assert_same(TextEncoder(known).encode(given_texts, places), slow(given_texts, places, known))


# -- words ------------------------------------------------------------------------------------------------


@given(st.lists(texts, max_size=4))
@example(["İ\u0334\u0307", "ᾳ\u0301", "²\u20e3", "1\u20e3"])
@example(["\u1100\u1161", "가\u11a8", "\u1100\u200d\u1161", "ㅋㅠ", "ㅋ ㅠ"])
@example(["\u09c7\u09be", "ক\u09be", "\u0bc6\u200b\u0bbe", "e\u0651\u0301", "é\u0651", "e\u0301\u0316"])
@example(["#東京ラーメン x", "##a", "a#b _#c", "#___", "#_a #'a", "rock'n'roll 5'10 a''b 3.14 1,000.5 1..2"])
@example(["ﷺ" * 50, "½ﬁŉ´", "a\x00b\x1fC", "___ _a __init__"])
def test_words_terms_and_positions_are_those_of_the_analyzer(given_texts: list[str]) -> None:
    check(given_texts)


def test_every_character_below_0x3100_among_letters_digits_and_signs() -> None:
    step = 7 if jit.PURE else 1
    check([f"a{c}b {c}{c}'x #{c}{c}1{c}.2 e{c}" for c in map(chr, range(0, 0x3100, step))])


@given(st.sampled_from(["english", "turkish", "french"]), st.lists(texts, max_size=3))
def test_analyzers_that_stem_are_served_row_by_row(name: str, given_texts: list[str]) -> None:
    check(given_texts, knowing(given_texts, name))


@given(st.lists(st.text(alphabet="ab", min_size=1, max_size=24), min_size=1))
def test_words_are_compared_to_their_last_byte(words: list[str]) -> None:
    lexicon = Lexicon()
    lexicon.intern_all(words[: len(words) // 2 + 1])
    check([" ".join(words), " ".join(word + "a" for word in words), " ".join(word[:-1] for word in words)], lexicon)


def test_words_that_all_meet_in_one_slot_are_told_apart() -> None:
    def slot(word: str) -> int:
        chunk_of, stirred = (getattr(f, "py_func", f) for f in (wordtable.chunk_of, wordtable.stirred))
        data = np.frombuffer(word.encode() + bytes(wordtable.CHUNK), np.uint8)
        hashed = 0
        for at in range(0, len(word), wordtable.CHUNK):
            hashed = stirred(hashed, chunk_of(data, at, len(word)))
        return int(hashed) & 127

    stems = ("w", "together", "togetherness")  # of one chunk, and of several that begin alike
    meeting = [word for stem in stems for i in range(3000) if slot(word := f"{stem}{i}") == 0]
    lexicon = Lexicon()
    lexicon.intern_all(meeting[:60:2])
    assert len(LexiconTable(lexicon).arrays.slots) <= 128
    check([" ".join(meeting[:60]), " ".join(meeting[60:])], lexicon)


def test_the_seed_changes_no_answer() -> None:
    given_texts = ["ramen and jazz", "Ramen, JAZZ & togetherness"]
    lexicon = knowing(given_texts)
    for seed in (1, -5, 2**40):
        found = TextEncoder(lexicon, seed=seed).encode(given_texts, np.zeros((2, 2)))
        assert_same(found, slow(given_texts, np.zeros((2, 2)), lexicon))


def test_the_lexicon_may_grow_between_calls() -> None:
    lexicon = Lexicon()
    growing = TextEncoder(lexicon)
    given_texts = [" ".join(f"w{i} weatherproof{i} Ünï{i}" for i in range(40)), "w7 \ud800", "w3"]
    places = np.zeros((3, 2))
    for i in range(0, 40, 3):
        lexicon.intern_all([f"w{i}", f"weatherproof{i}", f"ünï{i}", "half \ud800", "with space", "nul\0", "nul"])
        assert_same(growing.encode(given_texts, places), slow(given_texts, places, lexicon))


def test_texts_with_thousands_of_words_are_sorted() -> None:
    rng = np.random.default_rng(5)
    numbers = [rng.integers(0, 10**size, count) for size, count in ((1, 64), (1, 65), (3, 700), (6, 2000))]
    check([" ".join(map(str, run)) for run in numbers])


# -- room -------------------------------------------------------------------------------------------------


@given(st.lists(texts, max_size=4))
@example(["a b c d e f", "ﷺ" * 30, "#a#b #c", "\u0301 x e\u0301 y"])
def test_a_kernel_that_runs_out_of_room_goes_on(given_texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "BYTES_PER_WORD", 1_000_000)
        check(given_texts)


# -- rows -------------------------------------------------------------------------------------------------

ODD_VALUES: list[Any] = [
    "ramen",
    None,
    "",
    " \n\u3000",
    7,
    True,
    float("nan"),
    ["a"],
    "x\ud800y",
    "!!!",
    "😀",
    "\x1c",
    {},
]


def test_rows_that_are_no_text_are_rejected_with_the_reasons_of_read_message() -> None:
    lexicon = knowing(["ramen"])
    places = np.repeat(HERE, len(ODD_VALUES), axis=0)
    assert_same(from_texts(ODD_VALUES, places, lexicon), slow(ODD_VALUES, places, lexicon))


def test_a_bad_text_is_told_before_a_bad_place() -> None:
    given_texts, places = ["", "ok", "ok"], np.array([[999.0, 0.0], [0.0, 999.0], [np.nan, 0.0]])
    found = from_texts(given_texts, places, Lexicon())
    assert_same(found, slow(given_texts, places, Lexicon()))
    assert [r.reason.split(":")[0] for r in found[2]][::2] == ["text", "lon"]


def test_long_texts_are_counted_in_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_TEXT", 20)
    monkeypatch.setattr(encoder, "MAX_TEXT", 20)
    given_texts = ["a " * 10, "a " * 10 + "b", "é " * 10, "東" * 20, "東" * 21, "ok"]
    check(given_texts)
    assert [r.row for r in from_texts(given_texts, np.zeros((6, 2)), Lexicon())[2]] == [1, 4]


@given(st.lists(texts | st.none(), max_size=6), st.data())
def test_arrow_of_every_layout_says_what_lists_say(given_texts: list[str | None], data: st.DataObject) -> None:
    whole: list[str | None] = [
        "before",
        *(text and text.encode("utf-8", "ignore").decode() for text in given_texts),
        "x",
    ]
    lexicon = knowing([text for text in whole if text])
    kind = data.draw(st.sampled_from([pa.string(), pa.large_string(), pa.string_view(), "dictionary", "chunked"]))
    array = pa.array(whole, pa.string() if isinstance(kind, str) else kind)
    if kind == "dictionary":
        array = array.dictionary_encode()
    if kind == "chunked":
        array = pa.chunked_array([array[:1], array[1:]])
    first = data.draw(st.integers(0, len(whole)))
    places = np.zeros((len(whole) - first, 2))
    assert_same(from_texts(array[first:], places, lexicon), slow(whole[first:], places, lexicon))


def test_arrow_values_of_other_types_are_rejected() -> None:
    for values in ([1, None], [["a"], None], [None, None]):
        found = from_texts(pa.array(values), np.zeros((2, 2)), Lexicon())
        assert_same(found, slow(values, np.zeros((2, 2)), Lexicon()))


def test_bytes_are_utf8_or_rejected() -> None:
    good = ["ramen", "Straße", "東京"]
    bad = [
        b"caf\xe9",
        b"\xc3",
        b"\xc3A",
        b"\xe6\x9dAB",
        b"\xbf",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf5\x80\x80\x80",
        b"\xc3\xa9\xff",
        b"\xe0\x80\x80",
        b"\xf4\x90\x80\x80",
    ]
    lexicon = knowing(good)
    given_bytes = [text.encode() for text in good] + bad
    for column in (given_bytes, pa.array(given_bytes, pa.binary()), pa.array(given_bytes, pa.large_binary())):
        batch, rows, rejected = from_texts(column, np.zeros((len(given_bytes), 2)), lexicon)
        assert_same((batch, rows, []), slow(good, np.zeros((3, 2)), lexicon))
        assert [r.row for r in rejected] == list(range(3, len(given_bytes)))
        assert rejected[0].reason == "text: no UTF-8 at byte 4; Unicode text needed"
        assert {r.reason.split(" at ")[0] for r in rejected} == {"text: no UTF-8"}


def test_nothing_gives_an_empty_batch() -> None:
    for column in ([], pa.array([], pa.string())):
        for places in (np.zeros((0, 2)), np.zeros((0, 4)), []):
            batch, rows, rejected = from_texts(column, places, Lexicon())
            assert_same((batch, rows, rejected), slow([], np.zeros((0, 4)), Lexicon()))


def test_columns_that_do_not_fit_raise() -> None:
    for given_texts, places in (("text", [[0, 0]]), ([], [[0, 0]]), (["a"], [0, 0]), (["a"], [[0, 0, 0]]), (7, [])):
        with pytest.raises(ColumnsError, match=r"given; .* needed"):
            from_texts(given_texts, places, Lexicon())  # type: ignore[arg-type]


# -- places -----------------------------------------------------------------------------------------------

EDGES = [-180.0, -179.5, -91.0, -90.0, -0.0, 0.0, 1.5, 90.0, 91.0, 179.5, 180.0, 181.0, 1e308, np.inf, -np.inf, np.nan]
sides = st.sampled_from(EDGES) | st.floats(-180, 180)


@given(st.integers(2, 4).filter(lambda n: n != 3).flatmap(lambda n: st.lists(st.tuples(*[sides] * n), min_size=1)))
def test_places_on_earth_are_checked_and_written_as_one_by_one(places: list[tuple[float, ...]]) -> None:
    given_texts = ["ramen and jazz and ramen"] * len(places)
    lexicon = knowing(given_texts)
    assert_same(from_texts(given_texts, np.array(places), lexicon), slow(given_texts, places, lexicon))


@given(st.lists(st.tuples(*[st.sampled_from([*EDGES, -1e308, 5.0])] * 4), min_size=1))
def test_places_in_a_plane_are_checked_as_one_by_one(places: list[tuple[float, ...]]) -> None:
    given_texts = ["ramen"] * len(places)
    for space in (plane(0, 0, 90, 90), plane(1e308, -1, 1e308, 9)):
        found = from_texts(given_texts, np.array(places), knowing(given_texts), space=space)
        assert_same(found, slow(given_texts, places, knowing(given_texts), space))


def test_rejected_rows_and_places_of_several_boxes_in_one_batch() -> None:
    given_texts = ["a b", "", "e\u0301 b", "c", "a", "!!", "b"]
    places = np.array([[180.0, 10], [0, 0], [0, 90], [200, 0], [5, 5], [-180, -90], [6, 6]])
    lexicon = Lexicon()
    lexicon.intern_all(["b", "é", "a"])
    found = from_texts(given_texts, places, lexicon)
    assert_same(found, slow(given_texts, places, lexicon))
    assert found[0].terms_once().tolist() == [0, 2, 0, 1, 2, 0]


# -- new words -----------------------------------------------------------------------------------------


def learned(given_texts: Sequence[Any], lexicon: Lexicon) -> set[str]:
    before = {lexicon.word(term) for term in range(len(lexicon))}
    TextEncoder(lexicon).learn(TextColumn.of(given_texts))
    return {lexicon.word(term) for term in range(len(lexicon))} - before


@given(st.lists(texts | st.none(), min_size=1))
@example(["ﷺ" * 400 + " one #two", "longer " * 900])
def test_words_are_learned_as_the_analyzer_has_them(given_texts: list[str | None]) -> None:
    lexicon = knowing([text for text in given_texts if text is not None])
    known = {lexicon.word(term) for term in range(len(lexicon))}
    said = {text: set(analyzer().words(text)) - known for text in given_texts if text is not None}
    found = learned(given_texts, lexicon)
    assert found <= set().union(*said.values())
    plain = [words for text, words in said.items() if text.isascii()]
    assert found >= set().union(*plain)


def test_nothing_is_learned_where_words_are_stemmed() -> None:
    assert learned(["running late"], Lexicon("english")) == set()


# -- values -----------------------------------------------------------------------------------------------


def check_values(given_texts: Sequence[Any], places: Any, lexicon: Lexicon) -> None:
    """Checked messages become the same batch, and the analyzer is not asked on the way."""
    _, kept, _ = wanted = slow(given_texts, places, lexicon)
    sides = np.asarray(places, np.float64)[:, [0, 1, -2, -1]]
    posted = [message_of(given_texts[row], sides[row], lexicon.analyzer) for row in kept]
    batch = TextEncoder(lexicon).from_values(posted)
    assert_same((batch, np.array(kept, np.intp), []), (wanted[0], kept, []))


def message_of(text: str, sides: Sequence[float], analysis: str = "unicode") -> Message:
    record = {"id": 1, "text": text, **dict(zip(("west", "south", "east", "north"), map(float, sides), strict=True))}
    return read_message(record, earth, analyzer(analysis))


@given(st.lists(texts, min_size=encoder.FEW, max_size=8))
def test_checked_messages_give_the_same_batch(given_texts: list[str]) -> None:
    places = np.repeat(HERE, len(given_texts), axis=0)
    check_values(given_texts, places, knowing([text for text in given_texts if text.strip()]))


@pytest.mark.parametrize("analysis", ["unicode", "english"])
def test_messages_of_any_kind_give_the_same_batch(analysis: str) -> None:
    given_texts = ["Running a race", "東京 tower", "nothing", "a runner's shoes", "e\u0301", "last one, #running"]
    places = np.array([[180.0, 10], [0, 0], [0, 90], [5, 5], [-180, -90], [6, 6]])
    lexicon = knowing(given_texts, analysis, 1)
    check_values(given_texts, places, lexicon)
    posted = [message_of(text, [*place, *place], analysis) for text, place in zip(given_texts, places, strict=True)]
    posted.append(read_message({"id": 7, "terms": ["tower", "x"], "lon": 0, "lat": 0}, earth, analyzer(analysis)))
    expected = MessageBatch.from_values(posted, lexicon)
    everything = np.arange(len(posted))
    for some in (posted, posted[:1], []):
        found = TextEncoder(lexicon).from_values(some)
        expected = MessageBatch.from_values(some, lexicon)
        assert_same((found, everything[: len(some)], []), (expected, list(range(len(some))), []))


def test_kernels_read_texts_that_the_analyzer_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    posted = [message_of(f"word {n}", (0, 0, 0, 0)) for n in range(encoder.FEW)]
    lexicon = knowing(["word 1"], share=1)
    monkeypatch.setattr(type(analyzer("unicode")), "tokens", None)
    assert TextEncoder(lexicon).from_values(posted).terms_once().tolist() == [0, 0, 1, 0, 0, 0]


def test_what_a_message_says_without_its_text_counts() -> None:
    """A message made by hand may have other words than its text, or a text that nobody checked."""
    odd = [Message(n, (Token("other", 0),), point(0, 0), text="word") for n in range(encoder.FEW)]
    blank = [Message(n, TextTokens(" ", analyzer("unicode")), point(0, 0), text=" ") for n in range(encoder.FEW)]
    lexicon = Lexicon()
    lexicon.intern_all(["word", "other"])
    assert TextEncoder(lexicon).from_values(odd).terms.tolist() == [1] * encoder.FEW
    assert len(TextEncoder(lexicon).from_values(blank)) == encoder.FEW


def test_words_found_later_are_the_words() -> None:
    analysis = analyzer("unicode")
    later, now = TextTokens("Old #mill pond", analysis), tuple(analysis.tokens("Old #mill pond"))
    assert (later, tuple(later), len(later), later[1], later[1:]) == (now, now, len(now), now[1], now[1:])
    assert later == TextTokens("old #MILL pond", analysis)
    assert later != TextTokens("old pond", analysis)
    assert (hash(later), repr(later), pickle.loads(pickle.dumps(later))) == (hash(now), repr(now), now)


# -- real texts -------------------------------------------------------------------------------------------


@pytest.mark.real_data
@pytest.mark.skipif(not (DATA / "dirty_sample.jsonl").exists(), reason="the shared sample of odd rows is not here")
def test_every_dirty_value_is_read_or_rejected_alike() -> None:
    lines = [json.loads(line) for line in (DATA / "dirty_sample.jsonl").read_text("utf-8").split("\n") if line]
    values = [value for line in lines for value in (*(line.get("record") or {}).values(), line.get("raw"))]
    short = [value for value in values if not isinstance(value, str) or len(value) < (2000 if jit.PURE else 200_000)]
    lexicon = knowing([value for value in short if isinstance(value, str)][::3])
    places = np.repeat(HERE, len(short), axis=0)
    assert_same(from_texts(short, places, lexicon), slow(short, places, lexicon))
    check_values(short, places, lexicon)


@pytest.mark.real_data
@pytest.mark.parametrize(
    "name", ["airbnb_titles", "airbnb_descriptions", "gn_gnis", "gn_world_cities", "noaa_storm_events", "poi_us"]
)
def test_real_texts_are_read_alike(name: str) -> None:
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    table = pq.ParquetFile(path).read_row_group(0).slice(0, ROWS)
    given_texts = table["text"].to_pylist()
    places = np.column_stack((table["lon"].to_numpy(), table["lat"].to_numpy()))
    lexicon = knowing(given_texts[::2])
    expected = slow(given_texts, places, lexicon)
    assert_same(from_texts(table["text"], places, lexicon), expected)
    check_values(given_texts, places, lexicon)
