"""Words to terms and back, frequencies, and the way to a file and back."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import ColumnsError
from nearcast.lexicon import UNKNOWN, Lexicon

word_lists = st.lists(st.text(max_size=3, alphabet=st.characters(exclude_categories=["Cs"])), max_size=40)


def counted(words: list[str], rows: list[list[str]]) -> Lexicon:
    lexicon = Lexicon("english")
    lexicon.intern_all(words)
    for row in rows:
        lexicon.count(np.array(lexicon.intern_all(sorted(set(row))), np.int32), messages=1)
    return lexicon


@given(word_lists)
def test_terms_are_dense_in_order_of_first_sight(words: list[str]) -> None:
    lexicon = Lexicon()
    terms = lexicon.intern_all(words)
    distinct = list(dict.fromkeys(words))
    assert [lexicon.word(term) for term in terms] == words
    assert [lexicon.intern(word) for word in distinct] == list(range(len(distinct)))
    assert len(lexicon) == len(distinct)
    assert lexicon.terms(words) == terms == [lexicon.term(word) for word in words]
    assert all(word in lexicon for word in words)


def test_unknown_words_have_no_term_and_are_not_added() -> None:
    lexicon = Lexicon()
    lexicon.intern("ramen")
    assert lexicon.term("sushi") == UNKNOWN == -1
    assert lexicon.terms(["sushi", "ramen"]) == [-1, 0]
    assert "sushi" not in lexicon
    assert len(lexicon) == 1


@given(word_lists, st.lists(word_lists, max_size=8))
def test_frequencies_count_messages(words: list[str], rows: list[list[str]]) -> None:
    lexicon = counted(words, rows)
    frequencies = lexicon.frequencies
    assert frequencies.dtype == np.int64
    assert len(frequencies) == len(lexicon)
    assert lexicon.messages == len(rows)
    for term, frequency in enumerate(frequencies):
        assert frequency == sum(lexicon.word(term) in row for row in rows)


def test_a_term_listed_twice_counts_twice() -> None:
    lexicon = Lexicon()
    lexicon.intern_all("ab")
    lexicon.count(np.array([1, 0, 1], np.int32), messages=2)
    assert lexicon.frequencies.tolist() == [1, 2]


@pytest.mark.parametrize("terms", [[-1], [2], [0, 7]])
def test_terms_outside_are_refused_and_change_nothing(terms: list[int]) -> None:
    lexicon = Lexicon()
    lexicon.intern_all("ab")
    with pytest.raises(ColumnsError, match="0 to 1 are in the lexicon"):
        lexicon.count(np.array(terms, np.int32), messages=1)
    assert (lexicon.messages, lexicon.frequencies.tolist()) == (0, [0, 0])


def test_negative_messages_and_terms_are_refused() -> None:
    with pytest.raises(ColumnsError, match="-1 messages"):
        Lexicon().count(np.array([], np.int32), messages=-1)
    with pytest.raises(ColumnsError, match="term -1 is not"):
        Lexicon().word(-1)
    with pytest.raises(ColumnsError, match="terms 3 to 3"):
        Lexicon().idf(np.array([3], np.int32))


def test_idf_falls_with_frequency_and_stays_above_zero() -> None:
    lexicon = counted(["never"], [["all", "some"], ["all"], ["all", "some"], ["all"]])
    idf = lexicon.idf()
    by_word = {lexicon.word(term): idf[term] for term in range(len(lexicon))}
    assert by_word["all"] == pytest.approx(math.log(2))
    assert by_word["some"] == pytest.approx(math.log(3))
    assert by_word["never"] == pytest.approx(math.log(5))
    terms = np.array([UNKNOWN, lexicon.term("some")], np.int32)
    assert lexicon.idf(terms).tolist() == [by_word["never"], by_word["some"]]
    assert lexicon.idf(np.array([], np.int32)).dtype == np.float64


def test_with_nothing_counted_all_words_weigh_the_same() -> None:
    lexicon = Lexicon()
    lexicon.intern_all("abc")
    assert lexicon.idf().tolist() == [math.log(2)] * 3


@given(word_lists, st.lists(word_lists, max_size=8))
def test_arrow_and_back_is_equal(words: list[str], rows: list[list[str]]) -> None:
    lexicon = counted(words, rows)
    table = lexicon.to_arrow()
    assert table.schema.names == ["word", "frequency"]
    again = Lexicon.from_arrow(table)
    assert again == lexicon
    assert again.to_arrow().equals(table, check_metadata=True)
    again.count(np.array([again.intern("new")], np.int32), messages=1)
    assert again != lexicon


def test_equality_looks_at_everything() -> None:
    lexicon = counted(["a"], [["b"]])
    assert lexicon == counted(["a"], [["b"]]) == pickle.loads(pickle.dumps(lexicon))
    assert lexicon != counted(["a"], [["a"]])
    assert lexicon != counted(["a"], [["b"], []])
    assert lexicon != counted(["c"], [["b"]])
    assert Lexicon("english") != Lexicon("german")
    assert lexicon != "a lexicon"
    assert repr(lexicon) == "Lexicon('english': 2 words, 1 messages)"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"word": ["a"], "frequency": [1]}), "metadata"),
        (Lexicon().to_arrow().drop_columns(["word"]), "column 'word'"),
        (Lexicon().to_arrow().drop_columns(["frequency"]), "column 'frequency'"),
        (pa.table({"word": ["a", "a"], "frequency": [1, 1]}), "2 rows hold only 1 words"),
        (pa.table({"word": ["a", None], "frequency": [1, 1]}), "1 nulls"),
    ],
)
def test_a_table_that_is_no_lexicon_is_refused(table: pa.Table, message: str) -> None:
    if message != "metadata":
        table = table.replace_schema_metadata(Lexicon().to_arrow().schema.metadata)
    with pytest.raises(ColumnsError, match=message):
        Lexicon.from_arrow(table)
