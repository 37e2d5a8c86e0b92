"""Invented daily bars for benchmarks: always the same for a seed, without ties between averages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BARS, VOLATILITY, SEED = 1_260, 0.02, 7
WICK = 0.005  # of the price: how far highs and lows reach out, and opens jump
FALLS, DEEPEST, CALM = 0.75, 0.02, 0.002  # share of falling days, the deepest, and their wicks


class Market(NamedTuple):
    """Bars of one symbol; every array is [T] float64, oldest first."""

    open: NDArray[np.float64]
    high: NDArray[np.float64]
    low: NDArray[np.float64]
    close: NDArray[np.float64]
    volume: NDArray[np.float64]


def lognormal(
    bars: int = BARS, seed: int = SEED, *, volatility: float = VOLATILITY, wick: float = WICK
) -> Market:
    """Bars whose returns are normal with a deviation of `volatility`, without drift."""
    random = np.random.default_rng(seed)
    return _around(random, random.normal(0.0, volatility, bars), gap=wick, wick=wick)


def minutes(bars: int, seed: int = SEED) -> Market:
    """Many short bars that wander as far as `BARS` days do, so that prices keep their size."""
    scale = (BARS / max(bars, BARS)) ** 0.5
    return lognormal(bars, seed, volatility=VOLATILITY * scale, wick=WICK * scale)


def shallow(bars: int = BARS, seed: int = SEED) -> Market:
    """Days that fall often and little and rise seldom and much, without drift.

    After a rise no day falls by 1.5 average ranges, so a stop that far below a breakout is never
    touched on the bar of the entry, though often later: rules that look at stops on that bar and
    rules that do not come to the same trades.
    """
    random = np.random.default_rng(seed)
    falling = random.random(bars) < FALLS
    rise = DEEPEST * FALLS / (1.0 - FALLS)
    steps = np.where(falling, -random.uniform(0.0, DEEPEST, bars), random.uniform(0.0, rise, bars))
    return _around(random, steps, gap=CALM, wick=CALM)


def _around(
    random: np.random.Generator, steps: NDArray[np.float64], *, gap: float, wick: float
) -> Market:
    close = 100.0 * np.exp(np.cumsum(steps))
    before = np.concatenate(([100.0], close[:-1]))
    opened = before * np.exp(random.uniform(-gap, gap, close.size))
    up, down = (random.uniform(0.0, wick, close.size) for _ in range(2))
    return Market(
        open=opened,
        high=np.maximum(opened, close) * np.exp(up),
        low=np.minimum(opened, close) * np.exp(-down),
        close=close,
        volume=random.integers(1_000_000, 9_000_000, close.size).astype(np.float64),
    )
