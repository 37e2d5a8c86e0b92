"""Bars that end too early or too late, and hourly sessions with gaps."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from tests.trader.data.damage import codes, set_at, without
from trader.core.errors import DataIntegrityError
from trader.core.market import Timeframe, from_ns
from trader.data.grid import HOUR_NS
from trader.data.integrity import inspect, refused_sessions, require_sound

HALF_DAY = date(2024, 11, 29)


@pytest.mark.parametrize("timeframe", Timeframe)
def test_the_newest_bar_must_be_complete_and_the_newest_there_is(calendar, sound, timeframe):
    series = sound(timeframe=timeframe)
    complete = from_ns(series.available_at[8])
    blink = timedelta(microseconds=1)
    require_sound(series.head(9), calendar, as_of=complete)
    assert require_sound(series.head(9), calendar, as_of=complete) == ()
    with pytest.raises(DataIntegrityError, match="not complete before"):
        require_sound(series.head(9), calendar, as_of=complete - blink)
    next_complete = from_ns(series.available_at[9])
    require_sound(series.head(9), calendar, as_of=next_complete - blink)
    with pytest.raises(DataIntegrityError, match="stale data"):
        require_sound(series.head(9), calendar, as_of=next_complete)
    assert codes(inspect(series, calendar, as_of=complete)) == [("error", "partial_bar")]
    assert codes(inspect(series.head(9), calendar, as_of=next_complete)) == [("error", "stale")]


def test_a_daily_bar_stays_current_over_a_long_weekend(calendar, sound):
    wednesday = sound(last=date(2024, 11, 27))
    require_sound(wednesday, calendar, as_of=datetime(2024, 11, 29, 17, 59, tzinfo=UTC))
    with pytest.raises(DataIntegrityError, match="one was complete at 2024-11-29 18:00 UTC"):
        require_sound(wednesday, calendar, as_of=datetime(2024, 11, 29, 18, tzinfo=UTC))
    friday = sound(last=HALF_DAY)
    require_sound(friday, calendar, as_of=datetime(2024, 12, 1, 12, tzinfo=UTC))  # Sunday


def test_hourly_gaps_refuse_their_session_only(calendar, sound):
    series = sound(date(2024, 11, 25), date(2024, 12, 3), Timeframe.HOUR)
    gapped = without(series, 8, 9, 24)  # 10:30 and 11:30 on the 26th, 12:30 on the half day
    assert refused_sessions(gapped, calendar) == {
        date(2024, 11, 26): "no bar at 10:30, no bar at 11:30 New York time",
        HALF_DAY: "no bar at 12:30 New York time",
    }
    warnings = require_sound(gapped, calendar)
    assert codes(warnings) == [("warning", "session_refused")] * 2
    assert [warning.at for warning in warnings] == [
        calendar.open(date(2024, 11, 26)),
        calendar.open(HALF_DAY),
    ]


def test_a_wholly_missing_hourly_session_is_refused(calendar, sound):
    series = without(sound(timeframe=Timeframe.HOUR), *range(7, 14))
    reason = refused_sessions(series, calendar)[date(2024, 11, 26)]
    assert reason.count("no bar at") == 7


def test_an_hourly_bar_off_the_hour_refuses_its_session(calendar, sound):
    series = sound(timeframe=Timeframe.HOUR)
    shifted = set_at(
        series,
        9,
        timestamp=series.timestamp[9] + HOUR_NS // 2,
        available_at=series.available_at[9] + HOUR_NS // 2,
    )
    assert refused_sessions(shifted, calendar) == {
        date(2024, 11, 26): "no bar at 11:30, unexpected bar at 12:00 New York time"
    }


def test_hourly_bars_that_are_never_whole_are_an_error(calendar, sound):
    series = sound(timeframe=Timeframe.HOUR)
    every_other = without(series, *range(1, len(series), 2))
    assert ("error", "no_whole_session") in codes(inspect(every_other, calendar))


def test_a_bar_missing_later_refuses_no_earlier_decision(calendar, sound):
    series = sound(date(2024, 11, 25), date(2024, 12, 3), Timeframe.HOUR)
    gapped = without(series, 10)  # 12:30 on the 26th
    assert refused_sessions(gapped.head(10), calendar) == {}
    assert refused_sessions(gapped.head(11), calendar) == refused_sessions(gapped, calendar)


def test_bars_before_the_first_are_not_missing(calendar, sound):
    series = sound(timeframe=Timeframe.HOUR)
    assert refused_sessions(series.slice(3, len(series)), calendar) == {}


def test_daily_series_refuse_no_single_session(calendar, sound):
    assert refused_sessions(without(sound(), 4), calendar) == {}
