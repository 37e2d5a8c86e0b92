"""The bars the exchange trades on, indexed by the moment they were complete."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, time
from decimal import Decimal

import numpy as np

from trader.core.errors import DataIntegrityError
from trader.core.market import (
    EXCHANGE_TIME_ZONE,
    Bar,
    BarSeries,
    Timeframe,
    from_ns,
    session_of,
    to_ns,
)
from trader.core.ports import MarketData
from trader.core.trading import fill_price, money


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedBar:
    """One bar with exact prices, USD per share; times are UTC nanoseconds."""

    symbol: str
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    opened_ns: int
    known_ns: int


class Prices:
    """Bars of every symbol; each is loaded whole once and read only up to the moment asked for."""

    def __init__(self, data: MarketData, timeframe: Timeframe) -> None:
        self.source = data.name
        self.symbols = frozenset(data.symbols(timeframe))
        self._data = data
        self._timeframe = timeframe
        self._loaded: dict[str, tuple[BarSeries, int]] = {}  # with the latest moment asked for

    def last_close(self, symbol: str, at_ns: int) -> Decimal | None:
        """Close of the newest bar that was complete at `at_ns`, or None before the first."""
        series, count = self._complete(symbol, at_ns)
        return fill_price(_sound(series, count - 1).close) if count else None

    def complete_between(self, symbol: str, after_ns: int, to_ns: int) -> list[tuple[int, int]]:
        """(available_at, timestamp) of each bar completed after `after_ns` and up to `to_ns`."""
        series, stop = self._complete(symbol, to_ns)
        start = int(np.searchsorted(series.available_at[:stop], after_ns, side="right"))
        known, opened = series.available_at[start:stop], series.timestamp[start:stop]
        return list(zip(known.tolist(), opened.tolist(), strict=True))

    def bar(self, symbol: str, known_ns: int) -> PricedBar:
        """The bar that became complete at `known_ns`; DataIntegrityError for an unsound one."""
        series, count = self._complete(symbol, known_ns)
        bar = _sound(series, count - 1)
        return PricedBar(
            symbol=symbol,
            open=money(bar.open),
            high=money(bar.high),
            low=money(bar.low),
            close=money(bar.close),
            opened_ns=int(series.timestamp[count - 1]),
            known_ns=known_ns,
        )

    def _complete(self, symbol: str, at_ns: int) -> tuple[BarSeries, int]:
        """The series and how many of its bars were complete at `at_ns`."""
        series, asked_ns = self._loaded.get(symbol, (None, 0))
        if series is None or (asked_ns < at_ns and series.available_at[-1] <= at_ns):
            series = self._data.bars(symbol, self._timeframe)
            if not len(series):
                raise DataIntegrityError(f"{symbol} has no {self._timeframe} bars at all")
            self._loaded[symbol] = (series, at_ns)
        return series, int(np.searchsorted(series.available_at, at_ns, side="right"))


def _sound(series: BarSeries, index: int) -> Bar:
    bar = series.bar(index)
    prices = (bar.open, bar.high, bar.low, bar.close)
    if not all(math.isfinite(price) and price > 0 for price in prices):
        raise DataIntegrityError(
            f"{bar.symbol} bar {bar.timestamp} has the prices {prices}; orders cannot trade on it"
        )
    return bar


def start_of_day(moment_ns: int) -> int:
    """Midnight in New York on the day of `moment_ns`, UTC nanoseconds."""
    day = session_of(from_ns(moment_ns))
    return to_ns(datetime.combine(day, time(), tzinfo=EXCHANGE_TIME_ZONE))
