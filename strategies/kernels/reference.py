"""The definition of every kernel, in plain NumPy and Python, one bar after the other.

Conventions are TA-Lib's: recursive averages are seeded by a simple mean and the warm-up is NaN.
Inputs and outputs are [T] float64, oldest first; prices in USD per share, windows in bars. A NaN or
an infinity in any input ends a series; what follows it is warmed up anew. Every function raises
ValueError for a window below 1 and for inputs of different length. Value t depends on bars 0..t
only, to the last bit.
"""

# ruff: noqa: A001, A002, PLR0917 - kernels take arrays by position; open and exit are the field's words

from __future__ import annotations

import math

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


def sma(x: Array, window: int) -> Array:
    """Simple moving average, summed afresh for every bar so that a huge print leaves no drift.

    returns  [T] in the unit of `x`; NaN before bar window-1; exactly `x` where nothing moves
    """
    require_window(window)
    (out,) = over_runs(_sma, (x,), 1, window)
    return out


def _sma(x: Array, window: int, out: Array) -> None:
    if x.size < window:
        return
    newest = x[window - 1 :]
    total = np.zeros(newest.size)
    for k in range(window):  # oldest first; distances from the newest, so equal prices cancel
        total += x[k : k + newest.size] - newest
    out[window - 1 :] = newest + total / window


def ema(x: Array, window: int) -> Array:
    """Exponential moving average, alpha 2 / (window + 1), seeded by the first window's mean.

    returns  [T] in the unit of `x`; NaN before bar window-1
    """
    require_window(window)
    (out,) = over_runs(_ema, (x,), 1, window)
    return out


def _ema(x: Array, window: int, out: Array) -> None:
    _recursive_mean(x, window, 2.0 / (window + 1.0), out)


def _recursive_mean(x: Array, window: int, alpha: float, out: Array) -> None:
    if x.size < window:
        return
    _sma(x[:window], window, out[:window])
    mean = out[window - 1]
    for t in range(window, x.size):
        mean += (x[t] - mean) * alpha
        out[t] = mean


def rsi(close: Array, window: int) -> Array:
    """Relative strength index, Wilder smoothing seeded by the mean of the first `window` changes.

    returns  [T] in [0, 100]; NaN before bar `window`; 50 while nothing has moved
    source   Wilder (1978), New Concepts in Technical Trading Systems; TA-Lib but for the flat case
    """
    require_window(window)
    (out,) = over_runs(_rsi, (close,), 1, window)
    return out


def _rsi(close: Array, window: int, out: Array) -> None:
    if close.size <= window:
        return
    change = np.diff(close)
    gain = np.empty(change.size)
    loss = np.empty(change.size)
    _recursive_mean(np.maximum(change, 0.0), window, 1.0 / window, gain)
    _recursive_mean(np.maximum(-change, 0.0), window, 1.0 / window, loss)
    for t in range(window, close.size):
        moved = gain[t - 1] + loss[t - 1]
        out[t] = 100.0 * (gain[t - 1] / moved) if moved > 0.0 else 50.0


def macd(close: Array, fast: int, slow: int, signal: int) -> tuple[Array, Array, Array]:
    """Moving average convergence divergence: line, signal line and histogram (line - signal line).

    returns  three [T], USD; all NaN before bar slow + signal - 2, as in TA-Lib
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
    lead = slow - fast
    near, far = np.full(x.size, np.nan), np.full(x.size, np.nan)
    _ema(x[lead:], fast, near[lead:])
    _ema(x, slow, far)
    distance = (near - far)[slow - 1 :]
    smooth = np.full(distance.size, np.nan)
    _ema(distance, signal, smooth)
    line[first:] = distance[signal - 1 :]
    signal_line[first:] = smooth[signal - 1 :]
    histogram[first:] = line[first:] - signal_line[first:]


def true_range(high: Array, low: Array, close: Array) -> Array:
    """Greatest of high - low, |high - previous close| and |low - previous close|.

    returns  [T] USD, >= 0; NaN at bar 0, which has no previous close
    source   Wilder (1978)
    """
    (out,) = over_runs(_true_range, (high, low, close), 1)
    return out


def _true_range(high: Array, low: Array, close: Array, out: Array) -> None:
    before = close[:-1]
    reach = np.maximum(np.abs(high[1:] - before), np.abs(low[1:] - before))
    out[1:] = np.maximum(high[1:] - low[1:], reach)


def atr(high: Array, low: Array, close: Array, window: int) -> Array:
    """Average true range with Wilder smoothing, seeded by the mean of true ranges 1..window.

    returns  [T] USD, >= 0; NaN before bar `window`
    source   Wilder (1978)
    """
    require_window(window)
    (out,) = over_runs(_atr, (high, low, close), 1, window)
    return out


def _atr(high: Array, low: Array, close: Array, window: int, out: Array) -> None:
    ranges = np.empty(high.size)
    _true_range(high, low, close, ranges)
    _recursive_mean(ranges[1:], window, 1.0 / window, out[1:])


def bollinger(x: Array, window: int, deviations: float = 2.0) -> tuple[Array, Array, Array]:
    """Upper, middle, lower band: the mean and `deviations` population deviations (ddof 0) off it.

    returns  three [T] in the unit of `x`; NaN before bar window-1
    source   Bollinger; the deviation is taken in two passes over every window, so it cannot drift
    """
    require_window(window)
    middle, spread = over_runs(_deviation, (x,), 2, window, 0)
    return middle + deviations * spread, middle, middle - deviations * spread


def _deviation(x: Array, window: int, ddof: int, mean: Array, out: Array) -> None:
    if x.size < window:
        return
    _sma(x, window, mean)
    centre = mean[window - 1 :]
    squares = np.zeros(centre.size)
    for k in range(window):  # oldest first
        squares += np.square(x[k : k + centre.size] - centre)
    out[window - 1 :] = np.sqrt(squares / (window - ddof))


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
    ranges = np.empty(high.size)
    _true_range(high, low, close, ranges)
    alpha = 1.0 / window
    up_sum = down_sum = range_sum = 0.0
    seed = mean = 0.0
    for t in range(1, high.size):
        rise = high[t] - high[t - 1]
        fall = low[t - 1] - low[t]
        up = rise if rise > 0.0 and rise > fall else 0.0
        down = fall if fall > 0.0 and fall > rise else 0.0
        decay = alpha if t >= window else 0.0
        up_sum = up_sum - up_sum * decay + up
        down_sum = down_sum - down_sum * decay + down
        range_sum = range_sum - range_sum * decay + ranges[t]
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


def obv(close: Array, volume: Array) -> Array:
    """On-balance volume: added on a rise, taken off on a fall; starts with the first bar's volume.

    returns  [T] shares; only its changes mean something
    source   Granville (1963), New Key to Stock Market Profits
    """
    (out,) = over_runs(_obv, (close, volume), 1)
    return out


def _obv(close: Array, volume: Array, out: Array) -> None:
    out[0] = volume[0]
    for t in range(1, close.size):
        out[t] = out[t - 1] + volume[t] * np.sign(close[t] - close[t - 1])


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
    """What became of every entry of a rule, each traded alone with a fixed stop and no target.

    open, high, low, close  [T] USD, sound bars
    entry, exit    [T] bool, where the rule fires; decided at the close
    stop_distance  [T] USD, the risk R taken at a bar; unless finite and positive nothing is traded
    slippage       fraction of the price, against the trader on both sides

    returns  entry_index [K] the bar of the entry fill: the one after the signal
             exit_index  [K] the bar of the exit fill, -1 while the trade is open
             mfe_r       [K] highest favourable excursion so far in R, >= 0; of the exit bar only
                         the open counts, since its high may have come after the stop
             result_r    [K] (exit fill - entry fill) / R; NaN while the trade is open

    The stop is the one a live candidate gets, known before the fill: close × (1 + slippage) - R.
    """
    open, high, low, close, risk = float_arrays(open, high, low, close, stop_distance)
    entry, exit = bool_arrays(open.size, entry, exit)
    signals = tradable(entry, risk)
    trades = [_excursion(open, high, low, close, risk, exit, int(i), slippage) for i in signals]
    return (
        signals + 1,  # rule 1: decided at a close, filled at the next open
        np.array([trade[0] for trade in trades], dtype=np.int64),
        np.array([trade[1] for trade in trades], dtype=np.float64),
        np.array([trade[2] for trade in trades], dtype=np.float64),
    )


def _excursion(
    open: Array,
    high: Array,
    low: Array,
    close: Array,
    stop_distance: Array,
    exit: NDArray[np.bool_],
    signal: int,
    slippage: float,
) -> tuple[int, float, float]:
    risk = stop_distance[signal]
    stop = close[signal] * (1.0 + slippage) - risk
    paid = open[signal + 1] * (1.0 + slippage)
    best = 0.0
    for t in range(signal + 1, open.size):
        if t > signal + 1 and exit[t - 1]:  # rule 3: an exit pending at the open precedes the stop
            price = open[t]
        elif low[t] <= stop:  # rule 5: from the entry bar on
            price = min(open[t], stop)  # rule 4: a gap leaves at the open; rule 8: else at the stop
        else:
            best = max(best, (high[t] - paid) / risk)
            continue
        best = max(best, (open[t] - paid) / risk)  # rule 6: the rest of this bar is not ours
        return t, best, (price * (1.0 - slippage) - paid) / risk
    return -1, best, math.nan  # rule 13: still open at the end
