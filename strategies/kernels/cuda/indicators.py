"""The indicators on a CUDA device: the steps of `steps`, one thread a lane, which is one window.

Host functions take and return NumPy arrays and mean what those of `reference` and `tables` mean;
each raises EndpointError where there is no device. A lane is as slow as one device thread, so a
single window is better computed on the CPU; many windows at once, or a scan, are what pays.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.kernels import steps
from strategies.kernels.cuda.device import require_device
from strategies.kernels.cuda.launch import Float, Kernel, cuda, kernel, upload
from strategies.kernels.engines.masks import padded_bars
from strategies.kernels.runs import (
    Array,
    finite_runs,
    float_arrays,
    log_returns,
    over_runs,
    require_fast_below_slow,
    require_positive,
    require_window,
)

Windows = Sequence[int] | NDArray[np.int64]
Three = tuple[Array, Array, Array]
Arrays = tuple[Any, ...]  # on the device
Launch = Callable[[Arrays, Arrays, Arrays], None]  # inputs [T], parameters [P], outputs [P, T]

ROOM = 64  # bars a lane of `rsi_rows` works on together


@kernel(signature="f1 i1 f2", registers=(66, 64))
def sma_rows(x: Any, window: Any, out: Any) -> None:
    """Out [P, T]; a thread writes a block of window[p] bars, the grid's second axis is p."""
    block = cuda.grid(1)
    p = cuda.blockIdx.y
    if block * window[p] < x.size:
        steps.sma_block(x, window[p], block, out[p])


@kernel(signature="f1 i1 i0 f2 f2", registers=(68, 66))
def deviation_rows(x: Any, window: Any, ddof: int, mean: Any, out: Any) -> None:
    """Two [P, T]; a thread writes a block of window[p] bars, the grid's second axis is p."""
    block = cuda.grid(1)
    p = cuda.blockIdx.y
    if block * window[p] < x.size:
        steps.deviation_block(x, window[p], ddof, block, mean[p], out[p])


@kernel(signature="f1 i1 f0 f2", registers=(50, 46))
def extreme_rows(x: Any, window: Any, sign: Any, out: Any) -> None:
    """Out [P, T], greatest for sign 1 and least for -1; threads and blocks as `sma_rows`."""
    block = cuda.grid(1)
    p = cuda.blockIdx.y
    if block * window[p] < x.size:
        steps.extreme_block(x, window[p], block, sign, out[p])


@kernel(signature="f1 f1 f1 f1 i1 f2 f2", registers=(104, 88))
def vwap_rows(
    high: Any, low: Any, close: Any, volume: Any, window: Any, room: Any, out: Any
) -> None:
    """Out [P, T], room [P, T] is scratch; threads and blocks as `sma_rows`."""
    block = cuda.grid(1)
    p = cuda.blockIdx.y
    start = block * window[p]
    if start < close.size:
        here = room[p, start : start + window[p]]
        steps.vwap_block(high, low, close, volume, window[p], block, here, out[p])


@kernel(signature="f1 i1 f2", registers=(68, 68))
def ema_rows(x: Any, window: Any, out: Any) -> None:
    """Out [P, T], one thread a window."""
    p = cuda.grid(1)
    if p < window.size:
        steps.ema_lane(x, window[p], out[p])


@kernel(signature="f1 i1 f2 f2", registers=(82, 68))
def rsi_rows(close: Any, window: Any, room: Any, out: Any) -> None:
    """Out [P, T], one thread a window; room [P, 64] is scratch."""
    p = cuda.grid(1)
    if p < window.size:
        steps.rsi_lane(close, window[p], room[p], out[p])


@kernel(signature="f1 f1 f1 i1 f2", registers=(68, 68))
def atr_rows(high: Any, low: Any, close: Any, window: Any, out: Any) -> None:
    """Out [P, T], one thread a window."""
    p = cuda.grid(1)
    if p < window.size:
        steps.atr_lane(high, low, close, window[p], out[p])


@kernel(signature="f1 i1 i1 i1 f2 f2 f2", registers=(100, 76))
def macd_rows(
    x: Any, fast: Any, slow: Any, signal: Any, line: Any, signal_line: Any, histogram: Any
) -> None:
    """Three [P, T], one thread a set of windows."""
    p = cuda.grid(1)
    if p < fast.size:
        steps.macd_lane(x, fast[p], slow[p], signal[p], line[p], signal_line[p], histogram[p])


@kernel(signature="f1 f1 f1 i1 f2 f2 f2", registers=(106, 84))
def adx_rows(
    high: Any, low: Any, close: Any, window: Any, index: Any, plus: Any, minus: Any
) -> None:
    """Three [P, T], one thread a window."""
    p = cuda.grid(1)
    if p < window.size:
        steps.adx_lane(high, low, close, window[p], index[p], plus[p], minus[p])


@kernel(signature="f1 f1 f1 i1 i1 f2 f2", registers=(84, 76))
def stochastic_rows(
    high: Any, low: Any, close: Any, window: Any, smooth: Any, fast: Any, slow: Any
) -> None:
    """Two [P, T], one thread a pair of windows."""
    p = cuda.grid(1)
    if p < window.size:
        steps.stochastic_lane(high, low, close, window[p], smooth[p], fast[p], slow[p])


@kernel(signature="f1 f1 f1 f1", registers=(56, 54))
def true_range_bars(high: Any, low: Any, close: Any, out: Any) -> None:
    """Out [T], one thread a bar."""
    t = cuda.grid(1)
    if t == 0:
        steps.blank(out, 1)
    elif t < out.size:
        before = close[t - 1 : t]
        steps.true_ranges(high[t : t + 1], low[t : t + 1], before, out[t : t + 1])


@kernel(signature="f1 f1 f1", registers=(62, 58))
def obv_bars(close: Any, volume: Any, out: Any) -> None:
    """Out [T], all by one thread: a sum has only one order."""
    if cuda.grid(1) == 0:
        steps.obv_lane(close, volume, out)


def sma_table(x: Array, windows: Windows, *, dtype: Float = np.float64) -> Array:
    """`tables.sma_table` on the device."""
    return _table(_by_blocks(sma_rows), (x,), (windows,), 1, dtype)[0]


def ema_table(x: Array, windows: Windows, *, dtype: Float = np.float64) -> Array:
    """`tables.ema_table` on the device."""
    return _table(_by_lanes(ema_rows), (x,), (windows,), 1, dtype)[0]


def rsi_table(close: Array, windows: Windows, *, dtype: Float = np.float64) -> Array:
    """`tables.rsi_table` on the device."""

    def launch(inputs: Arrays, columns: Arrays, outputs: Arrays) -> None:
        room = cuda.device_array((columns[0].size, ROOM), dtype)
        rsi_rows.over(columns[0].size, *inputs, *columns, room, *outputs)

    return _table(launch, (close,), (windows,), 1, dtype)[0]


def atr_table(
    high: Array, low: Array, close: Array, windows: Windows, *, dtype: Float = np.float64
) -> Array:
    """`tables.atr_table` on the device."""
    return _table(_by_lanes(atr_rows), (high, low, close), (windows,), 1, dtype)[0]


def sma(x: Array, window: int) -> Array:
    """`reference.sma` on the device."""
    return sma_table(x, [window])[0, : x.size]


def ema(x: Array, window: int) -> Array:
    """`reference.ema` on the device."""
    return ema_table(x, [window])[0, : x.size]


def rsi(close: Array, window: int) -> Array:
    """`reference.rsi` on the device."""
    return rsi_table(close, [window])[0, : close.size]


def atr(high: Array, low: Array, close: Array, window: int) -> Array:
    """`reference.atr` on the device."""
    return atr_table(high, low, close, [window])[0, : close.size]


def macd(close: Array, fast: int, slow: int, signal: int) -> Three:
    """`reference.macd` on the device."""
    require_fast_below_slow(fast, slow)
    require_window(signal, name="signal window")
    windows = ([fast], [slow], [signal])
    line, smooth, histogram = _table(_by_lanes(macd_rows), (close,), windows, 3)
    return line[0, : close.size], smooth[0, : close.size], histogram[0, : close.size]


def adx(high: Array, low: Array, close: Array, window: int) -> Three:
    """`reference.adx` on the device."""
    index, plus, minus = _table(_by_lanes(adx_rows), (high, low, close), ([window],), 3)
    return index[0, : close.size], plus[0, : close.size], minus[0, : close.size]


def stochastic(
    high: Array, low: Array, close: Array, window: int, smooth: int
) -> tuple[Array, Array]:
    """`reference.stochastic` on the device."""
    require_window(smooth, name="smoothing window")
    windows = ([window], [smooth])
    fast, slow = _table(_by_lanes(stochastic_rows), (high, low, close), windows, 2)
    return fast[0, : close.size], slow[0, : close.size]


def rolling_max(x: Array, window: int) -> Array:
    """`reference.rolling_max` on the device."""
    return _extreme(x, window, 1.0)


def rolling_min(x: Array, window: int) -> Array:
    """`reference.rolling_min` on the device."""
    return _extreme(x, window, -1.0)


def _extreme(x: Array, window: int, sign: float) -> Array:
    def launch(inputs: Arrays, columns: Arrays, outputs: Arrays) -> None:
        _by_blocks(extreme_rows)(inputs, (*columns, np.float64(sign)), outputs)

    return _table(launch, (x,), ([window],), 1)[0][0, : x.size]


def vwap(high: Array, low: Array, close: Array, volume: Array, window: int) -> Array:
    """`reference.vwap` on the device."""

    def launch(inputs: Arrays, columns: Arrays, outputs: Arrays) -> None:
        room = cuda.device_array(outputs[0].shape, np.float64)
        _by_blocks(vwap_rows)(inputs, columns, (room, *outputs))

    return _table(launch, (high, low, close, volume), ([window],), 1)[0][0, : close.size]


def bollinger(x: Array, window: int, deviations: float = 2.0) -> Three:
    """`reference.bollinger` on the device."""
    middle, spread = _deviation(x, window, 0)
    reach = deviations * spread
    return middle + reach, middle, middle - reach


def realised_volatility(close: Array, window: int, periods_per_year: float) -> Array:
    """`reference.realised_volatility` on the device; the host takes the logarithms."""
    require_window(window, least=2)
    require_positive(periods_per_year, name="periods per year")
    _, spread = _deviation(log_returns(close), window, 1)
    return spread * math.sqrt(periods_per_year)


def _deviation(x: Array, window: int, ddof: int) -> tuple[Array, Array]:
    def launch(inputs: Arrays, columns: Arrays, outputs: Arrays) -> None:
        _by_blocks(deviation_rows)(inputs, (*columns, ddof), outputs)

    mean, spread = _table(launch, (x,), ([window],), 2)
    return mean[0, : x.size], spread[0, : x.size]


def true_range(high: Array, low: Array, close: Array) -> Array:
    """`reference.true_range` on the device."""
    return _series(true_range_bars, high, low, close)


def obv(close: Array, volume: Array) -> Array:
    """`reference.obv` on the device."""
    return _series(obv_bars, close, volume)


def _by_lanes(made: Kernel) -> Launch:
    """One thread a window."""

    def launch(inputs: Arrays, columns: Arrays, outputs: Arrays) -> None:
        made.over(columns[0].size, *inputs, *columns, *outputs)

    return launch


def _by_blocks(made: Kernel) -> Launch:
    """One thread a block of a window's bars, one row of the grid a window."""

    def launch(inputs: Arrays, columns: Arrays, outputs: Arrays) -> None:
        narrowest = int(columns[0].copy_to_host().min())  # has the most blocks
        blocks = -(-inputs[0].size // narrowest)
        made.launch((-(-blocks // made.threads), columns[0].size), *inputs, *columns, *outputs)

    return launch


def _table(
    launch: Launch,
    inputs: tuple[Array, ...],
    windows: tuple[Windows, ...],
    outputs: int,
    dtype: Float = np.float64,
) -> tuple[Array, ...]:
    """`outputs` tables [P, T padded to a multiple of 64], NaN where nothing was written.

    A NaN or an infinity in any input ends a series, and what follows it starts a new one.
    """
    columns = tuple(np.asarray(column, dtype=np.int64).reshape(-1) for column in windows)
    for window in columns[0]:
        require_window(int(window))
    arrays = float_arrays(*inputs)
    require_device()
    lanes, bars = columns[0].size, arrays[0].size
    results = tuple(np.full((lanes, padded_bars(bars)), np.nan) for _ in range(outputs))
    for run in finite_runs(arrays) if lanes else ():
        made = tuple(
            cuda.device_array((lanes, run.stop - run.start), dtype) for _ in range(outputs)
        )
        launch(
            tuple(upload(x[run], dtype) for x in arrays),
            tuple(upload(column, np.int64) for column in columns),
            made,
        )
        for result, out in zip(results, made, strict=True):
            result[:, run] = out.copy_to_host()
    return results


def _series(made: Kernel, *inputs: Array) -> Array:
    """One output [T] of a kernel whose threads are bars."""

    def run(*arrays: Array) -> None:
        out = cuda.device_array(arrays[0].size, np.float64)
        made.over(arrays[0].size, *(upload(x, np.float64) for x in arrays[:-1]), out)
        arrays[-1][:] = out.copy_to_host()

    float_arrays(*inputs)
    require_device()
    (out,) = over_runs(run, inputs, 1)
    return out
