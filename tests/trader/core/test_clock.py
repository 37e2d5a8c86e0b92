"""The exchange calendar against facts anybody can look up, and the clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.clock import SessionCalendar, SystemClock, always_open, new_york
from trader.core.errors import DataIntegrityError
from trader.core.market import session_of

NEW_YORK = ZoneInfo("America/New_York")
CALENDAR = new_york()


def two_days() -> SessionCalendar:
    days = np.array(["2024-03-07", "2024-03-08"], dtype="datetime64[D]")
    opens = days.astype("datetime64[ns]").astype(np.int64) + 52_200 * 10**9
    return SessionCalendar(days, opens, opens + 23_400 * 10**9)


def new_york_time(moment: datetime) -> str:
    return moment.astimezone(NEW_YORK).strftime("%H:%M")


@pytest.mark.parametrize(
    ("day", "is_open"),
    [
        (date(2025, 1, 9), False),  # national day of mourning, announced ten days before
        (date(2025, 1, 8), True),
        (date(2025, 1, 10), True),
        (date(2025, 4, 18), False),  # Good Friday
        (date(2025, 6, 19), False),  # Juneteenth
        (date(2021, 6, 18), True),  # before it was a holiday of the exchange
        (date(2012, 10, 29), False),  # hurricane Sandy
        (date(2001, 9, 11), False),
        (date(2025, 11, 27), False),  # Thanksgiving
        (date(2025, 11, 29), False),  # a Saturday
    ],
)
def test_calendar_knows_holidays_and_unplanned_closures(day, is_open):
    assert CALENDAR.is_session(day) is is_open


@pytest.mark.parametrize(
    ("day", "close"),
    [
        (date(2025, 11, 26), "16:00"),
        (date(2025, 11, 28), "13:00"),
        (date(2025, 12, 24), "13:00"),
        (date(2025, 7, 3), "13:00"),
        (date(2024, 7, 3), "13:00"),
    ],
)
def test_calendar_closes_at_one_on_half_days(day, close):
    assert new_york_time(CALENDAR.open(day)) == "09:30"
    assert new_york_time(CALENDAR.close(day)) == close


@pytest.mark.parametrize(
    ("day", "opens_utc"),
    [
        (date(2024, 3, 8), "14:30"),  # the Friday before clocks go forward
        (date(2024, 3, 11), "13:30"),
        (date(2024, 11, 1), "13:30"),  # the Friday before they go back
        (date(2024, 11, 4), "14:30"),
    ],
)
def test_opening_moves_in_utc_when_new_york_changes_its_clocks(day, opens_utc):
    assert CALENDAR.open(day).strftime("%H:%M") == opens_utc
    assert new_york_time(CALENDAR.open(day)) == "09:30"
    assert CALENDAR.close(day) - CALENDAR.open(day) == timedelta(hours=6.5)


def test_neighbours_skip_holidays_and_weekends():
    assert CALENDAR.next(date(2025, 1, 8)) == date(2025, 1, 10)
    assert CALENDAR.previous(date(2025, 1, 10)) == date(2025, 1, 8)
    assert CALENDAR.previous(date(2025, 1, 12)) == date(2025, 1, 10)  # from a Sunday
    assert CALENDAR.at_or_after(date(2025, 1, 9)) == date(2025, 1, 10)
    assert CALENDAR.at_or_after(date(2025, 1, 10)) == date(2025, 1, 10)


def test_next_and_previous_undo_each_other():
    sessions = CALENDAR.between(date(2024, 1, 1), date(2025, 12, 31))
    assert len(sessions) == 252 + 250
    for earlier, later in pairwise(sessions):
        assert CALENDAR.next(earlier) == later
        assert CALENDAR.previous(later) == earlier


def test_between_includes_both_ends_and_may_be_empty():
    assert CALENDAR.between(date(2025, 1, 8), date(2025, 1, 10)) == [
        date(2025, 1, 8),
        date(2025, 1, 10),
    ]
    assert CALENDAR.between(date(2025, 1, 9), date(2025, 1, 9)) == []


def test_hours_between_are_those_of_each_session():
    first, last = date(2024, 6, 28), date(2024, 7, 8)
    sessions = CALENDAR.between(first, last)
    opens, closes = CALENDAR.hours_between(first, last)
    assert opens.tolist() == CALENDAR.opens_ns(sessions).tolist()
    assert closes.tolist() == CALENDAR.closes_ns(sessions).tolist()
    assert sorted(set(((closes - opens) // (60 * 10**9)).tolist())) == [210, 390]


def test_hours_handed_out_do_not_touch_the_calendar():
    opens, closes = CALENDAR.hours_between(date(2024, 6, 28), date(2024, 7, 8))
    before = CALENDAR.open(date(2024, 6, 28))
    opens += 1
    closes += 1
    assert CALENDAR.open(date(2024, 6, 28)) == before


@pytest.mark.parametrize(
    "ask",
    [
        lambda: CALENDAR.is_session(date(1979, 12, 31)),
        lambda: CALENDAR.is_session(CALENDAR.last + timedelta(days=1)),
        lambda: CALENDAR.open(date(1975, 1, 2)),
        lambda: CALENDAR.opens_ns([date(2024, 1, 2), date(2051, 1, 3)]),
        lambda: CALENDAR.closes_ns([date(1975, 1, 2), date(2024, 1, 2)]),
        lambda: CALENDAR.between(date(1970, 1, 1), date(2024, 1, 1)),
        lambda: CALENDAR.hours_between(date(2024, 1, 2), date(2060, 1, 1)),
        lambda: CALENDAR.at_or_after(date(2060, 1, 1)),
        lambda: CALENDAR.previous(CALENDAR.first),
        lambda: CALENDAR.next(CALENDAR.last),
        lambda: CALENDAR.session_at(datetime(2060, 1, 5, 15, tzinfo=UTC)),
    ],
)
def test_days_outside_the_calendar_are_refused_with_its_range(ask):
    with pytest.raises(DataIntegrityError, match=r"outside the exchange calendar, which covers 19"):
        ask()


def test_neighbours_at_the_very_ends_are_refused_and_not_wrapped_around():
    calendar = two_days()
    assert calendar.next(calendar.first) == calendar.last
    with pytest.raises(DataIntegrityError, match="2024-03-06 is outside"):
        calendar.previous(calendar.first)
    with pytest.raises(DataIntegrityError, match="2024-03-09 is outside"):
        calendar.next(calendar.last)


@pytest.mark.parametrize(
    "ask",
    [
        CALENDAR.open,
        CALENDAR.close,
        CALENDAR.next,
        lambda day: CALENDAR.opens_ns([date(2025, 1, 8), day]),
    ],
)
def test_hours_of_a_closed_day_are_refused(ask):
    with pytest.raises(DataIntegrityError, match="2025-01-09 is not a session"):
        ask(date(2025, 1, 9))


def test_a_session_is_open_from_its_opening_until_just_before_its_close():
    half_day = date(2025, 11, 28)
    opening, close = CALENDAR.open(half_day), CALENDAR.close(half_day)
    blink = timedelta(microseconds=1)
    assert CALENDAR.session_at(opening) == half_day
    assert CALENDAR.session_at(opening - blink) is None
    assert CALENDAR.session_at(close - blink) == half_day
    assert CALENDAR.session_at(close) is None
    assert CALENDAR.session_at(datetime(2025, 11, 27, 16, tzinfo=UTC)) is None
    assert CALENDAR.session_at(opening.astimezone(ZoneInfo("Asia/Tokyo"))) == half_day


@settings(deadline=None, max_examples=50)
@given(st.dates(date(1980, 1, 2), date(2026, 12, 1)))
def test_at_or_after_is_the_first_session_not_before(day):
    session = CALENDAR.at_or_after(day)
    assert session >= day
    assert CALENDAR.is_session(session)
    assert CALENDAR.between(day, session) == [session]


def test_system_clock_tells_utc():
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_a_market_that_never_closes_has_every_day_of_new_york():
    coins = always_open()
    assert coins.never_closes
    assert not CALENDAR.never_closes
    assert not two_days().never_closes
    year = coins.between(date(2024, 1, 1), date(2024, 12, 31))
    assert len(year) == 366
    assert new_york_time(coins.open(date(2024, 7, 4))) == "00:00"
    assert coins.close(date(2024, 7, 4)) == coins.open(date(2024, 7, 5))
    lengths = [coins.close(day) - coins.open(day) for day in year]
    assert sorted(set(lengths)) == [timedelta(hours=23), timedelta(hours=24), timedelta(hours=25)]
    assert year[lengths.index(timedelta(hours=23))] == date(2024, 3, 10)
    assert year[lengths.index(timedelta(hours=25))] == date(2024, 11, 3)


@settings(deadline=None, max_examples=100)
@given(st.datetimes(datetime(2010, 1, 2), datetime(2026, 12, 1), timezones=st.just(UTC)))
def test_the_session_of_a_moment_is_open_then_where_the_market_never_closes(moment):
    coins = always_open()
    assert coins.session_at(moment) == session_of(moment)
    assert coins.open(session_of(moment)) <= moment < coins.close(session_of(moment))
