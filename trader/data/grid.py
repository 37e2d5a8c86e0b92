"""Where bars must lie in time: daily bars on sessions, hourly bars from each session's opening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trader.core.market import Timeframe

if TYPE_CHECKING:
    from datetime import date

    from trader.core.clock import SessionCalendar

HOUR_NS = 3_600 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """The bars a run of sessions should have; each array is [G], oldest first.

    session       int64, which of the sessions the bar belongs to, counted from the first
    timestamp     int64 nanoseconds since 1970, when the bar opens
    available_at  int64 nanoseconds since 1970, when it is complete
    """

    session: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    available_at: NDArray[np.int64]


def expected_bars(first: date, last: date, timeframe: Timeframe, calendar: SessionCalendar) -> Grid:
    """Every bar that the sessions from `first` to `last` should have.

    A daily bar opens and closes with its session. Hourly bars start at the opening; the last one
    ends with the session, so it is shorter than an hour: 7 bars on a whole day, 4 on a half day.
    Raises DataIntegrityError when a date is outside the calendar.
    """
    opens, closes = calendar.hours_between(first, last)
    if timeframe is Timeframe.DAY:
        return Grid(session=np.arange(opens.size), timestamp=opens, available_at=closes)
    counts = -((opens - closes) // HOUR_NS)  # rounded up
    session = np.repeat(np.arange(opens.size), counts)
    nth_bar = np.arange(session.size) - np.repeat(np.cumsum(counts) - counts, counts)
    timestamp = opens[session] + nth_bar * HOUR_NS
    return Grid(
        session=session,
        timestamp=timestamp,
        available_at=np.minimum(timestamp + HOUR_NS, closes[session]),
    )
