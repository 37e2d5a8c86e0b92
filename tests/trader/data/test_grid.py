"""Where bars must lie in time."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from trader.core.errors import DataIntegrityError
from trader.core.market import Timeframe, from_ns
from trader.data.grid import expected_bars


def test_a_daily_bar_opens_and_closes_with_its_session(calendar):
    grid = expected_bars(date(2025, 11, 26), date(2025, 12, 1), Timeframe.DAY, calendar)
    sessions = [date(2025, 11, 26), date(2025, 11, 28), date(2025, 12, 1)]
    assert [from_ns(ns) for ns in grid.timestamp] == [calendar.open(day) for day in sessions]
    assert [from_ns(ns) for ns in grid.available_at] == [calendar.close(day) for day in sessions]
    assert grid.session.tolist() == [0, 1, 2]


def test_the_last_hourly_bar_ends_with_the_session(calendar):
    grid = expected_bars(date(2025, 11, 26), date(2025, 11, 28), Timeframe.HOUR, calendar)
    assert grid.session.tolist() == [0] * 7 + [1] * 4
    for index, (day, hours) in enumerate([(date(2025, 11, 26), 7), (date(2025, 11, 28), 4)]):
        mine = grid.session == index
        opens = [from_ns(ns) for ns in grid.timestamp[mine]]
        ends = [from_ns(ns) for ns in grid.available_at[mine]]
        assert opens == [calendar.open(day) + timedelta(hours=n) for n in range(hours)]
        assert ends == [*opens[1:], calendar.close(day)]


@pytest.mark.parametrize("timeframe", Timeframe)
def test_a_holiday_expects_no_bars(calendar, timeframe):
    grid = expected_bars(date(2025, 1, 9), date(2025, 1, 9), timeframe, calendar)
    assert grid.timestamp.size == grid.available_at.size == grid.session.size == 0


def test_years_the_calendar_does_not_know_are_refused(calendar):
    with pytest.raises(DataIntegrityError, match="outside the exchange calendar"):
        expected_bars(date(1970, 1, 2), date(1981, 1, 2), Timeframe.HOUR, calendar)
