"""Bits of 64 bars at a time: compares of whole words, crossings, and the search for the next bit.

Bit k of word w is bar 64 × w + k. Rows are [*, T padded to a multiple of 64 with NaN] float64,
C-contiguous: NaN compares false, so that padding and warm-up need no branches. A word compare reads
64 bars without a check of its own; the padding is what makes that safe.
"""

# ruff: noqa: ARG001, PLR0917 - instructions have the signature that numba asks for

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.options import DefaultOptions
from numba.extending import intrinsic

from strategies.kernels.engines.lanes import BITS, Words
from strategies.kernels.runs import Array

F = TypeVar("F", bound=Callable[..., object])

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
ZERO = np.uint64(0)

_I1, _I64 = ir.IntType(1), ir.IntType(64)
_BARS = ir.VectorType(ir.DoubleType(), BITS)
_KEYS = ir.VectorType(ir.IntType(16), BITS)


def compiled(function: F) -> F:
    """`function` compiled on first call, kept on disk, dividing as NumPy does, without the GIL."""
    return cast(F, numba.njit(function, cache=True, error_model="numpy", nogil=True))


# Counting references to the arrays that pass through an inlined function costs more than many a
# lane, and is idle: the caller holds them. Only speed is lost where numba has no such switch.
_UNCOUNTED = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def inlined(function: F) -> F:
    """As `compiled`, for a part of a hot loop: made part of its caller; may not make arrays."""
    options: Any = {"cache": True, "error_model": "numpy", "nogil": True, **_UNCOUNTED}
    return cast(F, numba.njit(function, forceinline=True, **options))


def instruction(function: Callable[..., Any]) -> Any:
    """A function that compiled code calls as if it were one of the machine's instructions."""
    return intrinsic(function)


def _word_of(
    context: Any, builder: Any, kind: Any, array: Any, row: Any, bar: Any, word: Any = _BARS
) -> Any:
    """Load bars bar..bar+63 of a row as one vector."""
    view = context.make_array(kind)(context, builder, array)
    size = kind.dtype.bitwidth // 8
    start = builder.mul(row, builder.extract_value(view.strides, 0))
    offset = builder.add(start, builder.mul(bar, ir.Constant(_I64, size)))
    address = builder.add(builder.ptrtoint(view.data, _I64), offset)
    return builder.load(builder.inttoptr(address, word.as_pointer()), align=size, typ=word)


@instruction
def keys64(typing: Any, keys: Any, i: Any, j: Any, bar: Any) -> Any:
    """Bits of bar..bar+63 where keys[i] > keys[j], and those where they are equal; keys uint16."""
    pair = types.UniTuple(types.uint64, 2)  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left = _word_of(context, builder, sig.args[0], args[0], args[1], args[3], _KEYS)
        right = _word_of(context, builder, sig.args[0], args[0], args[2], args[3], _KEYS)
        above = builder.bitcast(builder.icmp_unsigned(">", left, right), _I64)
        equal = builder.bitcast(builder.icmp_unsigned("==", left, right), _I64)
        return context.make_tuple(builder, pair, (above, equal))

    return pair(keys, types.int64, types.int64, types.int64), generate


def _rows_compare(operator: str) -> Any:
    def compare(typing: Any, a: Any, i: Any, b: Any, j: Any, bar: Any) -> Any:
        signature = types.uint64(a, types.int64, b, types.int64, types.int64)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            left = _word_of(context, builder, sig.args[0], args[0], args[1], args[4])
            right = _word_of(context, builder, sig.args[2], args[2], args[3], args[4])
            return builder.bitcast(builder.fcmp_ordered(operator, left, right), _I64)

        return signature, generate

    return instruction(compare)


def _level_compare(operator: str) -> Any:
    def compare(typing: Any, a: Any, i: Any, bar: Any, level: Any) -> Any:
        signature = types.uint64(a, types.int64, types.int64, types.float64)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            left = _word_of(context, builder, sig.args[0], args[0], args[1], args[2])
            one = builder.insert_element(
                ir.Constant(_BARS, ir.Undefined), args[3], ir.Constant(ir.IntType(32), 0)
            )
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), BITS), [0] * BITS)
            right = builder.shuffle_vector(one, ir.Constant(_BARS, ir.Undefined), lanes)
            return builder.bitcast(builder.fcmp_ordered(operator, left, right), _I64)

        return signature, generate

    return instruction(compare)


# x(a, i, b, j, bar): bit k set where a[i, bar + k] compares so with b[j, bar + k]; NaN never
gt64: Any = _rows_compare(">")
lt64: Any = _rows_compare("<")
eq64: Any = _rows_compare("==")
# x(a, i, bar, level): bit k set where a[i, bar + k] compares so with the level; NaN never
gt64_level: Any = _level_compare(">")
lt64_level: Any = _level_compare("<")
ge64_level: Any = _level_compare(">=")
le64_level: Any = _level_compare("<=")


@instruction
def cttz(typing: Any, word: Any) -> Any:
    """Zeros below the lowest set bit of a uint64, as int64; 64 for none."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(_I1, 0))

    return types.int64(types.uint64), generate


@instruction
def clz(typing: Any, word: Any) -> Any:
    """Zeros above the highest set bit of a uint64, as int64; 64 for none."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(_I1, 0))

    return types.int64(types.uint64), generate


@instruction
def ones(typing: Any, word: Any) -> Any:
    """Set bits of a uint64, as int64."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@instruction
def take(typing: Any, counter: Any) -> Any:
    """counter[0]++ of an int64 [1] that several threads share; the value before, each one once."""
    signature = types.int64(counter)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        return builder.atomic_rmw("add", view.data, ir.Constant(_I64, 1), "seq_cst")

    return signature, generate


@compiled
def next_bit(rows: Words, row: int, bar: int, last: int) -> int:
    """First set bit of a row at or after `bar`; `last` when there is none before it."""
    if bar >= last:
        return last
    at = bar >> 6
    word = rows[row, at] & (ALL << np.uint64(bar & 63))
    stop = (last - 1) >> 6
    while word == ZERO:
        at += 1
        if at > stop:
            return last
        word = rows[row, at]
    found: int = min((at << 6) + cttz(word), last)
    return found


@inlined
def seek(rows: Words, row: int, words: int, bar: int, last: int) -> int:
    """As `next_bit` without a branch to mispredict, of rows that carry their summary.

    rows  [R, words + summary]: after the words of bits, bit w says that word w has any
    """
    at = min(bar, last) >> 6
    group = at >> 6
    i = np.uint64(row)  # an index that cannot be negative needs no look from the end
    here = rows[i, np.uint64(at)] & (ALL << np.uint64(bar & 63))
    later = rows[i, np.uint64(words + group)] & ((ALL << np.uint64(at & 63)) << ONE)
    while later == ZERO and words + group + 1 < rows.shape[1]:  # more than 4,096 bars
        group += 1
        later = rows[i, np.uint64(words + group)]
    then = min((group << 6) + cttz(later), words - 1)
    there = rows[i, np.uint64(then)] if later != ZERO else ZERO
    found: int = (at << 6) + cttz(here) if here != ZERO else (then << 6) + cttz(there)
    return min(found, last)


@inlined
def summarise(rows: Words, row: int, words: int) -> None:
    """Write the summary that `seek` reads after the words of a row."""
    for group in range(rows.shape[1] - words):
        bits = ZERO
        for w in range(group << 6, min((group + 1) << 6, words)):
            if rows[row, w] != ZERO:
                bits |= ONE << np.uint64(w & 63)
        rows[row, words + group] = bits


@compiled
def cross_rows(
    line: Array, i: int, level: Array, j: int, words: int, up: Words, down: Words, row: int
) -> None:
    """Write where line[i] crosses level[j], upwards and downwards, as `words` words into a row.

    up    above now and not above before; down the mirror; a tie is neither, as in
          `strategies.indicators.crossing`; a bar without a value, or after one, never crosses
    """
    above = below = sure = ZERO
    for w in range(words):
        bar = w << 6
        over, under = gt64(line, i, level, j, bar), lt64(line, i, level, j, bar)
        known = over | under
        if known != ALL:  # ties and missing values are rare: only they need the third compare
            known |= eq64(line, i, level, j, bar)
        before = (known << ONE) | sure
        up[row, w] = over & ~((over << ONE) | above) & before
        down[row, w] = under & ~((under << ONE) | below) & before
        above, below, sure = over >> np.uint64(63), under >> np.uint64(63), known >> np.uint64(63)


@compiled
def cross_level(
    line: Array, i: int, level: float, words: int, up: Words, down: Words, row: int
) -> None:
    """As `cross_rows`, against one number."""
    above = below = sure = ZERO
    for w in range(words):
        bar = w << 6
        over, under = gt64_level(line, i, bar, level), lt64_level(line, i, bar, level)
        known = ge64_level(line, i, bar, level) | under
        before = (known << ONE) | sure
        up[row, w] = over & ~((over << ONE) | above) & before
        down[row, w] = under & ~((under << ONE) | below) & before
        above, below, sure = over >> np.uint64(63), under >> np.uint64(63), known >> np.uint64(63)


def padded_bars(bars: int) -> int:
    """Bars of a padded row: the next multiple of 64."""
    return -(-bars // BITS) * BITS


def padded_rows(*rows: Array) -> Array:
    """Equally long rows as one table [R, T padded with NaN], which word compares may read.

    The first bar of every row lies on a multiple of 64 bytes, so that no load straddles two lines.
    """
    table = aligned((len(rows), padded_bars(rows[0].size)))
    for place, row in zip(table, rows, strict=True):
        place[: row.size] = row
        place[row.size :] = np.nan
    return table


def aligned(shape: tuple[int, ...]) -> Array:
    """An uninitialised float64 array that starts on a multiple of 64 bytes."""
    size = int(np.prod(shape))
    room = np.empty(size + 8)
    start = (-room.ctypes.data % 64) // 8
    return room[start : start + size].reshape(shape)
