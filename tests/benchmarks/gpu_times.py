"""Times of CUDA kernels by device events, with what makes a time believable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from strategies.kernels import cpu
from strategies.kernels.cuda import scan as cuda_scan
from strategies.kernels.cuda import sweep as cuda_sweep
from strategies.kernels.cuda.compile_only import compile_kernel
from strategies.kernels.cuda.device import Device
from strategies.kernels.cuda.launch import Float, cuda, upload
from strategies.kernels.engines.lanes import METRICS
from strategies.kernels.spec import market
from tests.benchmarks import gpu_checks
from tests.benchmarks.gpu_checks import TERMS

REPEATS = 21
ROTATING = 3  # sets of inputs, so that no repeat finds its own in the cache
SCHEDULERS, LANES = 4, 32  # of a multiprocessor, and of a warp
LEAST_INSTRUCTIONS = 10  # a bar cannot cost fewer: loads, the state machine, the loop
SIZES = ((1, 10_000), (1, 200_000), (8, 125_000), (100, 10_000))  # symbols, sets
BARS, RULES = 1_260, 200
SCANNED = 10_000_000
SCAN_WINDOW = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Milliseconds of one launch by device events.

    again_ms  median of the same once more: how far two measurements of one thing are apart
    wall_ms   median by the host's clock, the launch included
    """

    median_ms: float
    quartile_ms: float
    three_quartile_ms: float
    again_ms: float
    wall_ms: float
    repeats: int


def timed(run: Callable[[int], None], poison: Callable[[], None]) -> Timing:
    """Times of `run(k)`, k going round the sets of inputs; `poison` spoils the results before."""
    for k in range(ROTATING):
        run(k)
    cuda.synchronize()
    first, again = _repeated(run, poison), _repeated(run, poison)
    device, wall = np.array(first).T
    low, middle, high = np.percentile(device, (25, 50, 75))
    return Timing(
        median_ms=float(middle),
        quartile_ms=float(low),
        three_quartile_ms=float(high),
        again_ms=float(np.median(np.array(again)[:, 0])),
        wall_ms=float(np.median(wall)),
        repeats=REPEATS,
    )


def _repeated(run: Callable[[int], None], poison: Callable[[], None]) -> list[tuple[float, float]]:
    found = []
    for repeat in range(REPEATS):
        poison()
        cuda.synchronize()
        begin, end = cuda.event(timing=True), cuda.event(timing=True)
        began = time.perf_counter()
        begin.record()
        run(repeat % ROTATING)
        end.record()
        cuda.synchronize()  # the whole device: work on another stream counts too
        wall = 1e3 * (time.perf_counter() - began)
        found.append((cuda.event_elapsed_time(begin, end), wall))
    return found


def issue_ceiling(device: Device) -> float:
    """Lane-instructions that the device can issue in a second."""
    return device.multiprocessors * SCHEDULERS * LANES * device.clock_khz * 1e3


def sweeps(device: Device, left: Callable[[], float]) -> Iterator[dict[str, Any]]:
    """The bar-by-bar sweep in several sizes, in float32 and float64; ends when time is up."""
    for dtype in (np.float32, np.float64):
        for symbols, sets in SIZES:
            if left() < 45.0:
                yield {"dtype": dtype.__name__, "symbols": symbols, "sets": sets, "skipped": "time"}
                continue
            yield sweep(device, dtype, symbols, sets)


def sweep(device: Device, dtype: Float, symbols: int, sets: int) -> dict[str, Any]:
    """One size: the kernel alone, the copies, and what share of the issue rate that is."""
    began = time.perf_counter()
    made = gpu_checks.symbols(symbols, BARS, RULES)
    prepared = time.perf_counter()
    markets = cuda_sweep.Markets.upload(*made, TERMS, dtype)
    chosen = [markets.upload_lanes(gpu_checks.lanes(sets, RULES, seed)) for seed in range(ROTATING)]
    cuda.synchronize()
    copied_in = time.perf_counter() - prepared
    out = cuda.device_array((len(METRICS), symbols * sets), dtype)
    spoiled = upload(np.full(out.shape, np.nan), dtype)
    timing = timed(lambda k: markets.launch(chosen[k], out), lambda: out.copy_to_device(spoiled))
    last = (REPEATS - 1) % ROTATING  # whose results are there now
    copying = time.perf_counter()
    result = out.copy_to_host()
    copied_out = time.perf_counter() - copying
    work = symbols * sets * (BARS - made[0][0].first)
    rate, ceiling = work / (timing.median_ms / 1e3), issue_ceiling(device)
    static = compile_kernel("walk_lanes", dtype.__name__, device.compute_capability)
    return {
        "dtype": dtype.__name__,
        "symbols": symbols,
        "sets": sets,
        "bars": BARS - made[0][0].first,
        "timing": asdict(timing),
        "set_bars_per_second": rate,
        "possible": rate * LEAST_INSTRUCTIONS <= ceiling,
        "issue_ceiling": ceiling,
        "instructions_of_the_loop": static.loop_instructions,
        "share_of_ceiling_if_all_were_issued": rate * static.loop_instructions / ceiling,
        "registers": static.registers,
        "occupancy": static.occupancy.fraction,
        "prepare_s": prepared - began,
        "copy_in_s": copied_in,
        "copy_out_s": copied_out,
        "still_right": still_right(markets, result, sets, last),
    }


def still_right(markets: cuda_sweep.Markets, result: Any, sets: int, seed: int) -> bool:
    """Whether the results of the last timed launch are those of the CPU, in a few sets."""
    part = gpu_checks.lanes(sets, RULES, seed).part(0, 500)
    expected, actual = gpu_checks.twin(markets, part), result[:, : len(part)]
    rows = [row for row, name in enumerate(METRICS) if name != "annual_return"]
    if markets.dtype is np.float64:
        return gpu_checks.relative(actual[rows], expected[rows]) <= gpu_checks.ROUNDING
    trades = METRICS.index("trades")
    return float((actual[trades] == expected[trades]).mean()) >= 0.99


def scan() -> dict[str, Any]:
    """The scan of one long series against the sequential mean on one core."""
    closes = [market(np.random.default_rng(seed), SCANNED)["close"] for seed in range(ROTATING)]
    alpha = 2.0 / (SCAN_WINDOW + 1.0)
    series = [upload(close[SCAN_WINDOW:], np.float64) for close in closes]
    seeds = [float(close[:SCAN_WINDOW].mean()) for close in closes]
    out = cuda.device_array(series[0].shape, np.float64)
    spoiled = upload(np.full(out.shape, np.nan), np.float64)
    timing = timed(
        lambda k: cuda_scan.scan_on_device(series[k], alpha, seeds[k], out),
        lambda: out.copy_to_device(spoiled),
    )
    last = (REPEATS - 1) % ROTATING
    cpu.ema(closes[last][:1_000], SCAN_WINDOW)
    began = time.perf_counter()
    expected = cpu.ema(closes[last], SCAN_WINDOW)
    on_cpu = time.perf_counter() - began
    error = gpu_checks.relative(out.copy_to_host(), expected[SCAN_WINDOW:])
    return {
        "bars": SCANNED,
        "timing": asdict(timing),
        "cpu_one_core_s": on_cpu,
        "ratio": on_cpu / (timing.median_ms / 1e3),
        "bytes_per_second": 3 * 8 * SCANNED / (timing.median_ms / 1e3),  # two reads and a write
        "error": error,
        "still_right": error <= gpu_checks.ROUNDING,
    }
