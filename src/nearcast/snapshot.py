"""A snapshot: a folder of flat files that a process maps instead of reading.

`header.json` names format, version, arrays (dtype, shape, checksum) and what the owner wants to remember;
each array is one `.npy` file. Written beside the target and renamed, so that a reader sees all or nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import SnapshotError
from nearcast.mapped import map_file

FORMAT = "nearcast-snapshot"
VERSION = 1
HEADER = "header.json"


def save(path: Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Write the arrays and the (JSON) meta values; replaces an earlier snapshot at this path."""
    path = Path(path)
    if path.exists() and not (path / HEADER).is_file():
        raise SnapshotError(f"{path} exists and is not a snapshot; it is left as it is")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        _write(beside, arrays, meta)
        _put_in_place(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write(folder: Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    described = {}
    for number, (name, array) in enumerate(arrays.items()):
        file = f"{number:03d}.npy"
        flat = np.ascontiguousarray(array)
        np.save(folder / file, flat, allow_pickle=False)
        described[name] = {
            "file": file,
            "dtype": flat.dtype.str,
            "shape": list(flat.shape),
            "crc32": _checksum(flat),
        }
    header = {"format": FORMAT, "version": VERSION, "meta": dict(meta), "arrays": described}
    body = json.dumps(header, sort_keys=True)
    (folder / HEADER).write_text(json.dumps({"crc32": zlib.crc32(body.encode()), "header": body}))


def _put_in_place(folder: Path, path: Path) -> None:
    if path.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        os.rename(path, old / "was")
        os.rename(folder, path)
        shutil.rmtree(old)
    else:
        os.rename(folder, path)


def load(path: Path, *, check: bool = False) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays, mapped copy-on-write (writable, never written back, with room to grow), and the meta values.

    Sizes, types and the header's checksum are always verified; `check` also reads every byte once and
    compares the arrays' checksums.
    """
    header = _header(Path(path))
    arrays = {name: _mapped(Path(path), name, told) for name, told in header["arrays"].items()}
    if check:
        for name, told in header["arrays"].items():
            if _checksum(arrays[name]) != told["crc32"]:
                raise SnapshotError(f"{path}: array {name} is damaged (checksum differs)")
    return arrays, header["meta"]


def meta_of(path: Path) -> dict[str, Any]:
    """The meta values alone: nothing is mapped."""
    return dict(_header(Path(path))["meta"])


def _header(path: Path) -> dict[str, Any]:
    try:
        outer = json.loads((path / HEADER).read_text())
        body = outer["header"]
        intact = zlib.crc32(body.encode()) == outer["crc32"]
        header = json.loads(body)
        named = header["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SnapshotError(f"{path} is not a nearcast snapshot ({error or type(error).__name__})") from None
    if not (intact and named):
        raise SnapshotError(f"{path}: the header is damaged or foreign")
    if header["version"] != VERSION:
        raise SnapshotError(f"{path}: format version {header['version']} found, {VERSION} can be read")
    return dict(header)


def _mapped(path: Path, name: str, told: Mapping[str, Any]) -> NDArray[Any]:
    file = path / told["file"]
    try:
        empty = 0 in told["shape"]  # nothing to map
        array = np.load(file, allow_pickle=False) if empty else map_file(file)
    except (OSError, ValueError) as error:
        raise SnapshotError(f"{path}: array {name} is missing or truncated ({error})") from None
    if array.dtype.str != told["dtype"] or list(array.shape) != told["shape"]:
        raise SnapshotError(f"{path}: array {name} is {array.dtype}{list(array.shape)}, the header says otherwise")
    return np.asarray(array)


def _checksum(array: NDArray[Any]) -> int:
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return zlib.crc32(flat)
