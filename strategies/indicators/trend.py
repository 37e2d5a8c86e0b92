"""Indicators of where the price is going."""

from __future__ import annotations

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.runs import Array
from trader.core.market import BarSeries


def sma(bars: BarSeries, window: int, kernels: KernelSet) -> Array:
    """[T] USD, mean of the last `window` closes; NaN before bar window-1."""
    return kernels.sma(bars.close, window)


def ema(bars: BarSeries, window: int, kernels: KernelSet) -> Array:
    """[T] USD, exponential mean of the closes, alpha 2 / (window + 1); NaN before bar window-1."""
    return kernels.ema(bars.close, window)


def adx(bars: BarSeries, window: int, kernels: KernelSet) -> tuple[Array, Array, Array]:
    """ADX, +DI and -DI, each [T] in [0, 100]; ADX is NaN before bar 2 × window - 1."""
    return kernels.adx(bars.high, bars.low, bars.close, window)
