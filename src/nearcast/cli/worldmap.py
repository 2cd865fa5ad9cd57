"""A world map of characters: where wishes are (dim dots) and where messages just matched (bright)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

WIDEST = 96
ASPECT = 4.4  # columns to a row: characters are about twice as high as wide, and the poles are cut off
NORTH, SOUTH = 72.0, -48.0  # cities are rare beyond
FADE = 0.75  # what is left of a flash after one step
MARKS = ((4.0, "●", "bold bright_yellow"), (1.0, "●", "yellow"), (0.2, "•", "dark_orange3"))


class WorldMap:
    """A grid over the inhabited latitudes; `flash` lights cells, every `fade` dims them."""

    def __init__(self, lon: Iterable[float], lat: Iterable[float], width: int) -> None:
        width = min(width, WIDEST)
        self._wishes = np.zeros((int(width / ASPECT), width), dtype=bool)
        self._glow = np.zeros(self._wishes.shape)
        self._wishes[self._cells(lon, lat)] = True

    def flash(self, lon: Iterable[float], lat: Iterable[float]) -> None:
        np.add.at(self._glow, self._cells(lon, lat), 1.0)

    def fade(self) -> None:
        self._glow *= FADE

    def text(self) -> Text:
        drawn = Text()
        for glow_row, wish_row in zip(self._glow, self._wishes, strict=True):
            for glow, wished in zip(glow_row.tolist(), wish_row.tolist(), strict=True):
                drawn.append(*_mark(glow, wished))
            drawn.append("\n")
        return drawn

    def _cells(self, lon: Iterable[float], lat: Iterable[float]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        height, width = self._glow.shape
        columns = ((np.fromiter(lon, float) + 180.0) / 360.0 * width).astype(np.intp)
        rows = ((NORTH - np.fromiter(lat, float)) / (NORTH - SOUTH) * height).astype(np.intp)
        return np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)


def _mark(glow: float, wished: bool) -> tuple[str, str]:
    for least, mark, style in MARKS:
        if glow >= least:
            return mark, style
    return ("·", "grey42") if wished else (" ", "")
