"""Compiled twins of the reference for one CPU core, equal to it in every bit.

Each does the reference's arithmetic in the reference's order, fused into one pass over a run.
Compiled on first use and kept on disk; nothing is compiled at import.
"""

# ruff: noqa: A001, A002, PLR0917 - kernels take arrays by position; open and exit are the field's words

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from strategies.kernels.runs import (
    Array,
    Excursions,
    bool_arrays,
    float_arrays,
    log_returns,
    over_runs,
    require_fast_below_slow,
    require_positive,
    require_window,
    tradable,
)

BLOCK = 512  # bars summed together: their sums stay in the first-level cache

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` compiled on first call, cached on disk, dividing by zero as NumPy does."""
    return cast(F, numba.njit(function, cache=True, error_model="numpy"))


@compiled
def _sma(x: Array, window: int, out: Array) -> None:
    for start in range(window - 1, x.size, BLOCK):
        newest = x[start : start + BLOCK]
        total = out[start : start + BLOCK]
        total[:] = 0.0
        for lag in range(window - 1, -1, -1):
            older = x[start - lag : start - lag + newest.size]
            for i in range(newest.size):
                total[i] += older[i] - newest[i]
        for i in range(newest.size):
            total[i] = newest[i] + total[i] / window


@compiled
def _squares(x: Array, mean: Array, window: int, out: Array) -> None:
    for start in range(window - 1, x.size, BLOCK):
        centre = mean[start : start + BLOCK]
        total = out[start : start + BLOCK]
        total[:] = 0.0
        for lag in range(window - 1, -1, -1):
            older = x[start - lag : start - lag + centre.size]
            for i in range(centre.size):
                total[i] += (older[i] - centre[i]) * (older[i] - centre[i])


@compiled
def _recursive_mean(x: Array, window: int, alpha: float, out: Array) -> None:
    if x.size < window:
        return
    newest = x[window - 1]
    total = 0.0
    for t in range(window):
        total += x[t] - newest
    mean = newest + total / window
    out[window - 1] = mean
    for t in range(window, x.size):
        mean += (x[t] - mean) * alpha
        out[t] = mean


@compiled
def _rsi(close: Array, window: int, out: Array) -> None:
    if close.size <= window:
        return
    alpha = 1.0 / window
    newest = close[window] - close[window - 1]
    gain = loss = 0.0
    for t in range(1, window + 1):
        change = close[t] - close[t - 1]
        gain += max(change, 0.0) - max(newest, 0.0)
        loss += max(-change, 0.0) - max(-newest, 0.0)
    gain = max(newest, 0.0) + gain / window
    loss = max(-newest, 0.0) + loss / window
    for t in range(window, close.size):
        if t > window:
            change = close[t] - close[t - 1]
            gain += (max(change, 0.0) - gain) * alpha
            loss += (max(-change, 0.0) - loss) * alpha
        moved = gain + loss
        out[t] = 100.0 * (gain / moved) if moved > 0.0 else 50.0


@compiled
def _true_range(high: Array, low: Array, close: Array, out: Array) -> None:
    for t in range(1, high.size):
        reach = max(abs(high[t] - close[t - 1]), abs(low[t] - close[t - 1]))
        out[t] = max(high[t] - low[t], reach)


@compiled
def _adx(
    high: Array, low: Array, close: Array, window: int, index: Array, plus: Array, minus: Array
) -> None:
    alpha = 1.0 / window
    up_sum = down_sum = range_sum = 0.0
    seed = mean = 0.0
    for t in range(1, high.size):
        rise = high[t] - high[t - 1]
        fall = low[t - 1] - low[t]
        up = rise if rise > 0.0 and rise > fall else 0.0
        down = fall if fall > 0.0 and fall > rise else 0.0
        reach = max(abs(high[t] - close[t - 1]), abs(low[t] - close[t - 1]))
        decay = alpha if t >= window else 0.0
        up_sum = up_sum - up_sum * decay + up
        down_sum = down_sum - down_sum * decay + down
        range_sum = range_sum - range_sum * decay + max(high[t] - low[t], reach)
        if t < window:
            continue
        plus[t] = 100.0 * (up_sum / range_sum) if range_sum > 0.0 else 0.0
        minus[t] = 100.0 * (down_sum / range_sum) if range_sum > 0.0 else 0.0
        both = plus[t] + minus[t]
        directional = 100.0 * (abs(plus[t] - minus[t]) / both) if both > 0.0 else 0.0
        if t < 2 * window:
            seed += directional
            mean = seed / window
        elif both > 0.0:
            mean += (directional - mean) * alpha
        if t >= 2 * window - 1:
            index[t] = mean


@compiled
def _obv(close: Array, volume: Array, out: Array) -> None:
    out[0] = volume[0]
    for t in range(1, close.size):
        out[t] = out[t - 1] + volume[t] * np.sign(close[t] - close[t - 1])


@compiled
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


def sma(x: Array, window: int) -> Array:
    """Twin of `reference.sma`."""
    require_window(window)
    (out,) = over_runs(_sma, (x,), 1, window)
    return out


def _ema(x: Array, window: int, out: Array) -> None:
    _recursive_mean(x, window, 2.0 / (window + 1.0), out)


def ema(x: Array, window: int) -> Array:
    """Twin of `reference.ema`."""
    require_window(window)
    (out,) = over_runs(_ema, (x,), 1, window)
    return out


def rsi(close: Array, window: int) -> Array:
    """Twin of `reference.rsi`."""
    require_window(window)
    (out,) = over_runs(_rsi, (close,), 1, window)
    return out


def _macd(
    x: Array, fast: int, slow: int, signal: int, line: Array, signal_line: Array, histogram: Array
) -> None:
    first = slow + signal - 2
    if x.size <= first:
        return
    near, far = np.empty(x.size), np.empty(x.size)
    _ema(x[slow - fast :], fast, near[slow - fast :])
    _ema(x, slow, far)
    distance = near[slow - 1 :] - far[slow - 1 :]
    smooth = np.empty(distance.size)
    _ema(distance, signal, smooth)
    line[first:] = distance[signal - 1 :]
    signal_line[first:] = smooth[signal - 1 :]
    np.subtract(line[first:], signal_line[first:], out=histogram[first:])


def macd(close: Array, fast: int, slow: int, signal: int) -> tuple[Array, Array, Array]:
    """Twin of `reference.macd`."""
    require_fast_below_slow(fast, slow)
    require_window(signal, name="signal window")
    line, signal_line, histogram = over_runs(_macd, (close,), 3, fast, slow, signal)
    return line, signal_line, histogram


def true_range(high: Array, low: Array, close: Array) -> Array:
    """Twin of `reference.true_range`."""
    (out,) = over_runs(_true_range, (high, low, close), 1)
    return out


def _atr(high: Array, low: Array, close: Array, window: int, out: Array) -> None:
    ranges = np.empty(high.size)
    _true_range(high, low, close, ranges)
    _recursive_mean(ranges[1:], window, 1.0 / window, out[1:])


def atr(high: Array, low: Array, close: Array, window: int) -> Array:
    """Twin of `reference.atr`."""
    require_window(window)
    (out,) = over_runs(_atr, (high, low, close), 1, window)
    return out


def _deviation(x: Array, window: int, ddof: int, mean: Array, out: Array) -> None:
    _sma(x, window, mean)
    _squares(x, mean, window, out)
    np.sqrt(out / (window - ddof), out=out)


def bollinger(x: Array, window: int, deviations: float = 2.0) -> tuple[Array, Array, Array]:
    """Twin of `reference.bollinger`."""
    require_window(window)
    middle, spread = over_runs(_deviation, (x,), 2, window, 0)
    return middle + deviations * spread, middle, middle - deviations * spread


def realised_volatility(close: Array, window: int, periods_per_year: float) -> Array:
    """Twin of `reference.realised_volatility`."""
    require_window(window, least=2)
    require_positive(periods_per_year, name="periods per year")
    _, spread = over_runs(_deviation, (log_returns(close),), 2, window, 1)
    return spread * math.sqrt(periods_per_year)


def adx(high: Array, low: Array, close: Array, window: int) -> tuple[Array, Array, Array]:
    """Twin of `reference.adx`."""
    require_window(window)
    index, plus, minus = over_runs(_adx, (high, low, close), 3, window)
    return index, plus, minus


def obv(close: Array, volume: Array) -> Array:
    """Twin of `reference.obv`."""
    (out,) = over_runs(_obv, (close, volume), 1)
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
