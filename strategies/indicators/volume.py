"""Indicators of how much is traded."""

from __future__ import annotations

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.runs import Array
from trader.core.market import BarSeries


def obv(bars: BarSeries, kernels: KernelSet) -> Array:
    """[T] shares, on-balance volume; only its changes mean something."""
    return kernels.obv(bars.close, bars.volume)
