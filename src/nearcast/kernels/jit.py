"""The one place that meets Numba.

`kernel` marks an entry point (called from Python, cached on disk, exactly one signature in a whole run);
`primitive` marks a helper that only kernels call. Neither can allocate: scratch arrays are arguments, made by
the caller. That is a rule with a reason: without reference counting a scan over NamedTuples of arrays is ten
times faster (5.8 against 66 ns an entry). With NUMBA_DISABLE_JIT=1 both leave the function as it
is, so that the laws also run in plain Python.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import cgutils, config, types
from numba.cpython.unsafe import numbers
from numba.extending import intrinsic, register_jitable

F = TypeVar("F", bound=Callable[..., Any])

numba_config: Any = config  # its attributes are made at run time

PURE: bool = bool(numba_config.DISABLE_JIT)
"""True when kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""

njit: Any = numba.njit  # its stub lacks no_cpython_wrapper

_registry: list[Any] = []
_IMPORT = re.compile(r"nearcast\.kernels\.(\w+)")


def _sources(path: Path) -> list[Path]:
    """The kernel file and all kernel files that it imports, directly or not."""
    found, waiting = {path}, [path]
    while waiting:
        for name in _IMPORT.findall(waiting.pop().read_text()):
            other = path.parent / f"{name}.py"
            if other not in found and other.is_file():
                found.add(other)
                waiting.append(other)
    return sorted(found)


@cache
def cache_folder(path: Path) -> Path:
    """Where the compiled kernels of exactly this source are kept: under NEARCAST_CACHE, else the user's cache.

    Named by a digest of everything they depend on, because Numba's own cache looks only at one file's age.
    """
    parts = [numba.__version__, sys.version, str(numba_config.BOUNDSCHECK), str(numba_config.OPT)]
    parts += [os.environ.get(name, "1") for name in ("NEARCAST_PREFETCH", "NEARCAST_VECTORS")]
    digest = hashlib.sha256("|".join(parts).encode())
    for source in _sources(path):
        digest.update(source.name.encode() + source.read_bytes())
    return cache_root() / "kernels" / f"{path.stem}-{digest.hexdigest()[:16]}"


def cache_root() -> Path:
    base = os.environ.get("NEARCAST_CACHE") or os.environ.get("XDG_CACHE_HOME")
    root = (Path(base) if base else Path.home() / ".cache") / "nearcast"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to; better a cache that does not last than none
        root = Path(tempfile.gettempdir()) / f"nearcast-{getpass.getuser()}"
    return root


@contextmanager
def _cached_in(folder: Path) -> Iterator[None]:
    """Numba reads the folder when a function is decorated; other users of Numba keep their own."""
    before = numba_config.CACHE_DIR
    numba_config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba_config.CACHE_DIR = before


def kernel(function: Callable[..., Any]) -> Any:
    """An entry point: nogil so that threads scale, cached because compiling takes seconds.

    Not fastmath (isnan(nan) would be false and sums would depend on the machine), not parallel (it aborts
    when two threads enter, and kills forked children), no recursion (a cached self-recursive kernel
    crashes in the second process). Without the runtime that counts references (`_nrt`): np.empty and the
    like do not compile inside.
    """
    if PURE:
        return function
    with _cached_in(_folder_of(function)):
        compiled = njit(cache=True, nogil=True, _nrt=False)(function)
    _registry.append(compiled)
    return compiled


def primitive(function: Callable[..., Any]) -> Any:
    """A helper of kernels: no Python wrapper (a quarter of the compile time), inlined by the compiler."""
    if PURE:
        return function
    return njit(nogil=True, _nrt=False, no_cpython_wrapper=True)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A primitive that never becomes a call: for inner loops, where handing over arrays costs more than work."""
    if PURE:
        return function
    return njit(nogil=True, _nrt=False, no_cpython_wrapper=True, forceinline=True)(function)


def shared(function: F) -> F:
    """Plain Python for Python callers, compiled into the kernels that call it: one text, one meaning."""
    return function if PURE else register_jitable(function)


def _prefetch_row(_context: Any, array: Any, _index: Any) -> Any:
    """One instruction: the address of the row, to the first-level cache."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(array)(context, builder, arguments[0])
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        stride = builder.extract_value(made.strides, 0)
        address = builder.add(builder.ptrtoint(made.data, stride.type), builder.mul(index, stride))
        pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        wanted = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, wanted, "llvm.prefetch.p0")
        builder.call(call, [pointer, number(0), number(3), number(1)])  # for reading, keep, data
        return context.get_dummy_value()

    return types.void(array, _index), generate


def _count_trailing_zeros(value: Any) -> int:
    """Position of the lowest bit that is set; the value is not zero."""
    return (int(value) & -int(value)).bit_length() - 1


trailing_zeros: Any = _count_trailing_zeros if PURE else numbers.trailing_zeros


def _prefetch_nothing(array: Any, index: Any) -> None:
    """Plain Python has no use for it."""


PREFETCH: bool = os.environ.get("NEARCAST_PREFETCH", "1") != "0"
"""Ask for memory before it is needed. Changes no answer; NEARCAST_PREFETCH=0 is the portable path."""

prefetch: Any = _prefetch_nothing
if not PURE:
    prefetch = intrinsic(_prefetch_row) if PREFETCH else primitive(_prefetch_nothing)
"""prefetch(array, i): row i of the array will be read soon."""


def _has_vectors() -> bool:
    """256-bit integer instructions, in this machine and in what Numba compiles for."""
    as_it_is = not (numba_config.CPU_NAME or numba_config.CPU_FEATURES) and bool(numba_config.ENABLE_AVX)
    return as_it_is and bool(binding.get_host_cpu_features().get("avx2"))


VECTORS: bool = not PURE and os.environ.get("NEARCAST_VECTORS", "1") != "0" and _has_vectors()
"""Use instructions on eight numbers at once. Changes no answer; NEARCAST_VECTORS=0 is the portable path."""


def instructions(generate: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    """The function `plain` of five arguments, or, where the machine has them, the instructions of `generate`.

    generate(builder, a, b, c, d, e) gets arrays as addresses and numbers as 64 bits, and gives back 64 bits.
    """
    if PURE:
        return plain
    if not VECTORS:
        return inlined(plain)

    def typed(_context: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return types.uint64(a, b, c, d, e), partial(_lowered, generate)

    return intrinsic(typed)


def _lowered(generate: Callable[..., Any], context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    def plain_value(kind: Any, value: Any) -> Any:
        if isinstance(kind, types.Array):
            return context.make_array(kind)(context, builder, value).data
        return context.cast(builder, value, kind, types.uint64)

    return generate(builder, *map(plain_value, signature.args, arguments))


def signatures() -> dict[str, int]:
    """Kernel name to number of compiled signatures; more than one means an unsealed argument got in."""
    return {f"{k.__module__}.{k.__name__}": len(k.signatures) for k in _registry}


def is_cold() -> bool:
    """True when nothing of what was imported is compiled yet, so that the first call will take seconds."""
    folders = {_folder_of(k.py_func) for k in _registry}
    return not PURE and not any(any(folder.rglob("*.nbi")) for folder in folders)


def _folder_of(function: Callable[..., Any]) -> Path:
    return cache_folder(Path(function.__code__.co_filename))
