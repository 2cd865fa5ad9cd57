"""Files mapped with room behind them, so that what was loaded can grow without being copied."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOM_FROM = 1 << 18  # bytes: a smaller array is copied as quickly
RESERVED_ROWS = 1 << 27
MAP_NORESERVE, MAP_FIXED = 0x4000, 0x10  # Linux; the mmap module has no names for them


def zero_pages(n_bytes: int) -> mmap.mmap:
    """A range of addresses whose pages are zero and take memory when they are written."""
    return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)


def map_file(file: Path) -> NDArray[Any]:
    """The array of an .npy file, copy-on-write: pages that nobody writes to are shared by all processes.

    A large one lies at the start of a reserved range, so that `room_behind` can lengthen it in place.
    """
    plain = np.load(file, mmap_mode="c", allow_pickle=False)
    if plain.nbytes < ROOM_FROM or not plain.flags.c_contiguous:
        return np.asarray(plain)
    try:
        return _at_start_of_range(file, plain)
    except (OSError, ValueError, AttributeError):  # a system without such ranges
        return np.asarray(plain)


def _at_start_of_range(file: Path, plain: np.memmap[Any, Any]) -> NDArray[Any]:
    row = row_bytes(plain)
    n_bytes = file.stat().st_size
    pages = zero_pages(n_bytes + RESERVED_ROWS * row)
    address = np.frombuffer(pages, dtype=np.uint8).ctypes.data
    descriptor = os.open(file, os.O_RDONLY)
    try:
        _map_over(address, n_bytes, descriptor)
    finally:
        os.close(descriptor)
    items = (len(pages) - plain.offset) // row * row // plain.itemsize
    flat = np.frombuffer(pages, dtype=plain.dtype, count=items, offset=plain.offset)
    return flat[: plain.size].reshape(plain.shape)


def _map_over(address: int, n_bytes: int, descriptor: int) -> None:
    """Replace the first pages of a range, which stays the owner of their addresses, by those of a file."""
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    access = mmap.PROT_READ | mmap.PROT_WRITE
    if call(address, n_bytes, access, mmap.MAP_PRIVATE | MAP_FIXED, descriptor, 0) != address:
        raise OSError(ctypes.get_errno(), "a file could not be mapped into a reserved range")


def row_bytes(array: NDArray[Any]) -> int:
    return int(array.dtype.itemsize * math.prod(array.shape[1:]))


def room_behind(array: NDArray[Any], rows: int) -> NDArray[Any] | None:
    """The array with all rows that its reserved range has, if those are enough; zeros where nothing was written."""
    flat = array.base
    if not isinstance(flat, np.ndarray) or flat.ndim != 1 or flat.dtype != array.dtype:
        return None
    if not isinstance(_owner(flat), mmap.mmap) or flat.ctypes.data != array.ctypes.data:
        return None
    longer = flat.reshape(-1, *array.shape[1:])
    return longer if len(longer) >= rows else None


def _owner(flat: NDArray[Any]) -> Any:
    return flat.base.obj if isinstance(flat.base, memoryview) else flat.base
