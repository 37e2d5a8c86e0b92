"""The exchange calendar, and small sound series to damage."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from trader.core.clock import SessionCalendar, new_york
from trader.core.market import BarSeries, Timeframe
from trader.data.grid import expected_bars


@pytest.fixture(scope="session")
def calendar() -> SessionCalendar:
    return new_york()


@pytest.fixture
def sound(calendar):
    """Make a sound series that falls and rises a little, from `first` to `last`."""

    def make(
        first: date = date(2024, 11, 25),
        last: date = date(2024, 12, 31),
        timeframe: Timeframe = Timeframe.DAY,
    ) -> BarSeries:
        grid = expected_bars(first, last, timeframe, calendar)
        close = 100.0 + np.arange(grid.timestamp.size) % 7
        open_ = close + 0.5 - np.arange(grid.timestamp.size) % 2
        return BarSeries(
            symbol="TEST",
            timeframe=timeframe,
            timestamp=grid.timestamp,
            available_at=grid.available_at,
            open=open_,
            high=np.maximum(open_, close) + 1.0,
            low=np.minimum(open_, close) - 1.0,
            close=close,
            volume=1e6 + close,
            source="made up",
            adjustment="none",
        )

    return make
