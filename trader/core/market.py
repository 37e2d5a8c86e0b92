"""Bars of market data, and the one guard that keeps later bars out of earlier decisions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import cached_property
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

EXCHANGE_TIME_ZONE = ZoneInfo("America/New_York")


class Timeframe(StrEnum):
    """Length of a bar, spelled as Alpaca spells it."""

    DAY = "1Day"
    HOUR = "1Hour"


def to_ns(moment: datetime) -> int:
    """Nanoseconds since 1970 of an aware datetime, exact to a microsecond; ValueError if naive."""
    if moment.tzinfo is None:
        raise ValueError(f"a time zone is missing from {moment!r}")
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds) * 1_000


def from_ns(ns: int) -> datetime:
    """Aware UTC datetime of nanoseconds since 1970, cut to the microsecond."""
    seconds, rest = divmod(int(ns), 1_000_000_000)
    return datetime.fromtimestamp(seconds, tz=UTC).replace(microsecond=rest // 1_000)


def session_of(moment: datetime) -> date:
    """The New York date a moment falls on: the session it belongs to while the exchange is open."""
    return moment.astimezone(EXCHANGE_TIME_ZONE).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar; prices in USD per share. A daily bar opens with its session."""

    symbol: str
    timeframe: Timeframe
    timestamp: datetime  # UTC, when the bar opens
    available_at: datetime  # UTC, when it is complete and may be known
    open: float
    high: float
    low: float
    close: float
    volume: float


@dataclass(frozen=True, kw_only=True, eq=False)
class BarSeries:
    """Bars of one symbol, oldest first.

    timestamp, available_at  [T] int64 nanoseconds since 1970 UTC
    open, high, low, close   [T] float64 USD per share
    volume                   [T] float64 shares
    source                   where the bars come from, e.g. "sample"
    adjustment               what the prices are adjusted for, e.g. "splits and dividends"
    splits                   those the prices still show, never one they are adjusted for
    """

    symbol: str
    timeframe: Timeframe
    timestamp: NDArray[np.int64]
    available_at: NDArray[np.int64]
    open: NDArray[np.float64]
    high: NDArray[np.float64]
    low: NDArray[np.float64]
    close: NDArray[np.float64]
    volume: NDArray[np.float64]
    source: str
    adjustment: str
    splits: tuple[tuple[date, float], ...] = field(default=())  # session, new shares per old share

    def __len__(self) -> int:
        return int(self.timestamp.size)

    def until(self, as_of: datetime) -> BarSeries:
        """Only the bars that were complete at `as_of`; arrays are views, nothing is copied."""
        return self.head(int(np.searchsorted(self.available_at, to_ns(as_of), side="right")))

    def head(self, count: int) -> BarSeries:
        """The first `count` bars."""
        return self.slice(0, count)

    def slice(self, start: int, stop: int) -> BarSeries:
        """Bars start..stop-1, as views."""
        part = slice(start, stop)
        timestamp = self.timestamp[part]
        known = self.splits
        if known:  # a later split is no more known than a later bar
            newest = session_of(from_ns(timestamp[-1])) if timestamp.size else date.min
            known = tuple(split for split in known if split[0] <= newest)
        return BarSeries(
            symbol=self.symbol,
            timeframe=self.timeframe,
            timestamp=timestamp,
            available_at=self.available_at[part],
            open=self.open[part],
            high=self.high[part],
            low=self.low[part],
            close=self.close[part],
            volume=self.volume[part],
            source=self.source,
            adjustment=self.adjustment,
            splits=known,
        )

    def bar(self, index: int) -> Bar:
        """The bar at `index`; negative counts from the newest. IndexError when there is none."""
        return Bar(
            symbol=self.symbol,
            timeframe=self.timeframe,
            timestamp=from_ns(self.timestamp[index]),
            available_at=from_ns(self.available_at[index]),
            open=float(self.open[index]),
            high=float(self.high[index]),
            low=float(self.low[index]),
            close=float(self.close[index]),
            volume=float(self.volume[index]),
        )

    @cached_property
    def sha256(self) -> str:
        """Hash of symbol, timeframe, adjustment, splits and every number, not of the source."""
        digest = hashlib.sha256(
            f"{self.symbol}|{self.timeframe}|{self.adjustment}|{self.splits}".encode()
        )
        for times in (self.timestamp, self.available_at):
            digest.update(np.ascontiguousarray(times, dtype="<i8").tobytes())
        for prices in (self.open, self.high, self.low, self.close, self.volume):
            digest.update(np.ascontiguousarray(prices, dtype="<f8").tobytes())
        return digest.hexdigest()
