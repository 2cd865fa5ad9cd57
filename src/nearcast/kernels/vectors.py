"""Eight lanes at a time: the two inner loops of `strata` as vector instructions, and what they mean in plain Python.

Plain LLVM for the comparison, one AVX2 instruction (a permutation) for picking lanes; `jit.VECTORS` says whether
the machine has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

from nearcast.kernels.jit import instructions

EIGHT = 8
_BIT, _BYTE, _NUMBER, _WORD = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_TABLE = "nearcast.lanes"


def _compare(words: Any, first: Any, message: Any, ones: Any, guard: Any) -> Any:
    """Bit i: every field of words[first + i] is <= the message's; bit 8 + i: every field is <."""
    bits = np.uint64(0)
    for i in range(EIGHT):
        apart = message - words[first + np.uint64(i)]
        bits |= np.uint64(apart & guard == guard) << np.uint64(i)
        bits |= np.uint64((apart - ones) & guard == guard) << np.uint64(EIGHT + i)
    return bits


def _compare_instructions(builder: Any, words: Any, first: Any, message: Any, ones: Any, guard: Any) -> Any:
    eight = ir.VectorType(_WORD, EIGHT)
    boxes = _load(builder, words, first, eight, 8)
    guards = _in_all(builder, guard, eight)
    apart = builder.sub(_in_all(builder, message, eight), boxes)
    strictly = builder.sub(apart, _in_all(builder, ones, eight))
    reached, certain = (
        builder.zext(builder.bitcast(builder.icmp_unsigned("==", builder.and_(x, guards), guards), _BYTE), _WORD)
        for x in (apart, strictly)
    )
    return builder.or_(reached, builder.shl(certain, _WORD(EIGHT)))


def _pick(source: Any, at: Any, bits: Any, target: Any, n: Any) -> Any:
    """source[at + i] for the set bits i (below 8) to target[n] and on; how many. Up to eight are written over."""
    count = np.uint64(0)
    for i in range(EIGHT):
        target[n + count] = source[at + np.uint64(i)]
        count += (bits >> np.uint64(i)) & np.uint64(1)
    return count


def _pick_instructions(builder: Any, source: Any, at: Any, bits: Any, target: Any, n: Any) -> Any:
    eight = ir.VectorType(_NUMBER, EIGHT)
    table = _table_of(builder.module)
    places = builder.load(builder.gep(table, [_WORD(0), bits], inbounds=True))
    places = builder.zext(builder.bitcast(places, ir.VectorType(_BYTE, EIGHT)), eight)
    permute = _declared(builder.module, "llvm.x86.avx2.permd", eight, [eight, eight])
    picked = builder.call(permute, [_load(builder, source, at, eight, 4), places])
    builder.store(picked, _address(builder, target, n, eight, 4), align=4)
    return builder.call(_declared(builder.module, "llvm.ctpop.i64", _WORD, [_WORD]), [bits])


def _in_all(builder: Any, value: Any, vector: Any) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, _NUMBER(0))
    zeros = ir.Constant(ir.VectorType(_NUMBER, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


def _address(builder: Any, array: Any, index: Any, vector: Any, size: int) -> Any:
    start = builder.ptrtoint(array, _WORD)
    return builder.inttoptr(builder.add(start, builder.mul(index, _WORD(size))), vector.as_pointer())


def _load(builder: Any, array: Any, index: Any, vector: Any, size: int) -> Any:
    return builder.load(_address(builder, array, index, vector, size), align=size)


def _declared(module: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(result, arguments), name)


def _table_of(module: Any) -> Any:
    """[256] words: which lanes the set bits of the index name, a byte each, the first one lowest."""
    known = module.globals.get(_TABLE)
    if known:
        return known
    rows = []
    for bits in range(1 << EIGHT):
        lanes = [i for i in range(EIGHT) if bits >> i & 1]
        rows.append(sum(lane << (8 * i) for i, lane in enumerate(lanes)))
    kind = ir.ArrayType(_WORD, len(rows))
    table = ir.GlobalVariable(module, kind, _TABLE)
    table.initializer = ir.Constant(kind, rows)
    table.linkage, table.global_constant = "internal", True
    return table


compare_eight: Any = instructions(_compare_instructions, _compare)
"""compare_eight(words, first, message, ones, guard): see `_compare`."""

pick_eight: Any = instructions(_pick_instructions, _pick)
"""pick_eight(source, at, bits, target, n): see `_pick`."""
