"""Slots: one a session for daily bars, every second hour for hourly ones, never on a holiday."""

from __future__ import annotations

from datetime import UTC, date, datetime

from trader.core.clock import new_york
from trader.core.market import Timeframe
from trader.pipeline.slots import next_slot, slot_times, slots_between

CALENDAR = new_york()


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
