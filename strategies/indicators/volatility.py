"""Indicators of how far the price swings."""

from __future__ import annotations

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.runs import Array
from trader.core.market import BarSeries


def true_range(bars: BarSeries, kernels: KernelSet) -> Array:
    """[T] USD; NaN at bar 0."""
    return kernels.true_range(bars.high, bars.low, bars.close)


def atr(bars: BarSeries, window: int, kernels: KernelSet) -> Array:
    """[T] USD, Wilder's average true range; NaN before bar `window`."""
    return kernels.atr(bars.high, bars.low, bars.close, window)


def bollinger(
    bars: BarSeries, window: int, deviations: float, kernels: KernelSet
) -> tuple[Array, Array, Array]:
    """Upper, middle and lower band of the closes, each [T] USD; NaN before bar window-1."""
    return kernels.bollinger(bars.close, window, deviations)


def realised_volatility(
    bars: BarSeries, window: int, periods_per_year: float, kernels: KernelSet
) -> Array:
    """[T] fraction per year, deviation of `window` log returns; NaN before bar `window`."""
    return kernels.realised_volatility(bars.close, window, periods_per_year)


def rolling_max(bars: BarSeries, window: int, kernels: KernelSet) -> Array:
    """[T] USD, greatest high of the last `window` bars; NaN before bar window-1."""
    return kernels.rolling_max(bars.high, window)


def rolling_min(bars: BarSeries, window: int, kernels: KernelSet) -> Array:
    """[T] USD, least low of the last `window` bars; NaN before bar window-1."""
    return kernels.rolling_min(bars.low, window)
