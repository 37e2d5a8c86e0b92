"""Indicators of how much is traded."""

from __future__ import annotations

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.runs import Array
from trader.core.market import BarSeries


def obv(bars: BarSeries, kernels: KernelSet) -> Array:
    """[T] shares, on-balance volume; only its changes mean something."""
    return kernels.obv(bars.close, bars.volume)


def vwap(bars: BarSeries, window: int, kernels: KernelSet) -> Array:
    """[T] USD, typical price weighted by volume over `window` bars; NaN before bar window-1.

    NaN too where nothing was traded in the whole window.
    """
    return kernels.vwap(bars.high, bars.low, bars.close, bars.volume, window)
