"""The only definitions of return, Sharpe, drawdown and their kin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MINIMUM_RETURNS_FOR_SHARPE = 30
ROUNDING_NOISE = 1e-14  # deviation of equal returns computed in float64
MINIMUM_PERIODS_FOR_ANNUAL = 0.25  # of a year


def returns(equity: NDArray[np.float64], initial: float) -> NDArray[np.float64]:
    """[T] simple returns per bar; the first compares bar 0 with the initial equity.

    equity   [T] float64 USD at each bar's close, oldest first
    initial  USD before the first bar
    """
    return equity / np.concatenate(([initial], equity[:-1])) - 1.0


def sharpe(equity: NDArray[np.float64], initial: float, periods_per_year: float) -> float | None:
    """Annualised Sharpe ratio of the bar returns, standard deviation with ddof 1, risk-free rate 0.

    returns  mean / deviation × sqrt(periods_per_year); None for fewer than two bars, no variance
             beyond rounding, or an account that was ever worth nothing
    source   Sharpe (1994), The Sharpe Ratio
    """
    if equity.size < 2 or initial <= 0.0 or not bool((equity > 0.0).all()):
        return None
    change = returns(equity, initial)
    deviation = float(change.std(ddof=1))
    if not deviation > ROUNDING_NOISE:
        return None
    return float(change.mean()) / deviation * math.sqrt(periods_per_year)


def sortino(equity: NDArray[np.float64], initial: float, periods_per_year: float) -> float | None:
    """Annualised Sortino ratio of the bar returns against a target return of 0.

    returns  mean / sqrt(mean(min(return, 0)²)) × sqrt(periods_per_year), both means over all bars;
             None for fewer than two bars, without a loss beyond rounding, or for an account that
             was ever worth nothing
    source   Sortino and Price (1994), Performance Measurement in a Downside Risk Framework
    """
    if equity.size < 2 or initial <= 0.0 or not bool((equity > 0.0).all()):
        return None
    change = returns(equity, initial)
    downside = math.sqrt(float(np.square(np.minimum(change, 0.0)).mean()))
    if not downside > ROUNDING_NOISE:
        return None
    return float(change.mean()) / downside * math.sqrt(periods_per_year)


def drawdowns(equity: NDArray[np.float64], initial: float) -> NDArray[np.float64]:
    """[T] fall below the highest equity so far, a fraction <= 0; the peak starts at `initial`."""
    peak = np.maximum(np.maximum.accumulate(equity), initial)
    return equity / peak - 1.0


def max_drawdown(equity: NDArray[np.float64], initial: float) -> float:
    """Deepest drawdown, a fraction <= 0; 0.0 for an empty curve."""
    return float(drawdowns(equity, initial).min()) if equity.size else 0.0


def total_return(equity: NDArray[np.float64], initial: float) -> float:
    """Last equity over the initial one, minus 1; 0.0 for an empty curve."""
    return float(equity[-1] / initial - 1.0) if equity.size else 0.0


def annual_return(total: float, bars: int, periods_per_year: float) -> float | None:
    """Compound annual growth rate; None below a quarter of a year, where it magnifies noise."""
    years = bars / periods_per_year
    if years < MINIMUM_PERIODS_FOR_ANNUAL or total <= -1.0:
        return None
    return float((1.0 + total) ** (1.0 / years) - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """What an equity curve and its closed trades amount to; None where the data are too few."""

    initial_equity: float
    final_equity: float
    total_return: float
    annual_return: float | None
    sharpe: float | None
    sharpe_count: int  # bar returns behind the Sharpe ratio
    max_drawdown: float
    trades: int  # closed
    open_trades: int
    hit_rate: float | None  # share of closed trades that made money
    exposure: float  # share of bars that ended with a position
    costs: float  # fees and slippage paid, USD


def performance(
    *,
    equity: NDArray[np.float64],
    initial: float,
    periods_per_year: float,
    trade_profits: list[float],
    open_trades: int,
    bars_exposed: int,
    costs: float,
) -> Performance:
    """Summarise an equity curve [T] and the profits of its closed trades, all in USD."""
    bars = int(equity.size)
    total = total_return(equity, initial)
    enough = bars >= MINIMUM_RETURNS_FOR_SHARPE
    winners = sum(profit > 0.0 for profit in trade_profits)
    return Performance(
        initial_equity=initial,
        final_equity=float(equity[-1]) if bars else initial,
        total_return=total,
        annual_return=annual_return(total, bars, periods_per_year),
        sharpe=sharpe(equity, initial, periods_per_year) if enough else None,
        sharpe_count=bars,
        max_drawdown=max_drawdown(equity, initial),
        trades=len(trade_profits),
        open_trades=open_trades,
        hit_rate=winners / len(trade_profits) if trade_profits else None,
        exposure=bars_exposed / bars if bars else 0.0,
        costs=costs,
    )
