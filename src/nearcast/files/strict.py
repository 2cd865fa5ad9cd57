"""JSON as its standard has it, where Python's own parser is more tolerant.

NaN and Infinity, a key given twice and half a surrogate pair are refused: each of them means something
different to different readers, so nobody can tell what the writer meant.
"""

from __future__ import annotations

import json
import re
from typing import Any

from nearcast.errors import RowError

NOT_UTF8 = "bytes that are not UTF-8"

_SPACE = re.compile(r"[ \t\r\n]*")
_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")  # as errors="surrogateescape" decodes what is not UTF-8
_encode = json.JSONEncoder(ensure_ascii=False).encode


class StrictDecoder:
    """Parses one value after the other, and remembers what is wrong with one that has the form of JSON."""

    def __init__(self) -> None:
        self._problem = ""
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object, parse_constant=self._constant)

    def whole(self, text: str) -> Any:
        """The one value of the text; RowError says what is wrong with it."""
        try:
            value, end = self.raw(text, 0)
        except json.JSONDecodeError as error:
            raise RowError(f"not JSON: {error.msg} (at character {error.pos + 1})") from None
        if skip_space(text, end) < len(text):
            raise RowError(f"not JSON: more data after the value (at character {end + 1})")
        self.refuse(value, text)
        return value

    def raw(self, text: str, at: int) -> tuple[Any, int]:
        """The value that starts at `at`, after white space, and where it ends; see `refuse`.

        JSONDecodeError where there is none or not all of it, RowError where Python cannot hold it.
        """
        self._problem = ""
        try:
            return self._decoder.raw_decode(text, skip_space(text, at))
        except json.JSONDecodeError:
            raise
        except RecursionError:
            raise RowError("not JSON that can be read: nested too deeply") from None
        except ValueError:  # Python's guard against integers of thousands of digits
            raise RowError("not JSON that can be read: an integer with too many digits") from None

    def refuse(self, value: Any, text: str) -> None:
        """RowError if the value, just parsed from this text, must not be used."""
        if self._problem:
            raise RowError(self._problem)
        if not text.isascii() and _ESCAPED_BYTE.search(text):
            raise RowError(NOT_UTF8)
        if "\\u" in text and _MAYBE_HALF.search(text):
            try:
                _encode(value).encode()
            except UnicodeEncodeError:
                raise RowError("half a surrogate pair (\\ud800 to \\udfff alone); Unicode text needed") from None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs) and not self._problem:
            names = [name for name, _ in pairs]
            twice = next(name for at, name in enumerate(names) if name in names[:at])
            self._problem = f"the key {twice[:40]!r} is given twice"
        return value

    def _constant(self, name: str) -> float:
        self._problem = self._problem or f"not JSON: {name} is no number there"
        return float(name)


def skip_space(text: str, at: int) -> int:
    if at >= len(text) or text[at] not in " \t\r\n":
        return at
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
