"""A recursive mean over one long series on a CUDA device: the affine scan of `scan` in two levels.

A block takes a tile of bars into shared memory, its threads fold a chunk each, and the pairs are
scanned; one block then carries the mean from tile to tile; at last every tile is replayed from the
mean before it. Pairs go through shared memory, not through shuffles, so that the simulator runs
what the device runs.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from typing import Any

import numpy as np

from strategies.kernels.cuda.launch import Float, cuda, device_function, kernel, upload
from strategies.kernels.runs import Array, over_runs, require_window

THREADS = 64
CHUNK = 16  # bars a thread folds
TILE = THREADS * CHUNK
ROW = THREADS + THREADS // CHUNK  # words that so many neighbouring bars take
PADDED = TILE + THREADS  # one word beside every chunk keeps the threads on different banks


@device_function
def _load(x: Any, start: Any, tile: Any) -> None:
    """Bars from `start` on into shared memory, neighbouring threads taking neighbouring bars."""
    lane = np.uint32(cuda.threadIdx.x)  # unsigned: no index is tested for counting from the end
    for step in range(CHUNK):
        t = start + np.uint32(step * THREADS) + lane
        if t < np.uint32(x.size):
            tile[lane + lane // np.uint32(CHUNK) + np.uint32(step * ROW)] = x[t]
    cuda.syncthreads()


@device_function
def _held(x: Any, start: Any) -> Any:
    """Bars of this thread's chunk that the series has."""
    left = x.size - np.int64(start) - cuda.threadIdx.x * CHUNK
    return min(max(left, 0), CHUNK)


@device_function
def _fold(
    tile: Any, held: int, base: Any, alpha: Any, decay: Any, scales: Any, offsets: Any
) -> None:
    """Make this thread's chunk one pair, the identity where the series has ended, and scan all."""
    lane = cuda.threadIdx.x
    scale = tile.dtype.type(1)
    offset = tile.dtype.type(0)
    for i in range(held):
        offset += (tile[lane * (CHUNK + 1) + i] - base - offset) * alpha
        scale *= decay
    scales[lane] = scale
    offsets[lane] = offset
    _scan(scales, offsets)


@device_function
def _scan(scales: Any, offsets: Any) -> None:
    """Pair k becomes the map of chunks 0..k, in log2(threads) rounds."""
    lane = cuda.threadIdx.x
    cuda.syncthreads()
    reach = 1
    while reach < THREADS:
        scale = scales[lane]
        offset = offsets[lane]
        if lane >= reach:
            offset += scale * offsets[lane - reach]
            scale *= scales[lane - reach]
        cuda.syncthreads()  # every thread has read before one writes
        scales[lane] = scale
        offsets[lane] = offset
        cuda.syncthreads()
        reach *= 2


@kernel(signature="f1 f0 f0 f0 f1 f1", threads=THREADS, registers=(36, 34))
def fold_tiles(
    x: Any, base: Any, alpha: Any, decay: Any, tile_scales: Any, tile_offsets: Any
) -> None:
    """From x [T] the map of every tile of 1,024 bars, two [ceil(T / 1024)]; one block a tile.

    Maps are of distances from `base`, which are exactly 0 where nothing moves.
    """
    tile = cuda.shared.array(PADDED, x.dtype)
    scales = cuda.shared.array(THREADS, x.dtype)
    offsets = cuda.shared.array(THREADS, x.dtype)
    start = np.uint32(cuda.blockIdx.x) * np.uint32(TILE)
    _load(x, start, tile)
    _fold(tile, _held(x, start), base, alpha, decay, scales, offsets)
    if cuda.threadIdx.x == THREADS - 1:
        tile_scales[cuda.blockIdx.x] = scales[THREADS - 1]
        tile_offsets[cuda.blockIdx.x] = offsets[THREADS - 1]


@kernel(signature="f1 f1 f0 f1", threads=THREADS, registers=(42, 38))
def carry_tiles(tile_scales: Any, tile_offsets: Any, base: Any, before: Any) -> None:
    """From the maps of the tiles, and `base` before the first, the mean before each; one block."""
    scales = cuda.shared.array(THREADS, before.dtype)
    offsets = cuda.shared.array(THREADS, before.dtype)
    lane = cuda.threadIdx.x
    share = (before.size + THREADS - 1) // THREADS  # tiles a thread carries over
    first = min(lane * share, before.size)
    last = min(first + share, before.size)
    scale = before.dtype.type(1)
    offset = before.dtype.type(0)
    for k in range(first, last):
        offset = tile_scales[k] * offset + tile_offsets[k]
        scale *= tile_scales[k]
    scales[lane] = scale
    offsets[lane] = offset
    _scan(scales, offsets)
    distance = before.dtype.type(0)
    if lane > 0:
        distance = offsets[lane - 1]
    for k in range(first, last):
        before[k] = base + distance
        distance = tile_scales[k] * distance + tile_offsets[k]


@kernel(signature="f1 f0 f0 f0 f1 f1", threads=THREADS, registers=(72, 62))
def replay_tiles(x: Any, base: Any, alpha: Any, decay: Any, before: Any, out: Any) -> None:
    """From x [T] and the mean before every tile out [T], by the recursion; one block a tile."""
    tile = cuda.shared.array(PADDED, x.dtype)
    scales = cuda.shared.array(THREADS, x.dtype)
    offsets = cuda.shared.array(THREADS, x.dtype)
    lane = np.uint32(cuda.threadIdx.x)
    start = np.uint32(cuda.blockIdx.x) * np.uint32(TILE)
    held = _held(x, start)
    _load(x, start, tile)
    _fold(tile, held, base, alpha, decay, scales, offsets)
    mean = before[cuda.blockIdx.x]
    if lane > 0:
        mean = base + (scales[lane - 1] * (mean - base) + offsets[lane - 1])
    for i in range(held):
        mean += (tile[lane * (CHUNK + 1) + i] - mean) * alpha
        tile[lane * (CHUNK + 1) + i] = mean
    cuda.syncthreads()
    for step in range(CHUNK):
        t = start + np.uint32(step * THREADS) + lane
        if t < np.uint32(x.size):
            out[t] = tile[lane + lane // np.uint32(CHUNK) + np.uint32(step * ROW)]


def scan_on_device(x: Any, alpha: float, seed: float, out: Any, dtype: Float = np.float64) -> None:
    """The mean of every bar of `x` from `seed` on into `out`; both [T] on the device, T >= 1."""
    tiles = -(-x.size // TILE)
    base, weight, decay = dtype(seed), dtype(alpha), dtype(1.0 - alpha)
    tile_scales, tile_offsets = cuda.device_array(tiles, dtype), cuda.device_array(tiles, dtype)
    before = cuda.device_array(tiles, dtype)
    fold_tiles.launch(tiles, x, base, weight, decay, tile_scales, tile_offsets)
    carry_tiles.launch(1, tile_scales, tile_offsets, base, before)
    replay_tiles.launch(tiles, x, base, weight, decay, before, out)


def recursive_mean(x: Array, window: int, alpha: float, *, dtype: Float = np.float64) -> Array:
    """`scan.recursive_mean` on the device: within 1e-12 of the sequential mean, 2e-5 in float32.

    raises  ValueError for a window below 1 and an alpha outside (0, 1],
            EndpointError where there is no device
    """
    require_window(window)
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha {alpha} is outside (0, 1]")

    def run(series: Array, out: Array) -> None:
        if series.size < window:
            return
        newest = series[window - 1]
        seed = newest + sum((series[:window] - newest).tolist(), 0.0) / window
        out[window - 1] = seed
        if series.size > window:
            means = upload(out[window:], dtype)
            scan_on_device(upload(series[window:], dtype), alpha, seed, means, dtype)
            out[window:] = means.copy_to_host()

    (out,) = over_runs(run, (x,), 1)
    return out


def ema(x: Array, window: int, *, dtype: Float = np.float64) -> Array:
    """Exponential moving average of one long series on the device."""
    require_window(window)
    return recursive_mean(x, window, 2.0 / (window + 1.0), dtype=dtype)


def wilder(x: Array, window: int, *, dtype: Float = np.float64) -> Array:
    """Wilder's mean (alpha 1 / window) of one long series on the device."""
    require_window(window)
    return recursive_mean(x, window, 1.0 / window, dtype=dtype)
