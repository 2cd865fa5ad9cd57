"""Reader of GeoJSON (RFC 7946): the features of a FeatureCollection, one by one.

Properties give the record's fields, the feature's own `id` stands in where they have none, and the geometry
is the region or the place: whatever place the properties name beside it is not read.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from nearcast.errors import NearcastError, RowError
from nearcast.files.rows import MAX_LINE, MESSAGES, FileError, Row, RowReader
from nearcast.files.strict import StrictDecoder, skip_space
from nearcast.geo import Box, MultiPolygon, Polygon, Region, from_geojson

CHUNK = 1 << 16  # characters read at a time

_PLACE_FIELDS = ("region", "west", "south", "east", "north", "lon", "lat", "radius_m")


class GeoJsonRows(RowReader):
    """Features numbered from 1. The file is one JSON value, so that a break in it ends the reading."""

    def _rows(self) -> Iterator[Row]:
        text = io.TextIOWrapper(self.handle, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            for number, (feature, problem) in enumerate(_features(_Stream(text, self.file)), start=1):
                self.position = self.handle.tell()
                yield self._row(number, feature, problem)
        finally:
            text.detach()  # the handle is closed by who opened it

    def _row(self, number: int, feature: Any, problem: str) -> Row:
        if problem:
            return Row(number, None, problem)
        try:
            return Row(number, self._record(feature), source=feature)
        except NearcastError as error:
            return Row(number, None, str(error), feature)

    def _record(self, feature: Any) -> dict[str, Any]:
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            raise RowError("no Feature; the features of a FeatureCollection needed")
        properties = feature.get("properties") or {}
        if not isinstance(properties, dict):
            raise RowError("properties: an object or null needed")
        record = {"id": feature.get("id")} | {k: v for k, v in properties.items() if v is not None}
        if feature.get("geometry") is None and properties.get("box") is not True:
            return record
        record = {name: value for name, value in record.items() if name not in _PLACE_FIELDS}
        return record | (_place(feature) if self.role is MESSAGES else {"region": feature})


def _place(feature: Mapping[str, Any]) -> dict[str, float]:
    box = _as_box(from_geojson(feature.get("geometry") or feature))
    return {"west": box.west, "south": box.south, "east": box.east, "north": box.north}


def _as_box(region: Region) -> Box:
    """A message's place: a point, a box, or the two boxes of one that crosses the 180th meridian."""
    if isinstance(region, Box):
        return region
    if isinstance(region, Polygon) and _is_box(region):
        return Box(*region.geometry.bounds)
    if isinstance(region, MultiPolygon) and len(region.polygons) == 2 and all(map(_is_box, region.polygons)):
        west, east = sorted((Box(*p.geometry.bounds) for p in region.polygons), key=lambda b: -b.west)
        if (west.east, east.west) == (180.0, -180.0) and (west.south, west.north) == (east.south, east.north):
            return Box(west.west, west.south, east.east, east.north)
    raise RowError("the place of a message is a Point, or a Polygon that is a box along the axes")


def _is_box(polygon: Polygon) -> bool:
    west, south, east, north = polygon.geometry.bounds
    corners = {(west, south), (east, south), (east, north), (west, north)}
    return not polygon.holes and len(polygon.exterior) == 5 and set(polygon.exterior) == corners


def _features(stream: _Stream) -> Iterator[tuple[Any, str]]:
    """Each feature, with what is wrong with it as JSON."""
    kind, found = None, False
    stream.expect("{")
    while stream.symbol() != "}":
        name, _ = stream.value()
        stream.expect(":")
        if name == "features" and not found:
            found = True
            yield from stream.items()
        else:
            value, _ = stream.value()
            kind = value if name == "type" else kind
        if stream.symbol() != "}":
            stream.expect(",")
    stream.expect("}")
    stream.expect("")
    if kind != "FeatureCollection" or not found:
        raise FileError(f"{stream.file}: type {kind!r} given; a GeoJSON FeatureCollection with features needed")


class _Stream:
    """A JSON text of any length, of which only the value being read is held."""

    def __init__(self, handle: io.TextIOWrapper, file: str) -> None:
        self.file = file
        self._handle = handle
        self._decoder = StrictDecoder()
        self._text = ""
        self._at = 0
        self._passed = 0  # characters before _text
        self._ended = False

    def items(self) -> Iterator[tuple[Any, str]]:
        """The items of an array."""
        self.expect("[")
        while self.symbol() != "]":
            yield self.value()
            if self.symbol() != "]":
                self.expect(",")
        self.expect("]")

    def symbol(self) -> str:
        """The next character that is not white space, not taken; nothing at the end."""
        while True:
            self._at = skip_space(self._text, self._at)
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read()

    def expect(self, symbol: str) -> None:
        if self.symbol() != symbol:
            raise self._broken(f"{symbol or 'the end'} expected")
        self._at += len(symbol)

    def value(self) -> tuple[Any, str]:
        """The next value, and what is wrong with it ("" for nothing)."""
        self.symbol()
        while True:
            try:
                value, end = self._decoder.raw(self._text, self._at)
                if end < len(self._text) or self._ended:  # a number may go on in the next piece
                    return self._taken(value, end)
            except json.JSONDecodeError as error:
                if self._ended:
                    raise self._broken(error.msg) from None
            except RowError as error:
                raise self._broken(str(error)) from None
            if len(self._text) - self._at > MAX_LINE:
                raise self._broken(f"a value that does not end within {MAX_LINE:,} characters")
            self._read()

    def _taken(self, value: Any, end: int) -> tuple[Any, str]:
        written = self._text[self._at : end]
        self._at = end
        try:
            self._decoder.refuse(value, written)
        except RowError as error:
            return value, str(error)
        return value, ""

    def _read(self) -> None:
        """As much again as is being looked at, so that a long value is not parsed many times."""
        pending = self._text[self._at :]
        more = self._handle.read(max(CHUNK, len(pending)))
        self._passed += self._at
        self._text, self._at = pending + more, 0
        self._ended = not more

    def _broken(self, why: str) -> FileError:
        return FileError(f"{self.file}: not GeoJSON: {why} (at character {self._passed + self._at + 1})")
