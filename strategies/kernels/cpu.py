"""Compiled twins of the reference for one CPU core, equal to it in every bit.

Each does the reference's arithmetic in the reference's order: the lanes of `steps` walk a run.
Compiled on first use and kept on disk; nothing is compiled at import.
"""

# ruff: noqa: A001, A002, PLR0917 - kernels take arrays by position; open and exit are the field's words

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from strategies.kernels import cpu_recursions, cpu_windows
from strategies.kernels.compiling import step
from strategies.kernels.runs import (
    Array,
    Excursions,
    bool_arrays,
    finite_runs,
    float_arrays,
    log_returns,
    require_fast_below_slow,
    require_positive,
    require_window,
    tradable,
)


def _over_runs(
    lane: Callable[..., bool], inputs: tuple[Array, ...], outputs: int, *parameters: object
) -> tuple[Array, ...]:
    """`outputs` arrays [T] of a lane called as lane(*inputs, *parameters, *outputs) on every run.

    Most series are one run, so it is taken for one until the lane says that it met a hole. The
    outputs are one piece of memory, which the allocator gives back and takes again as a whole.
    """
    arrays = float_arrays(*inputs)
    results = tuple(np.empty((outputs, arrays[0].size)))
    if lane(*arrays, *parameters, *results):
        return results
    for out in results:
        out.fill(np.nan)
    for run in finite_runs(arrays):
        lane(*(x[run] for x in arrays), *parameters, *(out[run] for out in results))
    return results


def sma(x: Array, window: int) -> Array:
    """Twin of `reference.sma`."""
    require_window(window)
    (out,) = _over_runs(cpu_windows.sma_lane, (x,), 1, window)
    return out


def ema(x: Array, window: int) -> Array:
    """Twin of `reference.ema`."""
    require_window(window)
    (out,) = _over_runs(cpu_recursions.ema_lane, (x,), 1, window)
    return out


def rsi(close: Array, window: int) -> Array:
    """Twin of `reference.rsi`."""
    require_window(window)
    (out,) = _over_runs(cpu_recursions.rsi_lane, (close,), 1, window)
    return out


def macd(close: Array, fast: int, slow: int, signal: int) -> tuple[Array, Array, Array]:
    """Twin of `reference.macd`."""
    require_fast_below_slow(fast, slow)
    require_window(signal, name="signal window")
    line, signal_line, histogram = _over_runs(
        cpu_recursions.macd_lane, (close,), 3, fast, slow, signal
    )
    return line, signal_line, histogram


def true_range(high: Array, low: Array, close: Array) -> Array:
    """Twin of `reference.true_range`."""
    (out,) = _over_runs(cpu_recursions.true_range_lane, (high, low, close), 1)
    return out


def atr(high: Array, low: Array, close: Array, window: int) -> Array:
    """Twin of `reference.atr`."""
    require_window(window)
    (out,) = _over_runs(cpu_recursions.atr_lane, (high, low, close), 1, window)
    return out


def bollinger(x: Array, window: int, deviations: float = 2.0) -> tuple[Array, Array, Array]:
    """Twin of `reference.bollinger`."""
    require_window(window)
    upper, middle, lower = _over_runs(
        cpu_windows.bollinger_lane, (x,), 3, window, float(deviations)
    )
    return upper, middle, lower


def realised_volatility(close: Array, window: int, periods_per_year: float) -> Array:
    """Twin of `reference.realised_volatility`."""
    require_window(window, least=2)
    require_positive(periods_per_year, name="periods per year")
    returns, scale = log_returns(close), math.sqrt(periods_per_year)
    _, spread = _over_runs(cpu_windows.volatility_lane, (returns[1:],), 2, window, scale)
    out = np.full(returns.size, np.nan)  # bar 0 has no return
    out[1:] = spread
    return out


def adx(high: Array, low: Array, close: Array, window: int) -> tuple[Array, Array, Array]:
    """Twin of `reference.adx`."""
    require_window(window)
    index, plus, minus = _over_runs(cpu_recursions.adx_lane, (high, low, close), 3, window)
    return index, plus, minus


def obv(close: Array, volume: Array) -> Array:
    """Twin of `reference.obv`."""
    (out,) = _over_runs(cpu_recursions.obv_lane, (close, volume), 1)
    return out


def rolling_max(x: Array, window: int) -> Array:
    """Twin of `reference.rolling_max`."""
    require_window(window)
    (out,) = _over_runs(cpu_windows.extreme_lane, (x,), 1, window, 1.0)
    return out


def rolling_min(x: Array, window: int) -> Array:
    """Twin of `reference.rolling_min`."""
    require_window(window)
    (out,) = _over_runs(cpu_windows.extreme_lane, (x,), 1, window, -1.0)
    return out


def stochastic(
    high: Array, low: Array, close: Array, window: int, smooth: int
) -> tuple[Array, Array]:
    """Twin of `reference.stochastic`."""
    require_window(window)
    require_window(smooth, name="smoothing window")
    fast, slow = _over_runs(cpu_windows.stochastic_lane, (high, low, close), 2, window, smooth)
    return fast, slow


def vwap(high: Array, low: Array, close: Array, volume: Array, window: int) -> Array:
    """Twin of `reference.vwap`."""
    require_window(window)
    room = np.empty(min(window, max(1, np.size(close))))
    (out,) = _over_runs(cpu_windows.vwap_lane, (high, low, close, volume), 1, window, room)
    return out


def excursions(
    open: Array,
    high: Array,
    low: Array,
    close: Array,
    entry: NDArray[np.bool_],
    exit: NDArray[np.bool_],
    stop_distance: Array,
    slippage: float,
) -> Excursions:
    """Twin of `reference.excursions`."""
    open, high, low, close, risk = float_arrays(open, high, low, close, stop_distance)
    entry, exit = bool_arrays(open.size, entry, exit)
    signals = tradable(entry, risk)
    exit_index = np.full(signals.size, -1, dtype=np.int64)
    mfe_r = np.zeros(signals.size)
    result_r = np.full(signals.size, np.nan)
    _excursions(
        open, high, low, close, risk, exit, signals, float(slippage), exit_index, mfe_r, result_r
    )
    return signals + 1, exit_index, mfe_r, result_r


@step
def _excursions(
    open: Array,
    high: Array,
    low: Array,
    close: Array,
    stop_distance: Array,
    exit: NDArray[np.bool_],
    signals: NDArray[np.int64],
    slippage: float,
    exit_index: NDArray[np.int64],
    mfe_r: Array,
    result_r: Array,
) -> None:
    for k in range(signals.size):
        signal = signals[k]
        risk = stop_distance[signal]
        stop = close[signal] * (1.0 + slippage) - risk
        paid = open[signal + 1] * (1.0 + slippage)
        best = 0.0
        for t in range(signal + 1, open.size):
            leaves = t > signal + 1 and exit[t - 1]
            stopped = low[t] <= stop
            if leaves or stopped:
                price = open[t] if leaves or not stop < open[t] else stop
                best = max(best, (open[t] - paid) / risk)
                exit_index[k] = t
                result_r[k] = (price * (1.0 - slippage) - paid) / risk
                break
            best = max(best, (high[t] - paid) / risk)
        mfe_r[k] = best
