"""Four or eight float64 side by side in a register, for compiled code on the CPU.

numba does not put a recurrence into vector instructions; these few operations do it by hand. Each
is an LLVM instruction on `<4 x double>` or `<8 x double>`, which LLVM maps to what the processor
has; arithmetic is lane by lane, so the numbers are those of as many scalar operations. Eight are
two groups of four: what moves lanes moves them within a group. `load`, `load8` and `store` do not
check bounds: the caller keeps all lanes inside the array.
"""

# ruff: noqa: ARG001 - numba asks for all of the arguments, and calls by position

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic, lower_builtin, register_model

from strategies.kernels.compiling import step
from strategies.kernels.runs import Array

cgutils, datamodel, types, typing = (  # what numba's own types are made of; it has no type hints
    cast(Any, import_module(f"numba.core.{name}"))
    for name in ("cgutils", "datamodel", "types", "typing")
)

GROUP = 4
INDEX = ir.IntType(32)
ALIGNMENT = 8  # bytes: an array may begin anywhere

Lanes = Any  # four or eight float64; numba's own types of them are `four` and `eight` below


class LanesType(types.Type):  # type: ignore[name-defined, misc]
    """numba's type of so many float64 in a register."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.vector = ir.VectorType(ir.DoubleType(), lanes)
        super().__init__(name=f"Lanes({lanes})")


four, eight = LanesType(GROUP), LanesType(2 * GROUP)


@register_model(LanesType)
class LanesModel(datamodel.PrimitiveModel):  # type: ignore[name-defined, misc]
    """Kept as one LLVM vector."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


def operation(typed: Callable[..., Any]) -> Any:
    """A function for compiled code whose LLVM instructions `typed` writes."""
    return intrinsic(typed)


def _shuffled(builder: Any, vector: Any, other: Any, lanes: Sequence[int]) -> Any:
    mask = ir.Constant(ir.VectorType(INDEX, len(lanes)), list(lanes))
    return builder.shuffle_vector(vector, other, mask)


def _address(target: Any, builder: Any, signature: Any, values: Any, lanes: LanesType) -> Any:
    data = target.make_array(signature.args[0])(target, builder, values[0]).data
    return builder.bitcast(builder.gep(data, [values[1]]), lanes.vector.as_pointer())


def _load(lanes: LanesType) -> Any:
    """The next bars of a contiguous float64 array from bar t on."""

    def typed(context: Any, x: Any, t: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
            address = _address(target, builder, signature, values, lanes)
            return builder.load(address, align=ALIGNMENT, typ=lanes.vector)

        return lanes(x, types.intp), generate

    return operation(typed)


load, load8 = _load(four), _load(eight)


@operation
def store(context: Any, x: Any, t: Any, value: Any) -> Any:
    """Write bars t, t + 1 .. of a contiguous float64 array."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(target, builder, signature, values, value)
        builder.store(values[2], address, align=ALIGNMENT)
        return target.get_dummy_value()

    return types.void(x, types.intp, value), generate


@operation
def pack(context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Four scalars as one vector."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = ir.Constant(four.vector, ir.Undefined)
        for place, value in enumerate(values):
            vector = builder.insert_element(vector, value, ir.Constant(INDEX, place))
        return vector

    return four(*[types.float64] * GROUP), generate


@operation
def pair(context: Any, first: Any, second: Any) -> Any:
    """Two groups of four as eight."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _shuffled(builder, values[0], values[1], range(2 * GROUP))

    return eight(four, four), generate


def _splat(lanes: LanesType) -> Any:
    """One scalar in every lane."""

    def typed(context: Any, value: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
            nothing = ir.Constant(lanes.vector, ir.Undefined)
            vector = builder.insert_element(nothing, values[0], ir.Constant(INDEX, 0))
            return _shuffled(builder, vector, nothing, [0] * lanes.lanes)

        return lanes(types.float64), generate

    return operation(typed)


splat, splat8 = _splat(four), _splat(eight)


@operation
def lane(context: Any, vector: Any, k: Any) -> Any:
    """Lane k as a scalar."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.extract_element(*values)

    return types.float64(vector, types.intp), generate


@operation
def width(context: Any, vector: Any) -> Any:
    """How many lanes there are."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        return target.get_constant(types.intp, vector.lanes)

    return types.intp(vector), generate


@operation
def after(context: Any, before: Any, vector: Any) -> Any:
    """Four lanes, every one a lane later; in front comes the newest of `before`."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _shuffled(builder, values[0], values[1], range(GROUP - 1, 2 * GROUP - 1))

    return four(four, four), generate


@operation
def join(context: Any, first: Any, second: Any) -> Any:
    """Eight lanes: the first group of one, the second group of the other."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = (*range(GROUP), *range(3 * GROUP, 4 * GROUP))
        return _shuffled(builder, values[0], values[1], lanes)

    return eight(eight, eight), generate


def _shuffle(within: tuple[int, int, int, int]) -> Any:
    """An operation that puts lane within[k] of every group into its lane k; 4 stands for a zero."""

    def typed(context: Any, vector: Any) -> Any:
        zeros = ir.Constant(vector.vector, [0.0] * vector.lanes)
        lanes = [
            vector.lanes if k == GROUP else group + k
            for group in range(0, vector.lanes, GROUP)
            for k in within
        ]

        def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
            return _shuffled(builder, values[0], zeros, lanes)

        return vector(vector), generate

    return operation(typed)


later1 = _shuffle((4, 0, 1, 2))  # one lane later, 0 before the first
later2 = _shuffle((4, 4, 0, 1))
held1 = _shuffle((0, 0, 1, 2))  # one lane later, the first held
held2 = _shuffle((0, 1, 0, 1))  # two lanes later, the first two held
newest = _shuffle((3, 3, 3, 3))
flip = _shuffle((3, 2, 1, 0))


def _spread(k: int) -> Any:
    """Lane k of eight in every lane."""

    def typed(context: Any, vector: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
            return _shuffled(builder, values[0], values[0], [k] * eight.lanes)

        return eight(eight), generate

    return operation(typed)


newest_of_first, newest_of_second = _spread(GROUP - 1), _spread(2 * GROUP - 1)


def _arithmetic(symbol: Callable[[Any, Any], Any], instruction: str) -> None:
    """Teach numba what the operator means between two vectors."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        return getattr(builder, instruction)(*values)

    cases = {"cases": [typing.signature(lanes, lanes, lanes) for lanes in (four, eight)]}
    template = type(f"Lanes_{instruction}", (typing.templates.ConcreteTemplate,), cases)
    typing.templates.infer_global(symbol)(template)
    for lanes in (four, eight):
        cast(Any, lower_builtin)(symbol, lanes, lanes)(generate)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_symbol, _instruction)


@operation
def choose(context: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """Lane by lane `yes` where a > b, else `no`."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        a, b, yes, no = values
        return builder.select(builder.fcmp_ordered(">", a, b), yes, no)

    return a(a, a, a, a), generate


@operation
def all_above(context: Any, a: Any, b: Any) -> Any:
    """Whether a > b in every lane."""

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        bits = ir.IntType(a.lanes)
        found = builder.bitcast(builder.fcmp_ordered(">", *values), bits)
        return builder.icmp_unsigned("==", found, ir.Constant(bits, 2**a.lanes - 1))

    return types.boolean(a, a), generate


def _function(name: str) -> Any:
    """A one-operand LLVM intrinsic on every lane."""

    def typed(context: Any, vector: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = ir.FunctionType(vector.vector, [vector.vector])
            full = f"llvm.{name}.v{vector.lanes}f64"
            found = cgutils.get_or_insert_function(builder.module, kind, full)
            return builder.call(found, values)

        return vector(vector), generate

    return operation(typed)


absolute, root = _function("fabs"), _function("sqrt")


@step
def fetch(x: Any, t: int) -> Lanes:
    """x[t : t + 4], with 0 where the array has ended."""
    if t + 4 <= x.size:
        return load(x, t)
    return pack(
        x[t] if t < x.size else 0.0,
        x[t + 1] if t + 1 < x.size else 0.0,
        x[t + 2] if t + 2 < x.size else 0.0,
        x[t + 3] if t + 3 < x.size else 0.0,
    )


@step
def fetch8(x: Any, t: int) -> Lanes:
    """x[t : t + 8], with 0 where the array has ended."""
    return pair(fetch(x, t), fetch(x, t + 4))


@step
def put(x: Any, t: int, vector: Lanes) -> None:
    """Write bars t, t + 1 .., as far as the array goes."""
    if t + width(vector) <= x.size:
        store(x, t, vector)
    else:
        for k in range(x.size - t):
            x[t + k] = lane(vector, k)


@step
def running(x: Lanes) -> Lanes:
    """Running sums within every group of four."""
    sums = x + later1(x)
    return sums + later2(sums)


@step
def is_finite(vector: Lanes) -> bool:
    """Whether every lane is finite: neither NaN nor infinite."""
    return bool(_is_finite(vector))


@operation
def _is_finite(context: Any, vector: Any) -> Any:

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        bits, zeros = ir.IntType(vector.lanes), ir.Constant(vector.vector, [0.0] * vector.lanes)
        nothing = builder.fmul(values[0], zeros)  # 0, or NaN
        found = builder.bitcast(builder.fcmp_ordered("==", nothing, zeros), bits)
        return builder.icmp_unsigned("==", found, ir.Constant(bits, 2**vector.lanes - 1))

    return types.boolean(vector), generate


@step
def sound(x: Array) -> bool:
    """Whether every bar is finite."""
    greatest = np.finfo(np.float64).max
    bad = False
    for t in range(x.size):
        bad |= not abs(x[t]) <= greatest
    return not bad
