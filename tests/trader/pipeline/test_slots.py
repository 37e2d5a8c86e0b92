"""Slots: one a session for daily bars, every second hour for hourly ones, never on a holiday."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from trader.core.clock import always_open, new_york
from trader.core.market import Timeframe
from trader.pipeline.slots import (
    bars_per_year,
    newest_slot,
    next_slot,
    slot_times,
    slots_between,
    slots_per_year,
)

CALENDAR = new_york()
COINS = always_open()


def at(day: int, month: int, year: int, hour: int, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def test_the_daily_slot_is_the_close_also_on_a_half_day():
    assert slot_times(CALENDAR, Timeframe.DAY, date(2025, 1, 2)) == [at(2, 1, 2025, 21)]
    assert slot_times(CALENDAR, Timeframe.DAY, date(2025, 11, 28)) == [at(28, 11, 2025, 18)]
    assert slot_times(CALENDAR, Timeframe.DAY, date(2025, 7, 1)) == [at(1, 7, 2025, 20)]


def test_hourly_slots_come_every_second_hour_of_the_session():
    whole = slot_times(CALENDAR, Timeframe.HOUR, date(2025, 1, 2))
    assert whole == [at(2, 1, 2025, 16, 30), at(2, 1, 2025, 18, 30), at(2, 1, 2025, 20, 30)]
    assert slot_times(CALENDAR, Timeframe.HOUR, date(2025, 11, 28)) == [at(28, 11, 2025, 16, 30)]


def test_slots_are_chained_and_skip_days_without_a_session():
    slots = slots_between(CALENDAR, Timeframe.DAY, date(2025, 1, 8), date(2025, 1, 10))
    assert [slot.session for slot in slots] == [date(2025, 1, 8), date(2025, 1, 10)]
    assert slots[0].since == at(7, 1, 2025, 21)
    assert slots[1].since == slots[0].as_of
    year = slots_between(CALENDAR, Timeframe.DAY, date(2025, 1, 2), date(2026, 8, 5))
    assert len(year) == 398


def test_the_next_slot_is_strictly_later():
    close = at(2, 1, 2025, 21)
    assert next_slot(CALENDAR, Timeframe.DAY, close).session == date(2025, 1, 3)
    assert next_slot(CALENDAR, Timeframe.DAY, at(2, 1, 2025, 20, 59)).as_of == close
    hourly = next_slot(CALENDAR, Timeframe.HOUR, at(3, 1, 2025, 20, 30))
    assert (hourly.session, hourly.since) == (date(2025, 1, 6), at(3, 1, 2025, 20, 30))


def test_coins_are_decided_on_at_midnight_in_new_york_and_every_second_hour_of_the_day():
    assert slot_times(COINS, Timeframe.DAY, date(2024, 6, 1)) == [at(2, 6, 2024, 4)]
    hourly = slot_times(COINS, Timeframe.HOUR, date(2024, 6, 1))
    assert hourly == [at(1, 6, 2024, 4) + timedelta(hours=2 * n) for n in range(1, 13)]
    assert len(slot_times(COINS, Timeframe.HOUR, date(2024, 3, 10))) == 11  # of 23 hours
    assert len(slot_times(COINS, Timeframe.HOUR, date(2024, 11, 3))) == 12  # of 25 hours


@pytest.mark.parametrize("timeframe", Timeframe)
@pytest.mark.parametrize("calendar", [CALENDAR, COINS])
def test_the_next_slot_is_the_one_that_follows_whatever_the_moment(calendar, timeframe):
    slots = slots_between(calendar, timeframe, date(2024, 3, 7), date(2024, 3, 13))
    for before, slot in pairwise(slots):
        assert slot.since == before.as_of
        for moment in (before.as_of, slot.as_of - timedelta(microseconds=1)):
            assert next_slot(calendar, timeframe, moment) == slot


def test_a_slot_of_a_market_that_never_closes_may_be_decided_on_for_an_hour():
    close = at(2, 6, 2024, 4)
    for timeframe in Timeframe:
        slot = newest_slot(COINS, timeframe, close)
        assert slot is not None
        assert slot.as_of == close
        assert newest_slot(COINS, timeframe, close + timedelta(minutes=59)) == slot
        assert newest_slot(COINS, timeframe, close + timedelta(hours=1)) is None
    assert newest_slot(COINS, Timeframe.DAY, close - timedelta(hours=2)) is None


def test_a_year_has_as_many_bars_and_slots_as_its_market_is_open_for():
    assert bars_per_year(CALENDAR, Timeframe.DAY) == slots_per_year(CALENDAR, Timeframe.DAY) == 252
    assert bars_per_year(COINS, Timeframe.DAY) == slots_per_year(COINS, Timeframe.DAY) == 365
    assert (bars_per_year(CALENDAR, Timeframe.HOUR), bars_per_year(COINS, Timeframe.HOUR)) == (
        1764,
        8760,
    )
    for calendar, sessions in ((CALENDAR, 252), (COINS, 365)):
        whole_day = slot_times(calendar, Timeframe.HOUR, date(2025, 1, 2))
        assert slots_per_year(calendar, Timeframe.HOUR) == len(whole_day) * sessions
