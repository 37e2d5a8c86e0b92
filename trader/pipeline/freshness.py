"""Whether the newest bars are the ones that a slot must see."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray

from trader.core.clock import SessionCalendar
from trader.core.market import BarSeries, Timeframe, from_ns, session_of, to_ns
from trader.data.grid import expected_bars
from trader.pipeline.slots import Slot


def expected_opens(
    calendar: SessionCalendar, timeframe: Timeframe, session: date, as_of: datetime
) -> NDArray[np.int64]:
    """[K] opening times, ns, of the bars of `session` that are complete at `as_of`."""
    grid = expected_bars(session, session, timeframe, calendar)
    return grid.timestamp[grid.available_at <= to_ns(as_of)]


def newest_expected(calendar: SessionCalendar, timeframe: Timeframe, as_of: datetime) -> datetime:
    """Opening time of the newest bar that is complete at `as_of`."""
    session = calendar.at_or_after(session_of(as_of))
    while True:
        opens = expected_opens(calendar, timeframe, session, as_of)
        if opens.size:
            return from_ns(opens[-1])
        session = calendar.previous(session)


def bars_behind(series: BarSeries, calendar: SessionCalendar, slot: Slot) -> int:
    """Sessions by which the newest bar is late; a gap inside a session counts as 1."""
    newest = from_ns(series.timestamp[-1])
    expected = newest_expected(calendar, series.timeframe, slot.as_of)
    if newest >= expected:
        return 0
    return max(1, len(calendar.between(session_of(newest), session_of(expected))) - 1)


def unfit(series: BarSeries, calendar: SessionCalendar, slot: Slot) -> str:
    """Why no decision may be based on these bars at this slot; empty when they are fit.

    A gap inside the slot's own session refuses the slot; only bars that should be known by now
    count, so that a bar that will be missing later is not foreseen.
    """
    if not len(series):
        return f"{series.symbol}: no bars are known at {slot.as_of:%Y-%m-%d %H:%M} UTC"
    if bars_behind(series, calendar, slot):
        newest = from_ns(series.timestamp[-1])
        needed = newest_expected(calendar, series.timeframe, slot.as_of)
        return (
            f"{series.symbol}: the newest bar is of {newest:%Y-%m-%d %H:%M} UTC, "
            f"the slot needs that of {needed:%Y-%m-%d %H:%M}"
        )
    expected = expected_opens(calendar, series.timeframe, slot.session, slot.as_of)
    missing = np.setdiff1d(expected, series.timestamp[-expected.size :])
    if missing.size:
        times = ", ".join(f"{from_ns(ns):%H:%M}" for ns in missing)
        return f"{series.symbol} {slot.session}: no bar at {times} UTC"
    return ""
