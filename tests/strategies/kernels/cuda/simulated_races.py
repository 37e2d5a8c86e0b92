"""Run on the CUDA simulator by test_race_check: what the race checker finds, as JSON."""

from __future__ import annotations

import json
import sys

import numpy as np
from numba import cuda, float64

from strategies.kernels.cuda import cross as cuda_cross
from strategies.kernels.cuda import indicators as kernels
from strategies.kernels.cuda import scan as cuda_scan
from strategies.kernels.cuda import sweep as cuda_sweep
from strategies.kernels.cuda.launch import KERNELS, Kernel
from strategies.kernels.cuda.race_check import watching
from strategies.kernels.engines.lanes import Lanes, Prices, Signals, Terms, pack
from tests.strategies.kernels.cuda.simulated import carried, rows
from tests.strategies.market import walk as walked

SIZE = 8


@cuda.jit
def reverse(x, out):
    """Correct."""
    room = cuda.shared.array(SIZE, float64)
    i = cuda.threadIdx.x
    room[i] = x[i]
    cuda.syncthreads()
    out[i] = room[SIZE - 1 - i]


@cuda.jit
def reverse_without_barrier(x, out):
    """A thread reads what another may not have written yet."""
    room = cuda.shared.array(SIZE, float64)
    i = cuda.threadIdx.x
    room[i] = x[i]
    out[i] = room[SIZE - 1 - i]


@cuda.jit
def reverse_through_memory(x, out):
    """The same through device memory."""
    i = cuda.threadIdx.x
    out[i] = x[i]
    x[i] = out[SIZE - 1 - i]


@cuda.jit
def shift_down(x, out):
    """Thread 0 reads the last element: look-ahead."""
    i = cuda.threadIdx.x
    out[i] = x[i - 1]


@cuda.jit
def half_loaded(x, out):
    """Half the shared memory is never written."""
    room = cuda.shared.array(SIZE, float64)
    i = cuda.threadIdx.x
    if i < SIZE // 2:
        room[i] = x[i]
    cuda.syncthreads()
    out[i] = room[i]


@cuda.jit
def adds_to_garbage(x, out):
    """Reads an output that nobody has filled."""
    i = cuda.threadIdx.x
    out[i] += x[i]


@cuda.jit
def barrier_in_a_branch(x, out):
    """Half the block never comes to the barrier."""
    i = cuda.threadIdx.x
    if i < SIZE // 2:
        cuda.syncthreads()
    out[i] = x[i]


@cuda.jit
def barriers_apart(x, out):
    """Each half waits, but not where the other does."""
    i = cuda.threadIdx.x
    if i < SIZE // 2:
        out[i] = x[i]
        cuda.syncthreads()
    else:
        out[i] = -x[i]
        cuda.syncthreads()


@cuda.jit
def leaves_before_the_barrier(x, out):
    """The last thread returns early."""
    i = cuda.threadIdx.x
    out[i] = x[i]
    if i == SIZE - 1:
        return
    cuda.syncthreads()


@cuda.jit
def barrier_only_before_reading(x, out):
    """The second round writes what a slower thread still reads of the first."""
    room = cuda.shared.array(SIZE, float64)
    i = cuda.threadIdx.x
    for k in range(2):
        room[i] = x[i] + k
        cuda.syncthreads()
        out[i] = room[SIZE - 1 - i]


@cuda.jit
def two_share_a_cell(x, out):
    """Neighbours write one element."""
    room = cuda.shared.array(SIZE, float64)
    i = cuda.threadIdx.x
    room[i // 2] = x[i]
    cuda.syncthreads()
    out[i] = room[i // 2]


@cuda.jit
def one_too_far(x, out):
    """The last thread reads the padding."""
    room = cuda.shared.array(SIZE + 1, float64)
    i = cuda.threadIdx.x
    room[i] = x[i]
    cuda.syncthreads()
    out[i] = room[i + 1]


@cuda.jit
def copies_without_barrier(x, out):
    """The neighbour's part is read as a slice."""
    room = cuda.shared.array(SIZE, float64)
    i = cuda.threadIdx.x
    room[i] = x[i]
    out[i : i + 1] = room[SIZE - 1 - i : SIZE - i]


@cuda.jit
def copies_through_memory(x, out):
    """The same through device memory."""
    i = cuda.threadIdx.x
    out[i] = x[i]
    x[i : i + 1] = out[SIZE - 1 - i : SIZE - i]


@cuda.jit
def copies_within_shared_memory(x, out):
    """The same from one shared array into another."""
    room = cuda.shared.array(SIZE, float64)
    other = cuda.shared.array(SIZE, float64)
    i = cuda.threadIdx.x
    room[i] = x[i]
    other[i : i + 1] = room[SIZE - 1 - i : SIZE - i]
    out[i] = other[i]


@cuda.jit
def sums_without_barrier(x, out):
    """What the others write is summed."""
    room = cuda.shared.array(SIZE, float64)
    i = cuda.threadIdx.x
    room[i] = x[i]
    out[i] = room.sum()


@cuda.jit
def forgets_its_own(x, out):
    """Half a thread's own memory is never written."""
    own = cuda.local.array(2, float64)
    i = cuda.threadIdx.x
    own[0] = x[i]
    out[i] = own[0] + own[1]


@cuda.jit
def writes_its_input(x, out):
    """Correct."""
    i = cuda.threadIdx.x
    x[i] = out[i]


@cuda.jit
def all_write_one(x, out):
    """Blocks write the same element."""
    i = cuda.threadIdx.x
    out[i] = x[i] + cuda.blockIdx.x


@cuda.jit
def fills_a_row(x, out):
    """Correct: every thread fills a slice of its own."""
    i = cuda.threadIdx.x
    room = out[2 * i : 2 * i + 2]
    room[:] = x[i]


@cuda.jit
def rows_overlap(x, out):
    """Slices of neighbours share an element."""
    i = cuda.threadIdx.x
    out[2 * i : 2 * i + 3] = x[i]


def planted():
    """Kinds of findings in every kernel above."""
    made = [made for made in globals().values() if getattr(made, "py_func", None)]
    found = {}
    for kernel in made:
        if kernel is writes_its_input:
            continue
        with watching() as watch:
            x = cuda.to_device(np.arange(float(SIZE)))
            out = cuda.device_array(2 * SIZE + 1, np.float64)
            kernel[2 if kernel is all_write_one else 1, SIZE](x, out)
        found[kernel.py_func.__name__] = kinds(watch)
    return found


def kinds(watch):
    return sorted({finding.kind for finding in watch.findings()})


def filled():
    """Kinds of findings where a kernel reads what the host has filled, and what nobody has."""
    zeros = np.zeros(SIZE)
    found = {}
    for name, make, fill in (
        ("copied to", cuda.device_array, lambda out: out.copy_to_device(zeros)),
        ("assigned to", cuda.device_array, lambda out: out.__setitem__(slice(None), 0.0)),
        ("like another", lambda *_: cuda.device_array_like(zeros), lambda out: None),
    ):
        with watching() as watch:
            out = make(SIZE, np.float64)
            fill(out)
            writes_its_input[1, SIZE](cuda.to_device(zeros), out)
        found[name] = kinds(watch)
    with watching() as watch:
        for _ in range(9):  # memory that was written, is given back and is given out again
            gone = cuda.to_device(zeros)
            writes_its_input[1, SIZE](gone, cuda.to_device(zeros))
            del gone
            blank = cuda.device_array(SIZE, np.float64)
        writes_its_input[1, SIZE](cuda.to_device(zeros), blank)
    return found | {"given out again": kinds(watch)}


def ours():
    """What is found in the product's kernels: nothing, it is hoped; and which were watched."""
    bars, watched = walked(70, seed=2), set()
    launch = Kernel.launch

    def noted(kernel, *arguments):
        watched.add(kernel.name)
        launch(kernel, *arguments)

    Kernel.launch = noted
    prices = (bars.high, bars.low, bars.close)
    line, level = np.random.default_rng(1).normal(0.0, 1.0, (2, 2, cuda_cross.TILE + 64))
    rule = np.array([1])
    with watching() as watch:
        kernels.sma_table(bars.close, [1, 5, 90])
        kernels.ema_table(bars.close, [1, 5, 90])
        kernels.rsi_table(bars.close, [1, 5, 90])
        kernels.atr_table(*prices, [1, 5, 90])
        rows(bars, np.float64)
        carried(np.float64)
        cuda_cross.crossings(line, level, rule, rule)
        cuda_cross.crossings(line, np.zeros(1), rule, None)
        cuda_scan.ema(walked(cuda_scan.TILE + 20).close, 5)
        sweep(bars)
    return {
        "findings": [f"{finding.kind}: {finding.text}" for finding in watch.findings()],
        "watched": sorted(watched),
        "kernels": sorted(KERNELS),
        "accesses": len(watch.accesses),
    }


def sweep(bars, lanes=12):
    """A few lanes with every kind of exit, on two symbols."""
    rng, size = np.random.default_rng(3), bars.close.size
    prices = Prices(
        open=bars.open, high=bars.high, low=bars.low, close=bars.close, volume=bars.volume, first=3
    )
    bits = rng.random((2, size)) < 0.2
    signals, atr = Signals(entry=pack(bits), exit=pack(~bits)), rng.uniform(0.5, 3.0, (1, size))
    cuda_sweep.walk_symbols(
        (prices, prices),
        (signals, signals),
        (atr, atr),
        Lanes(
            signal=rng.integers(0, 2, lanes),
            atr=np.zeros(lanes, dtype=np.int64),
            stop=rng.choice([0.0, 1.0], lanes),
            target=rng.choice([0.0, 2.0], lanes),
            trail=rng.choice([0.0, 2.0], lanes),
            max_bars=rng.choice([0, 4], lanes),
        ),
        Terms(),
    )


if __name__ == "__main__":
    json.dump({"planted": planted(), "filled": filled(), "ours": ours()}, sys.stdout)
