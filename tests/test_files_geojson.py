"""GeoJSON: features as messages and subscriptions, in pieces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nearcast.files import SUBSCRIPTIONS, FileError, Row, geojson
from nearcast.geo import Circle, box, earth, from_geojson, to_geojson
from nearcast.records import read_message, read_subscription
from nearcast.text import analyzer
from tests.rows_read import GOOD, POINT, TRIANGLE, collection, feature, read

BOX = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]]}


def places(found: list[Row]) -> list[Any]:
    words = analyzer("unicode")
    return [read_message(row.record, earth, words).place for row in found if row.record]


def test_features_are_messages(tmp_path: Path) -> None:
    across = to_geojson(box(170, 0, -170, 1))
    line = {
        "type": "Feature",
        "id": 4,
        "bbox": [1, 1, 1, 2],
        "geometry": None,
        "properties": {"box": True, "text": "a"},
    }
    found = read(
        tmp_path / "m.geojson",
        collection(
            feature(POINT, id="a", text="ramen", lon=99, radius_m=5, extra=[1]),
            feature(BOX, id=2, text="ramen", ts=5),
            feature(across, id=3, text="ramen"),
            line,
            feature(None, id=5, text="a", lon=1, lat=2),
            bbox=[0, 0, 1, 1],
            name="x",
        ),
    )
    assert [row.line for row in found] == [1, 2, 3, 4, 5]
    assert [row.record["id"] for row in found if row.record] == ["a", 2, 3, 4, 5]
    assert places(found) == [
        box(1.5, 2.5, 1.5, 2.5),
        box(0, 0, 2, 1),
        box(170, 0, -170, 1),
        box(1, 1, 1, 2),
        box(1, 2, 1, 2),
    ]


def test_features_are_subscriptions(tmp_path: Path) -> None:
    found = read(
        tmp_path / "s.json",
        collection(
            {**feature(POINT, expression="ramen", radius_m=500, lon=0), "id": 7},
            feature(TRIANGLE, id="b", expression="ramen", west=3),
            feature({"type": "MultiPolygon", "coordinates": [BOX["coordinates"]]}, id="c", terms=["x"]),
        ),
        SUBSCRIPTIONS,
    )
    read_in = [read_subscription(row.record or {}, earth, analyzer("unicode")) for row in found]
    assert [wish.id for wish in read_in] == [7, "b", "c"]
    assert read_in[0].region == Circle(1.5, 2.5, 500.0)
    assert read_in[1].region == from_geojson(TRIANGLE)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (feature(TRIANGLE, id=1, text="a"), "a Polygon that is a box along the axes"),
        (feature({"type": "Polygon", "coordinates": [*BOX["coordinates"], [[0.5, 0.5], [1, 0.5], [1, 0.6]]]}), "a box"),
        (feature({"type": "MultiPolygon", "coordinates": [BOX["coordinates"]]}), "a box along the axes"),
        (feature({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}), "got type 'LineString'"),
        (feature({"type": "Point", "coordinates": ["1", 2]}), "longitude must be a number"),
        (feature(7), "GeoJSON region is an object"),
        ({"type": "Feature", "geometry": POINT, "properties": [1]}, "properties: an object or null needed"),
        (POINT, "no Feature"),
        (5, "no Feature"),
        (None, "no Feature"),
    ],
)
def test_a_bad_feature_has_a_reason_and_the_next_is_served(tmp_path: Path, bad: Any, reason: str) -> None:
    found = read(tmp_path / "m.geojson", collection(bad, feature(POINT, id=1, text="a")))
    assert reason in found[0].reason
    assert found[0].source == bad
    assert places(found) == [box(1.5, 2.5, 1.5, 2.5)]


def test_features_that_are_json_by_form_only(tmp_path: Path) -> None:
    good = json.dumps(feature(POINT, id=1, text="a"))
    bad = [
        good.replace("1.5", "NaN"),
        good.replace('"id": 1', '"id": 1, "id": 2'),
        good.replace('"a"', '"\\ud800"'),
    ]
    content = '{"type": "FeatureCollection", "features": [' + ",\n".join([*bad, "BYTES", good]) + "]}"
    content_bytes = content.encode().replace(b"BYTES", good.replace('"a"', '"?"').encode().replace(b"?", b"\xff"))
    found = read(tmp_path / "m.geojson", b"\xef\xbb\xbf" + content_bytes)
    assert [row.reason.split(" (")[0] for row in found] == [
        "not JSON: NaN is no number there",
        "the key 'id' is given twice",
        "half a surrogate pair",
        "bytes that are not UTF-8",
        "",
    ]


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_features_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(geojson, "CHUNK", chunk)
    features = [feature(POINT, id=n, text="ramen " * n) for n in range(20)]
    content = json.dumps({"features": features, "n": 12345, "type": "FeatureCollection"}, indent=1) + "\n\n"
    assert [row.source for row in read(tmp_path / "m.geojson", content)] == features


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "{ expected (at character 1)"),
        ("[]", "{ expected"),
        ("{}", "type None given; a GeoJSON FeatureCollection with features needed"),
        (json.dumps(feature(POINT)), "type 'Feature' given"),
        ('{"type": "FeatureCollection"}', "with features needed"),
        ('{"type": "FeatureCollection", "features": {}}', "[ expected (at character 43)"),
        ('{"type": "FeatureCollection", "features": []} x', "the end expected"),
        ('{"type": "FeatureCollection" "features": []}', ", expected"),
        ('{"type": "FeatureCollection", "features": [1 2]}', ", expected"),
        ('{"type": "FeatureCollection", "features": [{"a": }]}', "Expecting value"),
        ('{"type": "FeatureCollection", "features": [{"type"', "not GeoJSON"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        (GOOD + "\n" + GOOD, "the end expected"),
    ],
)
def test_what_is_no_geojson(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(FileError) as caught:
        read(tmp_path / "m.geojson", content)
    assert reason in str(caught.value)


def test_a_feature_has_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geojson, "MAX_LINE", 1000)
    monkeypatch.setattr(geojson, "CHUNK", 100)
    with pytest.raises(FileError, match="does not end within 1,000 characters"):
        read(tmp_path / "m.geojson", collection(feature(POINT, text="x" * 5000)))
