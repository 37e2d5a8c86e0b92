"""The definition of every kernel, in plain NumPy and Python.

Conventions are TA-Lib's: recursive averages are seeded by a simple mean and the warm-up is NaN.
Inputs and outputs are [T] float64, oldest first; prices in USD per share, windows in bars. A NaN or
an infinity in any input ends a series; what follows it is warmed up anew. Every function raises
ValueError for a window below 1 and for inputs of different length. Value t depends on bars 0..t
only, to the last bit, and scaling prices by a power of two scales prices to the last bit.

Two forms carry everything. Sums over a window are sums of distances from a bar inside the window
(`window_sums`), so that nothing is ever taken off a sum. Averages with a decaying memory are
`total = keep × total + x`, four bars at a time (`decaying_sum`).
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.excursions import excursions
from strategies.kernels.runs import (
    Array,
    log_returns,
    over_runs,
    require_fast_below_slow,
    require_positive,
    require_window,
)
from strategies.kernels.sums import blocks, decaying_sum, flat, window_sums

__all__ = [
    "adx",
    "atr",
    "bollinger",
    "ema",
    "excursions",
    "macd",
    "obv",
    "realised_volatility",
    "rolling_max",
    "rolling_min",
    "rsi",
    "sma",
    "stochastic",
    "true_range",
    "vwap",
]


def sma(x: Array, window: int) -> Array:
    """Simple moving average.

    returns  [T] in the unit of `x`; NaN before bar window-1; exactly `x` where nothing moves
    """
    require_window(window)
    (out,) = over_runs(_sma, (x,), 1, window)
    return out


def _sma(x: Array, window: int, out: Array) -> None:
    if x.size < window:
        return
    now, before, level = blocks(x, window)
    means = level + window_sums(now - level, before - level) * (1.0 / window)
    out[window - 1 :] = flat(means, x.size)[window - 1 :]


def ema(x: Array, window: int) -> Array:
    """Exponential moving average, alpha 2 / (window + 1), seeded by the first window's mean.

    returns  [T] in the unit of `x`; NaN before bar window-1; exactly `x` where nothing moves
    """
    require_window(window)
    (out,) = over_runs(_ema, (x,), 1, window)
    return out


def _ema(x: Array, window: int, out: Array) -> None:
    if x.size < window:
        return
    offset = _mean_distance(x[:window], x[window - 1])
    out[window - 1] = x[window - 1] + offset
    out[window:] = x[window:] + _offsets(x[window - 1 :], offset, _ema_keep(window))


def _ema_keep(window: int) -> float:
    return 1.0 - 2.0 / (window + 1.0)


def _mean_distance(x: Array, newest: float) -> float:
    return float(np.add.accumulate(x - newest)[-1] * (1.0 / x.size))


def _offsets(x: Array, offset: float, keep: float) -> Array:
    """[T-1] how far the mean is off each bar, from bar 1 on; it is `offset` off bar 0.

    Kept instead of the mean itself, since it is exactly 0 while nothing moves.
    """
    return decaying_sum(keep * (x[:-1] - x[1:]), offset, keep)


def rsi(close: Array, window: int) -> Array:
    """Relative strength index, Wilder smoothing seeded by the first `window` changes.

    50 + 50 × (smoothed change / smoothed size of change): the same as 100 × gain / (gain + loss).

    returns  [T] in [0, 100]; NaN before bar `window`; 50 while nothing has moved
    source   Wilder (1978), New Concepts in Technical Trading Systems; TA-Lib but for the flat case
    """
    require_window(window)
    (out,) = over_runs(_rsi, (close,), 1, window)
    return out


def _rsi(close: Array, window: int, out: Array) -> None:
    if close.size <= window:
        return
    change = close[1:] - close[:-1]
    moved = _wilder_sum(change, window)
    size = _wilder_sum(np.abs(change), window)
    ratio = np.divide(moved, size, out=np.zeros(size.size), where=size > 0.0)
    out[window:] = 50.0 + 50.0 * ratio


def _wilder_sum(x: Array, window: int) -> Array:
    """[T-window+1] `window` × Wilder's mean of x, from bar window-1 on."""
    seed = float(np.add.accumulate(x[:window])[-1])
    return np.concatenate(([seed], decaying_sum(x[window:], seed, 1.0 - 1.0 / window)))


def macd(close: Array, fast: int, slow: int, signal: int) -> tuple[Array, Array, Array]:
    """Moving average convergence divergence: line, signal line and histogram (line - signal line).

    returns  three [T], USD; all NaN before bar slow + signal - 2, as in TA-Lib; exactly 0 where
             nothing moves
    raises   ValueError when fast >= slow
    source   Appel; the fast average is seeded inside the slow window, so that both start on one bar
    """
    require_fast_below_slow(fast, slow)
    require_window(signal, name="signal window")
    line, signal_line, histogram = over_runs(_macd, (close,), 3, fast, slow, signal)
    return line, signal_line, histogram


def _macd(
    x: Array, fast: int, slow: int, signal: int, line: Array, signal_line: Array, histogram: Array
) -> None:
    first = slow + signal - 2
    if x.size <= first:
        return
    seeded = x[slow - 1 :]
    near = _mean_distance(x[slow - fast : slow], seeded[0])
    far = _mean_distance(x[:slow], seeded[0])
    nears, fars = (
        np.concatenate(([offset], _offsets(seeded, offset, _ema_keep(window))))
        for offset, window in ((near, fast), (far, slow))
    )
    distance = nears - fars  # of the averages: both are offsets from the same bar
    smooth = np.full(distance.size, np.nan)
    _ema(distance, signal, smooth)
    line[first:] = distance[signal - 1 :]
    signal_line[first:] = smooth[signal - 1 :]
    histogram[first:] = line[first:] - signal_line[first:]


def true_range(high: Array, low: Array, close: Array) -> Array:
    """The greater of high and previous close less the lesser of low and previous close.

    returns  [T] USD, >= 0; NaN at bar 0, which has no previous close
    source   Wilder (1978): greatest of high - low, |high - previous| and |low - previous|
    """
    (out,) = over_runs(_true_range, (high, low, close), 1)
    return out


def _true_range(high: Array, low: Array, close: Array, out: Array) -> None:
    before = close[:-1]
    out[1:] = np.maximum(high[1:], before) - np.minimum(low[1:], before)


def atr(high: Array, low: Array, close: Array, window: int) -> Array:
    """Average true range with Wilder smoothing, seeded by the mean of true ranges 1..window.

    returns  [T] USD, >= 0; NaN before bar `window`
    source   Wilder (1978)
    """
    require_window(window)
    (out,) = over_runs(_atr, (high, low, close), 1, window)
    return out


def _atr(high: Array, low: Array, close: Array, window: int, out: Array) -> None:
    if high.size <= window:
        return
    ranges = np.empty(high.size)
    _true_range(high, low, close, ranges)
    out[window:] = _wilder_sum(ranges[1:], window) * (1.0 / window)


def bollinger(x: Array, window: int, deviations: float = 2.0) -> tuple[Array, Array, Array]:
    """Upper, middle, lower band: the mean and `deviations` population deviations (ddof 0) off it.

    returns  three [T] in the unit of `x`; NaN before bar window-1; the bands meet where nothing
             moves. Distances below 1e-154 square to nothing, those above 1e154 to infinity
    source   Bollinger
    """
    require_window(window)
    middle, spread = over_runs(_deviation, (x,), 2, window, 0)
    return middle + deviations * spread, middle, middle - deviations * spread


def _deviation(x: Array, window: int, ddof: int, mean: Array, out: Array) -> None:
    """Mean and deviation of every window, from sums of distances and of their squares.

    The distances are from a bar of the window, so the sum of squares is at most window + 1 times
    what is left of it, and the difference keeps its digits.
    """
    if x.size < window:
        return
    now, before, level = blocks(x, window)
    now, before = now - level, before - level
    total = window_sums(now, before)
    off = total * (1.0 / window)
    left = (window_sums(now * now, before * before) - total * off) * (1.0 / (window - ddof))
    spread = np.sqrt(np.where(left > 0.0, left, 0.0))
    mean[window - 1 :] = flat(level + off, x.size)[window - 1 :]
    out[window - 1 :] = flat(spread, x.size)[window - 1 :]


def realised_volatility(close: Array, window: int, periods_per_year: float) -> Array:
    """Annualised sample deviation (ddof 1) of the last `window` log returns.

    periods_per_year  bars in a year: 252 for daily bars
    returns  [T] fraction per year, >= 0; NaN before bar `window`; a close <= 0 counts as missing
    raises   ValueError for a window below 2 and for periods_per_year that is not positive
    """
    require_window(window, least=2)
    require_positive(periods_per_year, name="periods per year")
    _, spread = over_runs(_deviation, (log_returns(close),), 2, window, 1)
    return spread * math.sqrt(periods_per_year)


def adx(high: Array, low: Array, close: Array, window: int) -> tuple[Array, Array, Array]:
    """Average directional index (ADX), +DI and -DI.

    returns  three [T] in [0, 100]; NaN before bar 2 × window - 1 (ADX) or `window` (+DI and -DI)
             a bar without direction counts as 0 in the seed and later leaves ADX as it was
    source   Wilder (1978) as TA-Lib reads it: sums of window - 1 moves, then decay by 1 / window
    """
    require_window(window)
    index, plus, minus = over_runs(_adx, (high, low, close), 3, window)
    return index, plus, minus


def _adx(
    high: Array, low: Array, close: Array, window: int, index: Array, plus: Array, minus: Array
) -> None:
    if high.size <= window:
        return
    ranges = np.empty(high.size)
    _true_range(high, low, close, ranges)
    rise, fall = high[1:] - high[:-1], low[:-1] - low[1:]
    up = _movement_sum(np.where((rise > 0.0) & (rise > fall), rise, 0.0), window)
    down = _movement_sum(np.where((fall > 0.0) & (fall > rise), fall, 0.0), window)
    reach = _movement_sum(ranges[1:], window)
    plus[window:] = 100.0 * _ratio(up, reach)
    minus[window:] = 100.0 * _ratio(down, reach)
    directional = 100.0 * _ratio(np.abs(up - down), up + down)
    if directional.size >= window:
        mean = _average_direction(directional, np.logical_not(up + down > 0.0), window)
        index[2 * window - 1 :] = mean


def _movement_sum(x: Array, window: int) -> Array:
    """[T-window+1] decaying sums of x from bar window-1 on, after a plain sum of those before."""
    seed = float(np.add.accumulate(x[: window - 1])[-1]) if window > 1 else 0.0
    return decaying_sum(x[window - 1 :], seed, 1.0 - 1.0 / window)


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros(whole.size), where=whole > 0.0)


def _average_direction(directional: Array, undirected: NDArray[np.bool_], window: int) -> Array:
    """Wilder's mean of the directional index; a bar without direction repeats the mean before.

    Every stretch of bars with direction is a decaying sum that goes on from the total before it.
    """
    sums = np.empty(directional.size - window + 1)
    sums[0] = total = float(np.add.accumulate(directional[:window])[-1])
    rest, later = directional[window:], sums[1:]
    start = 0
    for stop in (*np.flatnonzero(undirected[window:]).tolist(), rest.size):
        later[start:stop] = decaying_sum(rest[start:stop], total, 1.0 - 1.0 / window)
        total = float(later[stop - 1]) if stop > start else total
        later[stop : stop + 1] = total
        start = stop + 1
    return sums * (1.0 / window)


def obv(close: Array, volume: Array) -> Array:
    """On-balance volume: added on a rise, taken off on a fall; starts with the first bar's volume.

    returns  [T] shares; only its changes mean something
    source   Granville (1963), New Key to Stock Market Profits
    """
    (out,) = over_runs(_obv, (close, volume), 1)
    return out


def _obv(close: Array, volume: Array, out: Array) -> None:
    out[0] = volume[0]
    now, before = close[1:], close[:-1]
    signed = np.where(now > before, volume[1:], np.where(now < before, -volume[1:], 0.0))
    out[1:] = decaying_sum(signed, float(volume[0]), 1.0)


def rolling_max(x: Array, window: int) -> Array:
    """Greatest of the last `window` bars.

    returns  [T] in the unit of `x`; NaN before bar window-1
    """
    require_window(window)
    (out,) = over_runs(_rolling, (x,), 1, window, np.maximum)
    return out


def rolling_min(x: Array, window: int) -> Array:
    """Least of the last `window` bars.

    returns  [T] in the unit of `x`; NaN before bar window-1
    """
    require_window(window)
    (out,) = over_runs(_rolling, (x,), 1, window, np.minimum)
    return out


def _rolling(x: Array, window: int, extreme: np.ufunc, out: Array) -> None:
    if x.size >= window:
        now, before, _ = blocks(x, window)
        found = extreme.accumulate(now, axis=1)
        older = extreme.accumulate(before[:, :0:-1], axis=1)[:, ::-1]
        found[:, :-1] = extreme(found[:, :-1], older)
        out[window - 1 :] = flat(found, x.size)[window - 1 :]


def stochastic(
    high: Array, low: Array, close: Array, window: int, smooth: int
) -> tuple[Array, Array]:
    """Stochastic oscillator: %K, where the close lies in the range of `window` bars, and %D.

    returns  two [T] in [0, 100]: %K, 50 where nothing moves, and %D, the mean of `smooth` %K;
             both NaN before bar window + smooth - 2, as in TA-Lib's STOCHF
    source   Lane (1984), Lane's Stochastics
    """
    require_window(window)
    require_window(smooth, name="smoothing window")
    fast, slow = over_runs(_stochastic, (high, low, close), 2, window, smooth)
    return fast, slow


def _stochastic(
    high: Array, low: Array, close: Array, window: int, smooth: int, fast: Array, slow: Array
) -> None:
    first = window + smooth - 2
    if close.size <= first:
        return
    highest, lowest = np.empty(close.size), np.empty(close.size)
    _rolling(high, window, np.maximum, highest)
    _rolling(low, window, np.minimum, lowest)
    highest, lowest, newest = (x[window - 1 :] for x in (highest, lowest, close))
    reach = highest - lowest
    part = np.divide(newest - lowest, reach, out=np.full(reach.size, 0.5), where=reach > 0.0)
    _sma(100.0 * part, smooth, slow[window - 1 :])
    fast[first:] = 100.0 * part[smooth - 1 :]


def vwap(high: Array, low: Array, close: Array, volume: Array, window: int) -> Array:
    """Mean of the typical price (high + low + close) / 3 of `window` bars, weighted by volume.

    returns  [T] USD; NaN before bar window-1 and where nothing was traded in the whole window
    """
    require_window(window)
    (out,) = over_runs(_vwap, (high, low, close, volume), 1, window)
    return out


def _vwap(high: Array, low: Array, close: Array, volume: Array, window: int, out: Array) -> None:
    if close.size < window:
        return
    now, before, level = blocks((high + low + close) / 3.0, window)
    traded, earlier, _ = blocks(volume, window)
    earlier[0] = 0.0
    weight = window_sums(traded, earlier)
    paid = window_sums((now - level) * traded, (before - level) * earlier)
    share = np.divide(paid, weight, out=np.full(weight.shape, np.nan), where=weight > 0.0)
    out[window - 1 :] = flat(level + share, close.size)[window - 1 :]
