"""Texts as one run of UTF-8, from lists and from Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.errors import ColumnsError, RowError

_LAYOUTS = {"string": pa.large_string(), "binary": pa.large_binary()}


@dataclass(frozen=True, slots=True, eq=False)
class TextColumn:
    """Row i is data[text_from[i]:text_from[i + 1]]; a row that is no text is odd and empty."""

    data: NDArray[np.uint8]  # [*]  UTF-8, if the giver of bytes was right
    text_from: NDArray[np.int64]  # [n + 1]
    odd: NDArray[np.bool_]  # [n]
    given: Sequence[Any] | None = None  # the values of a list; from Arrow, odd rows are missing

    def __len__(self) -> int:
        return len(self.odd)

    def value(self, row: int) -> Any:
        """The row as a record would have it: bytes become text, or raise RowError if they are not UTF-8."""
        value = self._came(row)
        if not isinstance(value, bytes):
            return value
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise RowError(f"text: no UTF-8 at byte {error.start + 1}; Unicode text needed") from None

    def readable(self, row: int) -> str:
        """The row up to its first fault, whatever comes after it."""
        return self._bytes(row).decode("utf-8", "replace")

    def _came(self, row: int) -> Any:
        if self.given is not None:
            return self.given[row]
        return None if self.odd[row] else self._bytes(row)

    def _bytes(self, row: int) -> bytes:
        return self.data[self.text_from[row] : self.text_from[row + 1]].tobytes()

    @classmethod
    def of(cls, texts: Any) -> TextColumn:
        """From a sequence of str or of UTF-8 as bytes, or from an Arrow array of either."""
        if isinstance(texts, pa.Array | pa.ChunkedArray):
            return _from_arrow(texts)
        if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
            raise ColumnsError(f"texts: {type(texts).__name__} given; a sequence of texts or an Arrow array needed")
        if {str}.issuperset(map(type, texts)):
            with suppress(UnicodeEncodeError):
                return _joined(list(map(str.encode, texts)), texts)
        return _one_by_one(texts)


def _joined(encoded: Sequence[bytes], given: Sequence[Any]) -> TextColumn:
    data = np.frombuffer(b"".join(encoded), np.uint8).copy()  # kernels are compiled for arrays that can be written to
    text_from = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
    return TextColumn(data, text_from, np.zeros(len(encoded), np.bool_), given)


def _one_by_one(values: Sequence[Any]) -> TextColumn:
    """What is neither text nor bytes is odd, and so is text with half a surrogate pair."""
    encoded = [_encoded(value) for value in values]
    column = _joined([data or b"" for data in encoded], values)
    return replace(column, odd=np.array([data is None for data in encoded], np.bool_))


def _encoded(value: Any) -> bytes | None:
    if isinstance(value, bytes):
        return value
    try:
        return value.encode() if isinstance(value, str) else None
    except UnicodeEncodeError:
        return None


def _from_arrow(texts: pa.Array | pa.ChunkedArray) -> TextColumn:
    """Texts or bytes of any Arrow layout; values of other types are odd rows."""
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    wanted = _LAYOUTS.get(str(texts.type).removeprefix("large_").removesuffix("_view"))
    if wanted is None or not len(texts):
        return _one_by_one(texts.to_pylist())
    array = texts.cast(wanted)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    _, starts, values = array.buffers()
    text_from = np.frombuffer(starts, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(values or b"", np.uint8)[text_from[0] : text_from[-1]].copy()
    odd = np.array(array.is_null().to_numpy(zero_copy_only=False), np.bool_)
    return TextColumn(data, text_from - text_from[0], odd)
