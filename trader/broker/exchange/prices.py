"""The bars the exchange trades on, indexed by the moment they were complete."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, time
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import numpy as np

from trader.broker.exchange.postings import Happening
from trader.broker.exchange.records import Ticket
from trader.core.costs import BPS, Costs
from trader.core.errors import DataIntegrityError
from trader.core.instruments import is_crypto
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
from trader.core.trading import Side, fill_price, money

LARGEST_RATE = 10_000  # new or old shares in a split
COIN_STEP = Decimal("1e-9")  # a coin may cost less than a hundredth of a cent


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedBar:
    """One bar with exact prices, USD per share; times are UTC nanoseconds."""

    symbol: str
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: float  # shares
    opened_ns: int
    known_ns: int


class Prices:
    """Bars of every symbol; each is loaded whole once and read only up to the moment asked for.

    A split that was announced is not in the data: the bars are shown as if it were.
    """

    def __init__(self, data: MarketData, timeframe: Timeframe) -> None:
        self.source = data.name
        self.symbols = frozenset(data.symbols(timeframe))
        self._data = data
        self._timeframe = timeframe
        self._announced: dict[str, list[Happening]] = {}
        self._loaded: dict[str, tuple[BarSeries, int]] = {}  # with the latest moment asked for
        self._splits: dict[str, tuple[Happening, ...]] = {}

    def announce(self, happenings: Iterable[Happening]) -> None:
        """Know these, in place of what was announced before."""
        self._announced, self._loaded = {}, {}
        for happening in happenings:
            self._announced.setdefault(happening.symbol, []).append(happening)

    def happenings(self, symbol: str) -> tuple[Happening, ...]:
        """Splits that the bars show, and all that was announced; in no order."""
        announced = self._announced.get(symbol, ())
        return (*self.splits(symbol), *(one for one in announced if one.ratio == 1))

    def is_announced(self, happening: Happening) -> bool:
        """Whether it was announced, and is not only seen in the bars."""
        return happening in self._announced.get(happening.symbol, ())

    def splits(self, symbol: str) -> tuple[Happening, ...]:
        """Splits, shown or announced; whether one has taken effect, its time must say."""
        if symbol not in self._loaded:
            self._complete(symbol, 0)
        return self._splits[symbol]

    def complete(self, symbol: str, at_ns: int) -> BarSeries:
        """The bars that were complete at `at_ns`."""
        series, count = self._complete(symbol, at_ns)
        return series.head(count)

    def last_close(self, symbol: str, at_ns: int) -> Decimal | None:
        """Close of the newest bar that was complete at `at_ns`, or None before the first.

        After a split it is what the close is worth for one of the new shares.
        """
        series, count = self._complete(symbol, at_ns)
        if not count:
            return None
        close = booked(money(_sound(series, count - 1).close), symbol)
        for split in self._splits[symbol]:
            if series.timestamp[count - 1] < split.at_ns <= at_ns:
                close = close * split.ratio.denominator / split.ratio.numerator
                close = close.quantize(COIN_STEP)
        return close

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
            volume=bar.volume,
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
            announced = [one for one in self._announced.get(symbol, ()) if one.ratio != 1]
            self._splits[symbol] = (*_shown_splits(series), *announced)
            for split in announced:
                series = _with_split(series, split)
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


def _shown_splits(series: BarSeries) -> list[Happening]:
    """Splits that the bars show, each from the opening of the first bar that does."""
    found = []
    for session, ratio in series.splits:
        midnight_ns = to_ns(datetime.combine(session, time(), tzinfo=EXCHANGE_TIME_ZONE))
        first = int(np.searchsorted(series.timestamp, midnight_ns))
        if first < len(series):
            found.append(
                Happening(
                    symbol=series.symbol,
                    session=session,
                    at_ns=int(series.timestamp[first]),
                    ratio=Fraction(ratio).limit_denominator(LARGEST_RATE),
                )
            )
    return found


def _with_split(series: BarSeries, split: Happening) -> BarSeries:
    """`series` as if its bars showed `split`."""
    ratio = np.where(series.timestamp >= split.at_ns, float(split.ratio), 1.0)
    return replace(
        series,
        open=series.open / ratio,
        high=series.high / ratio,
        low=series.low / ratio,
        close=series.close / ratio,
        volume=series.volume * ratio,
    )


def start_of_day(moment_ns: int) -> int:
    """Midnight in New York on the day of `moment_ns`, UTC nanoseconds."""
    day = session_of(from_ns(moment_ns))
    return to_ns(datetime.combine(day, time(), tzinfo=EXCHANGE_TIME_ZONE))


def booked(price: Decimal, symbol: str) -> Decimal:
    """`price` rounded to the step that fills of `symbol` are booked in, USD per share or coin."""
    if is_crypto(symbol):
        return price.quantize(COIN_STEP, rounding=ROUND_HALF_EVEN)
    return fill_price(price)


def slipped(costs: Costs, price: Decimal, ticket: Ticket) -> Decimal:
    """Fill price of a market or stop order that trades at `price`, moved against the trader."""
    if not is_crypto(ticket.symbol):
        return costs.slipped(price, ticket.side)
    away = money(costs.slippage_bps) * BPS
    return booked(price * (1 + away if ticket.side is Side.BUY else 1 - away), ticket.symbol)
