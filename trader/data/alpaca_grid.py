"""From Alpaca's bars to ours: sessions, hours that begin with the session, and when all is known.

A daily bar of Alpaca is stamped with midnight in New York; ours opens with its session and is
known at its close. Alpaca's hours begin on the clock hour, so the one of 09:00 holds half an hour
from before the opening: hourly bars are put together from half hours, and none crosses the opening.
Coins come as hours and are put together to hours and days of a market that never closes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe, from_ns, session_of
from trader.data.cache import Raw
from trader.data.grid import HOUR_NS

if TYPE_CHECKING:
    from trader.core.clock import SessionCalendar

STEP_NS = {"30Min": HOUR_NS // 2, "1Hour": HOUR_NS}  # lengths of Alpaca's bars within a session
MOST_BINS = 32  # hours in a session; more than any day has


def on_our_grid(
    raw: Raw,
    *,
    symbol: str,
    wire_timeframe: str,
    timeframe: Timeframe,
    calendar: SessionCalendar,
    complete_at: int,
    source: str,
    adjustment: str,
) -> BarSeries:
    """The series of `raw`; only bars complete at `complete_at` (ns), up to which `raw` is whole.

    Half hours outside the session are left out. A bar whose parts are missing in part is made of
    those that are there: nothing was traded in the others. Raises DataIntegrityError for a bar of a
    day without a session, and for one that begins between the half hours.
    """
    if wire_timeframe == "1Day":
        opened, known, first = _days(raw, symbol, calendar)
    else:
        opened, known, first, raw = _bins(raw, symbol, wire_timeframe, timeframe, calendar)
    last = np.append(first[1:], raw.size) - 1 if first.size else first
    whole = known <= complete_at
    return BarSeries(
        symbol=symbol,
        timeframe=timeframe,
        timestamp=opened[whole],
        available_at=known[whole],
        open=raw["open"][first][whole],
        high=_reduced(np.maximum, raw["high"], first)[whole],
        low=_reduced(np.minimum, raw["low"], first)[whole],
        close=raw["close"][last][whole],
        volume=_reduced(np.add, raw["volume"], first)[whole],
        source=source,
        adjustment=adjustment,
    )


def _reduced(
    how: np.ufunc, values: NDArray[np.float64], first: NDArray[np.intp]
) -> NDArray[np.float64]:
    return how.reduceat(values, first) if first.size else values[:0]


def _days(
    raw: Raw, symbol: str, calendar: SessionCalendar
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Opening and close of each bar's session, and the bar's own place."""
    days = [session_of(from_ns(ns)) for ns in raw["t"]]
    try:
        opened, known = calendar.opens_ns(days), calendar.closes_ns(days)
    except DataIntegrityError as exc:
        raise DataIntegrityError(f"{symbol} 1Day from Alpaca: {exc}") from exc
    return opened, known, np.arange(raw.size)


def _bins(
    raw: Raw, symbol: str, wire_timeframe: str, timeframe: Timeframe, calendar: SessionCalendar
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp], Raw]:
    """Opening and end of each of our bars, the place of its first part, and the parts in sessions.

    Parts are in order, so those of one bar stand side by side.
    """
    if not raw.size:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, np.zeros(0, dtype=np.intp), raw
    first, last = session_of(from_ns(raw["t"][0])), session_of(from_ns(raw["t"][-1]))
    opens, closes = calendar.hours_between(first, last)
    if not opens.size:
        raise DataIntegrityError(f"{symbol}: no session lies in {first} to {last}")
    session = np.searchsorted(opens, raw["t"], side="right") - 1
    inside = (session >= 0) & (raw["t"] < closes[session])
    raw, session = raw[inside], session[inside]
    offset = raw["t"] - opens[session]
    for place in np.flatnonzero(offset % STEP_NS[wire_timeframe])[:1]:
        at = from_ns(int(raw["t"][place]))
        raise DataIntegrityError(
            f"{symbol} {wire_timeframe} from Alpaca: a bar begins at {at:%Y-%m-%d %H:%M:%S} UTC, "
            "between two of them"
        )
    hour = offset // HOUR_NS if timeframe is Timeframe.HOUR else np.zeros_like(offset)
    starts = np.unique(session * MOST_BINS + hour, return_index=True)[1]
    opened = opens[session[starts]] + hour[starts] * HOUR_NS
    ends = closes[session[starts]]
    known = np.minimum(opened + HOUR_NS, ends) if timeframe is Timeframe.HOUR else ends
    return opened, known, starts, raw
