"""Indicators of how fast the price is moving."""

from __future__ import annotations

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.runs import Array
from trader.core.market import BarSeries


def rsi(bars: BarSeries, window: int, kernels: KernelSet) -> Array:
    """[T] in [0, 100], Wilder's relative strength of the closes; NaN before bar `window`."""
    return kernels.rsi(bars.close, window)


def macd(
    bars: BarSeries, fast: int, slow: int, signal: int, kernels: KernelSet
) -> tuple[Array, Array, Array]:
    """Line, signal line and histogram, each [T] USD; NaN before bar slow + signal - 2."""
    return kernels.macd(bars.close, fast, slow, signal)


def stochastic(
    bars: BarSeries, window: int, smooth: int, kernels: KernelSet
) -> tuple[Array, Array]:
    """%K and %D, each [T] in [0, 100]: where the close lies in the range of `window` bars.

    %D is the mean of `smooth` %K; both are NaN before bar window + smooth - 2.
    """
    return kernels.stochastic(bars.high, bars.low, bars.close, window, smooth)
