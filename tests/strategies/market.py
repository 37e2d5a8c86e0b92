"""Bars for the tests of the strategies: real ones, walks, and series made to break a kernel."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

from trader.core.market import BarSeries, Timeframe

REFERENCE_BARS = Path(__file__).parents[1] / "data" / "talib_reference_252_bars.csv.gz"
DAY_NS = 86_400 * 10**9


def series(open_, high, low, close, volume) -> BarSeries:
    """Daily bars from five arrays."""
    columns = [np.asarray(x, dtype=np.float64) for x in (open_, high, low, close, volume)]
    timestamp = np.arange(columns[0].size, dtype=np.int64) * DAY_NS
    return BarSeries(
        symbol="TEST",
        timeframe=Timeframe.DAY,
        timestamp=timestamp,
        available_at=timestamp + DAY_NS // 4,
        open=columns[0],
        high=columns[1],
        low=columns[2],
        close=columns[3],
        volume=columns[4],
        source="test",
        adjustment="none",
    )


def closes(values) -> BarSeries:
    """Daily bars that open, peak and bottom at their close."""
    close = np.asarray(values, dtype=np.float64)
    return series(close, close, close, close, np.full(close.size, 1_000.0))


def walk(size: int, *, seed: int = 1, scale: float = 100.0, tick: float | None = None) -> BarSeries:
    """A random walk of sound bars; `tick` rounds prices, so that ties happen."""
    random = np.random.default_rng(seed)
    close = scale * np.exp(np.cumsum(random.normal(0.0, 0.02, size)))
    open_ = close * np.exp(random.normal(0.0, 0.01, size))
    high = np.maximum(open_, close) * np.exp(np.abs(random.normal(0.0, 0.01, size)))
    low = np.minimum(open_, close) * np.exp(-np.abs(random.normal(0.0, 0.01, size)))
    if tick:
        open_, high, low, close = (np.round(x / tick) * tick for x in (open_, high, low, close))
    return series(open_, high, low, close, np.round(random.uniform(1e5, 1e6, size)))


def reference_bars() -> BarSeries:
    """The 252 bars of TA-Lib's regression test."""
    with gzip.open(REFERENCE_BARS, "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    names = ("open", "high", "low", "close", "volume")
    return series(*([float(row[name]) for row in rows] for name in names))


def scaled(bars: BarSeries, factor: float) -> BarSeries:
    """The same bars with every price times `factor`."""
    prices = (bars.open, bars.high, bars.low, bars.close)
    return series(*(x * factor for x in prices), bars.volume)


def with_holes(bars: BarSeries, *holes: tuple[str, int, float]) -> BarSeries:
    """The same bars with single values replaced: (column, bar, value)."""
    columns = {
        name: getattr(bars, name).copy() for name in ("open", "high", "low", "close", "volume")
    }
    for name, index, value in holes:
        columns[name][index] = value
    return series(*columns.values())


def adversarial(window: int = 14) -> dict[str, BarSeries]:
    """Series on which kernels have been seen to break, by what is wrong with them."""
    rising = np.arange(1.0, 101.0)
    flat_then_jump = np.concatenate(
        (np.full(60, 10.0), [1e16], np.full(60, 10.0), np.full(9, 11.0))
    )
    usual = walk(160, seed=3)
    return {
        "empty": walk(0),
        "one bar": walk(1),
        "one short of the window": walk(window - 1),
        "exactly the window": walk(window),
        "one more than the window": walk(window + 1),
        "constant": closes(np.full(100, 0.1)),
        "rising": closes(rising),
        "falling": closes(rising[::-1]),
        "flat, then a huge print": closes(flat_then_jump),
        "moves, then flat": closes(np.concatenate((walk(50).close, np.full(700, 42.0)))),
        "ties": walk(300, seed=5, tick=1.0),
        "tiny prices": scaled(usual, 1e-302),
        "great prices": scaled(usual, 1e10),
        "holes": with_holes(
            usual,
            ("close", 40, np.nan),
            ("high", 41, np.nan),
            ("low", 90, np.inf),
            ("close", 159, np.nan),
        ),
        "a hole at the start": with_holes(usual, ("close", 0, -np.inf)),
        "nothing but holes": closes(np.full(50, np.nan)),
        "zero and negative": closes(np.concatenate((rising[:40], [0.0, -5.0], rising[:40]))),
    }
