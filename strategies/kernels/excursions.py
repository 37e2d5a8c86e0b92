"""The definition of `excursions`, trade by trade in plain Python."""

# ruff: noqa: A001, A002, PLR0917 - kernels take arrays by position; open and exit are the field's words

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.runs import Array, Excursions, bool_arrays, float_arrays, tradable


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
