"""Small hand-written markets for pipeline tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import numpy as np

from trader.core.clock import new_york
from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe


def daily(
    closes: Sequence[float],
    *,
    symbol: str = "AAPL",
    first: date = date(2020, 1, 2),
    spread: float = 1.0,
    **changes: Mapping[int, float],
) -> BarSeries:
    """Daily bars around closes: open at the close before, high and low `spread` beyond both.

    changes  "open", "high", "low" -> {bar index: price} to replace single prices
    """
    calendar = new_york()
    sessions = calendar.between(first, date(first.year + 4, 12, 31))[: len(closes)]
    close = np.array(closes, dtype=np.float64)
    opened = np.concatenate((close[:1], close[:-1]))
    columns = {
        "open": opened,
        "high": np.maximum(opened, close) + spread,
        "low": np.minimum(opened, close) - spread,
    }
    for name, prices in changes.items():
        for index, price in prices.items():
            columns[name][index] = price
    return BarSeries(
        symbol=symbol,
        timeframe=Timeframe.DAY,
        timestamp=calendar.opens_ns(sessions),
        available_at=calendar.closes_ns(sessions),
        close=close,
        volume=np.full(close.shape, 1e6),
        source="hand",
        adjustment="none",
        **columns,
    )


class HandData:
    """A market of hand-written series."""

    name = "hand"

    def __init__(self, *series: BarSeries) -> None:
        self._series = {bars.symbol: bars for bars in series}

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:
        return tuple(s for s, bars in self._series.items() if bars.timeframe is timeframe)

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        found = self._series[symbol]
        if until is not None:
            found = found.until(until)
        if not len(found):
            raise DataIntegrityError(f"{symbol}: no bars before {until}")
        return found


def wave(
    count: int, *, base: float = 100.0, swing: float = 12.0, period: int = 60, drift: float = 0.05
) -> list[float]:
    """Closes of a slow wave on a drift: every strategy crosses in it many times."""
    steps = np.arange(count)
    return [
        float(v)
        for v in np.round(base + drift * steps + swing * np.sin(2 * np.pi * steps / period), 2)
    ]
