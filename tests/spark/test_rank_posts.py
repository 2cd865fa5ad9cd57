"""Rows of messages become, by kernels, the columns that they become one by one."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.errors import NearcastError
from nearcast.geo import earth
from nearcast.idf import Idf
from nearcast.lexicon import Lexicon
from nearcast.model import Message
from nearcast.ranking import PostColumns, Window
from nearcast.ranking.encoder import PostEncoder
from nearcast.records import read_message
from nearcast.spark.ranks.ids import id_array, looked_up
from nearcast.spark.ranks.plan import RankSettings
from nearcast.spark.ranks.posts import NO_TIME, PostReader, Posts
from nearcast.spark.storage import IdKind
from nearcast.text import analyzer
from tests.spark.records import XS, YS

WORDS = ["jazz", "Jazz", "#rain", "rain", "東京", "e\u0301te", "été", "it's", "3.14", "new", "!!", "x_y", "__"]
SCHEMA = pa.schema(
    [
        *(("id", pa.int64()), ("text", pa.string())),
        *((name, pa.float64()) for name in ("lon", "lat", "west", "south", "east", "north", "ts")),
    ]
)


def _records(chance: Random, n: int) -> list[dict[str, Any]]:
    """Some have no text, no place or no time, some are boxes, and words come that were never there."""
    return [_record(chance, number) for number in range(n)]


def _record(chance: Random, number: int) -> dict[str, Any]:
    said = chance.choices([*WORDS, f"w{number}"], k=chance.randint(1, 9))
    record: dict[str, Any] = {"id": number, "text": " ".join(said), "ts": float(chance.randint(0, 9))}
    if chance.random() < 0.2:
        record |= {"west": chance.choice(XS), "south": 1.0, "east": chance.choice(XS), "north": chance.choice(YS)}
    else:
        record |= {"lon": chance.choice(XS), "lat": chance.choice(YS)}
    for name in ("id", "text", "lon", "ts"):
        if chance.random() < 0.05:
            record.pop(name, None)
    if chance.random() < 0.1:
        record["text"] = chance.choice(["", "   ", "!!"])
    return record


def _one_by_one(records: list[dict[str, Any]], settings: RankSettings) -> tuple[list[Message], list[str]]:
    messages, reasons = [], []
    for record in records:
        try:
            message = read_message(record, settings.space, analyzer(settings.analyzer))
        except NearcastError as error:
            reasons.append(str(error))
            continue
        if settings.window.seconds is not None and message.ts is None:
            reasons.append(NO_TIME)
        else:
            messages.append(message)
    return messages, reasons


def _by_word(columns: PostColumns, lexicon: Lexicon) -> list[dict[str, float]]:
    """Terms may have other numbers, for words are met in another order."""
    words = [lexicon.word(term) for term in columns.terms.tolist()]
    pairs = list(zip(words, columns.weights.tolist(), strict=True))
    return [dict(pairs[a:b]) for a, b in zip(columns.term_from[:-1], columns.term_from[1:], strict=True)]


def _check(found: Posts, lexicon: Lexicon, messages: list[Message], idf: Idf) -> None:
    known = Lexicon(lexicon.analyzer)
    known.intern_all(WORDS[:3])
    wanted = PostColumns.from_values(messages, known, idf)
    assert found.columns.boxes.tolist() == wanted.boxes.tolist()
    np.testing.assert_array_equal(found.columns.ts, wanted.ts)
    for one, other in zip(_by_word(found.columns, lexicon), _by_word(wanted, known), strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    assert all(np.diff(found.columns.terms[a:b]).min(initial=1) > 0 for a, b in _runs(found.columns))
    assert found.ids.to_pylist() == [message.id for message in messages]


def _runs(columns: PostColumns) -> list[tuple[int, int]]:
    return list(zip(columns.term_from[:-1].tolist(), columns.term_from[1:].tolist(), strict=True))


def _reader(settings: RankSettings) -> tuple[PostReader, Lexicon, Idf]:
    lexicon, idf = Lexicon(settings.analyzer), Idf(np.array([0.5, 2.0, 3.0]), 4.0)
    lexicon.intern_all(WORDS[:3])
    return PostReader(settings, lexicon, idf), lexicon, idf


@pytest.mark.parametrize("window", [Window(count=9), Window(seconds=9.0)])
@pytest.mark.parametrize("analysis", ["unicode", "english"])
@pytest.mark.parametrize("seed", range(3))
def test_columns_are_read_as_one_by_one(window: Window, analysis: str, seed: int) -> None:
    settings = RankSettings(window, analyzer=analysis, message_ids="long")
    reader, lexicon, idf = _reader(settings)
    records = _records(Random(seed), 60)
    batches = [pa.RecordBatch.from_pylist(part, SCHEMA) for part in (records[:25], [], records[25:26], records[26:])]
    found, bad = reader.read(batches)
    messages, reasons = _one_by_one(records, settings)
    assert min(len(messages), 10 * len(reasons)) > 30
    _check(found, lexicon, messages, idf)
    assert [row.reason for row in bad] == reasons


def test_lines_are_read_as_one_by_one() -> None:
    settings = RankSettings(Window(seconds=9.0))
    reader, lexicon, idf = _reader(settings)
    records = [{**record, "id": str(record["id"])} for record in _records(Random(5), 40) if "id" in record]
    lines = [json.dumps(record) for record in records]
    lines[7:7] = ["", "  "]
    found, bad = reader.read([pa.RecordBatch.from_pydict({"value": [*lines, "{", None]})])
    messages, reasons = _one_by_one(records, settings)
    _check(found, lexicon, messages, idf)
    assert [row.reason for row in bad[:-2]] == reasons
    assert bad[0].source in lines


def test_no_rows_are_no_messages() -> None:
    for kind in ("long", "string"):
        reader, _, _ = _reader(RankSettings(Window(count=1), message_ids=kind))
        found, bad = reader.read([])
        assert (len(found), bad, len(found.ids)) == (0, [], 0)


def test_known_words_are_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time, kernels read everything: the words of the first are in the lexicon."""
    lexicon = Lexicon()
    encoder = PostEncoder(lexicon, Idf(), earth)
    texts = ["jazz tonight, jazz!", "rain", "#rain tonight"]
    places, ts = np.zeros((3, 2)), np.full(3, np.nan)
    first, _, _ = encoder.encode(texts, places, ts)
    monkeypatch.setattr(type(analyzer("unicode")), "tokens", None)
    again, kept, rejected = encoder.encode(texts, places, ts)
    assert (kept.tolist(), rejected) == ([0, 1, 2], [])
    assert _by_word(again, lexicon) == _by_word(first, lexicon)
    assert _by_word(again, lexicon)[0] == pytest.approx({"jazz": 2 / 5**0.5, "tonight": 1 / 5**0.5})


@pytest.mark.parametrize("kind", ["long", "string"])
def test_ids_are_found_by_number_in_any_order(kind: IdKind) -> None:
    parts = [id_array(ids, kind) for ids in ([7, 8, 9], [], [1, 2], [5])]
    numbers = np.array([12, -1, 10, 14, 15, 10, 13, -1, 11])
    found = looked_up(parts, np.array([10, 13, 13, 15]), numbers)
    wanted = [9, None, 7, 2, 5, 7, 1, None, 8]
    assert found.to_pylist() == [one if one is None or kind == "long" else str(one) for one in wanted]
    assert looked_up(parts, np.array([10, 13, 13, 15]), np.array([-1, -1])).to_pylist() == [None, None]
    assert looked_up([], np.zeros(0, np.int64), np.zeros(0, np.int64)).to_pylist() == []
