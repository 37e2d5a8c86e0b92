"""The exchange's bars in the lengths, adjustments and timestamps that Alpaca's data has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trader.broker.exchange.refusal import bad_data_request
from trader.core.clock import SessionCalendar
from trader.core.market import (
    EXCHANGE_TIME_ZONE,
    BarSeries,
    Timeframe,
    from_ns,
    session_of,
    to_ns,
)

FRAME = re.compile(r"(\d{1,2})(Min|T|Hour|H|Day|D|Week|W|Month|M)", re.ASCII)
SPELLINGS = {"T": "Min", "H": "Hour", "D": "Day", "W": "Week", "M": "Month"}
COUNTS = {
    "Min": range(1, 60),
    "Hour": range(1, 24),
    "Day": range(1, 2),
    "Week": range(1, 2),
    "Month": (1, 2, 3, 4, 6, 12),
}
MINUTE_NS = 60 * 10**9
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS
LONGEST_NS = {"Min": 0, "Hour": DAY_NS, "Day": 2 * DAY_NS, "Week": 9 * DAY_NS}
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frame:
    """How long a bar is: so many minutes, hours, days, weeks or months."""

    count: int
    unit: str

    @classmethod
    def of(cls, text: str) -> Frame:
        """The words of Alpaca, 1Day, 30Min, 1D, 30T; RefusalError for what it does not know."""
        found = FRAME.fullmatch(text)
        if found is not None:
            unit = SPELLINGS.get(found[2], found[2])
            if int(found[1]) in COUNTS[unit]:
                return cls(int(found[1]), unit)
        raise bad_data_request(f"invalid timeframe: {text}")

    @property
    def length_ns(self) -> int:
        """Nanoseconds of a bar of minutes or hours."""
        return self.count * (MINUTE_NS if self.unit == "Min" else HOUR_NS)

    @property
    def longest_ns(self) -> int:
        """More nanoseconds than any one bar lasts."""
        return LONGEST_NS.get(self.unit, (31 * self.count + 1) * DAY_NS)


@dataclass(frozen=True, slots=True)
class Rows:
    """Bars as Alpaca tells them. at: [T] int64 ns, its `t`; the others [T] float64."""

    at: NDArray[np.int64]
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats

    def __len__(self) -> int:
        return int(self.at.size)


@dataclass(frozen=True, slots=True)
class Step:
    """Prices before `at_ns` are divided by `prices`, volumes multiplied by `volumes`."""

    at_ns: int
    prices: float
    volumes: float


def split_step(at_ns: int, ratio: Fraction) -> Step:
    """How a split of `ratio` new shares for an old one adjusts what came before it."""
    return Step(at_ns, float(ratio), float(ratio))


def dividend_step(at_ns: int, per_share: float, close_before: float) -> Step:
    """How a cash dividend adjusts what came before it: by its part of the close before."""
    return Step(at_ns, 1.0 / (1.0 - per_share / close_before), 1.0)


def adjusted(series: BarSeries, steps: Iterable[Step]) -> BarSeries:
    """`series` with every step taken in what lies before it; nothing is rounded."""
    divisor, factor = np.ones(len(series)), np.ones(len(series))
    for step in steps:
        before = int(np.searchsorted(series.timestamp, step.at_ns))
        divisor[:before] *= step.prices
        factor[:before] *= step.volumes
    return BarSeries(
        symbol=series.symbol,
        timeframe=series.timeframe,
        timestamp=series.timestamp,
        available_at=series.available_at,
        open=series.open / divisor,
        high=series.high / divisor,
        low=series.low / divisor,
        close=series.close / divisor,
        volume=series.volume * factor,
        source=series.source,
        adjustment=series.adjustment,
    )


def framed(
    series: BarSeries, frame: Frame, calendar: SessionCalendar, first_ns: int, last_ns: int
) -> Rows:
    """The bars whose `t` lies between `first_ns` and `last_ns`, both included.

    Bars as long as the exchange's own open when those do. Longer ones are put together: hours from
    the session's opening on, days, weeks and months begin at midnight in New York, and the newest
    one may still be under way. Of shorter ones only the last piece of each bar of the exchange is
    told, with everything that happened in it, as if no trade had come earlier: nothing is known
    before it was, and put together again they are the exchange's bars.
    """
    whole = series.slice(
        int(np.searchsorted(series.timestamp, first_ns - 2 * DAY_NS)),
        int(np.searchsorted(series.timestamp, last_ns + frame.longest_ns, side="right")),
    )
    starts = _starts(whole, frame, calendar)
    kept = np.flatnonzero((starts >= first_ns) & (starts <= last_ns))
    if not kept.size:
        nothing = np.empty(0)
        return Rows(np.empty(0, np.int64), nothing, nothing, nothing, nothing, nothing)
    part = slice(int(kept[0]), int(kept[-1]) + 1)
    starts = starts[part]
    heads = np.flatnonzero(np.diff(starts, prepend=starts[0] - 1))
    tails = np.append(heads[1:], starts.size) - 1
    return Rows(
        at=starts[heads],
        open=whole.open[part][heads],
        high=np.maximum.reduceat(whole.high[part], heads),
        low=np.minimum.reduceat(whole.low[part], heads),
        close=whole.close[part][tails],
        volume=np.add.reduceat(whole.volume[part], heads),
    )


def _starts(series: BarSeries, frame: Frame, calendar: SessionCalendar) -> NDArray[np.int64]:
    """[T] the `t` of the bar of `frame` that each bar of `series` belongs to."""
    if frame.unit in ("Min", "Hour"):
        hourly = series.timeframe is Timeframe.HOUR
        if hourly and frame.length_ns == HOUR_NS:
            return series.timestamp
        if not hourly or frame.length_ns < HOUR_NS:
            return np.maximum(series.timestamp, series.available_at - frame.length_ns)
        opened = calendar.opens_ns(_sessions(series))
        passed = (series.timestamp - opened) // frame.length_ns
        return np.asarray(opened + passed * frame.length_ns, dtype=np.int64)
    days: dict[date, int] = {}
    starts = [
        days.setdefault(day, midnight_ns(_first_day(day, frame))) for day in _sessions(series)
    ]
    return np.array(starts, dtype=np.int64)


def _sessions(series: BarSeries) -> Sequence[date]:
    return [session_of(from_ns(opened)) for opened in series.timestamp.tolist()]


def _first_day(day: date, frame: Frame) -> date:
    """The first day of the day, week or months that `day` belongs to."""
    if frame.unit == "Day":
        return day
    if frame.unit == "Week":
        return day - timedelta(days=day.weekday())
    return date(day.year, (day.month - 1) // frame.count * frame.count + 1, 1)


def midnight_ns(day: date) -> int:
    """Midnight in New York, UTC nanoseconds: the `t` of a daily bar."""
    return to_ns(datetime.combine(day, time(), tzinfo=EXCHANGE_TIME_ZONE))
