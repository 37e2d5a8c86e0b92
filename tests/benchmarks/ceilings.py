"""What one core of this machine can do at most: bytes read a second and arithmetic a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

SIZES = {"L1": 16, "L2": 240, "L3": 8_192, "DRAM": 262_144}  # KiB; each fits its level and no lower
LANES, CHAINS = (
    8,
    8,
)  # independent FMA: two units of a latency of four cycles are kept busy by eight
LEAST_SECONDS = 0.05  # of one timing; below, the clock and the scheduler are measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Roofs of one core, measured by small loops.

    read_gb_s      level of the memory -> GB read a second
    fma_gflop_s    64-bit fused multiply-adds, two operations each, from registers
    """

    read_gb_s: dict[str, float]
    fma_gflop_s: float


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _fma_chains(context, rounds, factor, summand):  # type: ignore[no-untyped-def]
    """CHAINS vectors, each multiplied and added to `rounds` times; nothing touches memory."""
    signature = types.float64(types.int64, types.float64, types.float64)

    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        vector, count, place = ir.VectorType(ir.DoubleType(), LANES), ir.IntType(64), ir.IntType(32)
        empty, spread = ir.Constant(vector, ir.Undefined), ir.VectorType(place, LANES)

        def everywhere(number):  # type: ignore[no-untyped-def]
            first = builder.insert_element(empty, number, ir.Constant(place, 0))
            return builder.shuffle_vector(first, empty, ir.Constant(spread, [0] * LANES))

        by, plus = everywhere(arguments[1]), everywhere(arguments[2])
        before = builder.block
        loop, after = (builder.append_basic_block(name) for name in ("loop", "after"))
        builder.branch(loop)
        builder.position_at_end(loop)
        done = builder.phi(count)
        done.add_incoming(ir.Constant(count, 0), before)
        states = [builder.phi(vector) for _ in range(CHAINS)]
        for number, state in enumerate(states):  # all different, so that none can be left out
            state.add_incoming(ir.Constant(vector, [float(number)] * LANES), before)
        fused = ("contract",)
        following = [
            builder.fadd(builder.fmul(state, by, flags=fused), plus, flags=fused)
            for state in states
        ]
        for state, value in zip(states, following, strict=True):
            state.add_incoming(value, loop)
        more = builder.add(done, ir.Constant(count, 1))
        done.add_incoming(more, loop)
        builder.cbranch(builder.icmp_signed("<", more, arguments[0]), loop, after)
        builder.position_at_end(after)
        total = following[0]
        for value in following[1:]:
            total = builder.fadd(total, value)
        return builder.extract_element(total, ir.Constant(place, 0))

    return signature, generate


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _multiply_add(rounds: int, factor: float, summand: float) -> float:
    return _fma_chains(rounds, factor, summand)  # type: ignore[no-any-return, call-arg]


@numba.njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def _read(x: NDArray[np.float64], rounds: int) -> float:
    total = 0.0
    for number in range(rounds):
        found = 0.0
        for i in range(x.size):
            found += x[i]
        total += found * number  # the rounds differ, so none can be left out
    return total


def best_seconds(work: Callable[[], object], *, repeats: int = 5, least: float = 0.0) -> float:
    """Fewest seconds of wall time of one call, over `repeats` timings of at least `least` seconds.

    Wall time, because the processor time of threads that work for a millisecond cannot be trusted.
    """
    began = time.perf_counter()
    work()
    calls = max(1, int(least / max(time.perf_counter() - began, 1e-9)))
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(calls):
            work()
        found.append((time.perf_counter() - began) / calls)
    return min(found)


def measure(*, seconds: float = LEAST_SECONDS) -> Ceilings:
    """The roofs of this machine; every timing takes about `seconds`."""
    reads = {}
    for level, kib in SIZES.items():
        x = np.ones(kib * 128)
        _read(x[:8], 1)
        once = best_seconds(lambda x=x: _read(x, 1), repeats=2)  # type: ignore[misc]
        rounds = max(1, int(seconds / once))
        took = best_seconds(lambda x=x, n=rounds: _read(x, n))  # type: ignore[misc]
        reads[level] = x.nbytes * rounds / took / 1e9
    _multiply_add(1, 0.999, 0.001)
    rounds = 1_000_000
    rounds = max(
        1, int(rounds * seconds / best_seconds(lambda: _multiply_add(rounds, 0.999, 1e-3)))
    )
    took = best_seconds(lambda: _multiply_add(rounds, 0.999, 1e-3))
    return Ceilings(read_gb_s=reads, fma_gflop_s=rounds * CHAINS * LANES * 2 / took / 1e9)
