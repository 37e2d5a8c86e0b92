"""The agenda: the jobs of each session, at the exchange's own hours, due, missed or to come."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trader.core.clock import always_open, new_york
from trader.core.config import Daemon
from trader.core.market import Timeframe
from trader.pipeline.agenda import Agenda

CALENDAR = new_york()
SETTINGS = Daemon()
AGENDA = Agenda(CALENDAR, Timeframe.DAY, SETTINGS, delayed=True)
HOURLY = Agenda(CALENDAR, Timeframe.HOUR, SETTINGS, delayed=True)
NEVER = datetime(1990, 1, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due_of(agenda: Agenda, session: date) -> list[tuple[str, str]]:
    return [(job.name, f"{job.due_at:%d %H:%M}") for job in agenda.jobs(session)]


def look(agenda: Agenda, now: str, since: str, done: set[str] = frozenset()):
    return agenda.look(
        at(now), since=date.fromisoformat(since), begun=NEVER, done=lambda job: job.key in done
    )


def test_a_winter_session_has_four_jobs_around_its_hours():
    assert due_of(AGENDA, date(2025, 1, 7)) == [
        ("pre_market", "07 14:00"),
        ("cycle", "07 21:20"),
        ("post_close", "07 21:45"),
        ("reflection", "07 21:45"),
    ]


def test_a_summer_session_is_an_hour_earlier_in_utc():
    assert due_of(AGENDA, date(2025, 7, 8)) == [
        ("pre_market", "08 13:00"),
        ("cycle", "08 20:20"),
        ("post_close", "08 20:45"),
        ("reflection", "08 20:45"),
    ]


def test_hourly_bars_have_a_cycle_every_second_hour():
    assert due_of(HOURLY, date(2025, 7, 8)) == [
        ("pre_market", "08 13:00"),
        ("cycle", "08 15:50"),
        ("cycle", "08 17:50"),
        ("cycle", "08 19:50"),
        ("post_close", "08 20:45"),
        ("reflection", "08 20:45"),
    ]


@pytest.mark.parametrize(
    ("session", "close"),
    [
        ("2025-07-03", "03 17:20"),
        ("2025-11-28", "28 18:20"),
        ("2025-12-24", "24 18:20"),
        ("2026-11-27", "27 18:20"),
        ("2026-12-24", "24 18:20"),
    ],
)
def test_half_days_close_early(session, close):
    assert ("cycle", close) in due_of(AGENDA, date.fromisoformat(session))


def test_the_embedded_market_has_its_bars_at_once():
    jobs = Agenda(CALENDAR, Timeframe.DAY, SETTINGS, delayed=False).jobs(date(2025, 7, 8))
    assert jobs[1].due_at == jobs[1].as_of == CALENDAR.close(date(2025, 7, 8))


def test_the_post_close_job_never_comes_before_the_last_cycle():
    settings = Daemon(post_close_minutes=0, bars_delay_minutes=90)
    cycle, late = Agenda(CALENDAR, Timeframe.DAY, settings, delayed=True).jobs(date(2025, 7, 8))[
        1:3
    ]
    assert cycle.due_at == at("2025-07-08T21:30") == late.due_at


@pytest.mark.parametrize("minutes", [0, 20, 60, 240])
@pytest.mark.parametrize("timeframe", list(Timeframe))
@pytest.mark.parametrize("calendar", [CALENDAR, always_open()], ids=["shares", "coins"])
def test_every_job_has_time_to_be_done_whatever_the_settings(calendar, timeframe, minutes):
    settings = Daemon(bars_delay_minutes=minutes, pre_market_minutes=300, post_close_minutes=300)
    agenda = Agenda(calendar, timeframe, settings, delayed=True)
    for session in calendar.between(date(2025, 3, 3), date(2025, 3, 14)):
        for job in agenda.jobs(session):
            assert job.due_at + timedelta(minutes=30) <= job.until, job


def test_coins_have_a_session_every_day():
    coins = Agenda(always_open(), Timeframe.DAY, SETTINGS, delayed=True)
    assert due_of(coins, date(2025, 3, 9)) == [
        ("pre_market", "09 05:00"),
        ("cycle", "10 04:20"),  # the day of 23 hours
        ("post_close", "10 04:45"),
        ("reflection", "10 04:45"),
    ]


def test_the_next_job_of_coins_may_be_of_the_session_that_has_not_begun():
    coins = Agenda(always_open(), Timeframe.DAY, SETTINGS, delayed=True)
    found = look(coins, "2025-03-10T03:00", "2025-03-09")
    assert found.next_job.key == "pre_market-2025-03-10"  # its midnight comes before the bars


def test_keys_hold_no_clock_time_but_that_of_hourly_slots():
    assert [job.key for job in AGENDA.jobs(date(2025, 7, 8))] == [
        "pre_market-2025-07-08",
        "cycle-2025-07-08",
        "post_close-2025-07-08",
        "reflection-2025-07-08",
    ]
    assert [job.key for job in HOURLY.jobs(date(2025, 7, 8)) if job.slot] == [
        "cycle-2025-07-08T1530",
        "cycle-2025-07-08T1730",
        "cycle-2025-07-08T1930",
    ]


def test_what_is_due_comes_in_order_and_what_comes_next_is_named():
    done = {job.key for job in AGENDA.jobs(date(2025, 7, 7))}
    found = look(AGENDA, "2025-07-08T22:00", "2025-07-07", done)
    assert [job.name for job in found.due] == ["cycle", "post_close", "reflection"]
    assert [job.key for job in found.missed] == ["pre_market-2025-07-08"]
    assert (found.next_job.name, found.next_job.session) == ("pre_market", date(2025, 7, 9))
    assert found.settled == date(2025, 7, 8)


def test_over_a_long_weekend_the_newest_slot_may_still_be_run():
    """Thursday 2025-07-03 closes early; the exchange opens again on Monday."""
    found = look(AGENDA, "2025-07-06T12:00", "2025-07-03")
    assert [job.key for job in found.due if job.slot] == ["cycle-2025-07-03"]
    assert found.next_job.key == "pre_market-2025-07-07"


def test_from_the_next_opening_on_a_slot_is_missed():
    before = look(AGENDA, "2025-07-07T13:29", "2025-07-03")
    after = look(AGENDA, "2025-07-07T13:30", "2025-07-03")
    assert "cycle-2025-07-03" in [job.key for job in before.due]
    assert "cycle-2025-07-03" in [job.key for job in after.missed]


def test_only_the_newest_of_many_slots_is_due():
    found = look(AGENDA, "2025-07-11T22:00", "2025-06-30")
    assert [job.key for job in found.due if job.slot] == ["cycle-2025-07-11"]
    assert [job.key for job in found.missed if job.slot] == [
        f"cycle-2025-{day}"
        for day in ("06-30", "07-01", "07-02", "07-03", "07-07", "07-08", "07-09", "07-10")
    ]


def test_moments_before_the_beginning_are_nobodys():
    found = AGENDA.look(
        at("2025-07-08T22:00"),
        since=date(2025, 6, 2),
        begun=CALENDAR.close(date(2025, 7, 7)),
        done=lambda job: False,
    )
    assert {job.session for job in (*found.due, *found.missed)} == {date(2025, 7, 8)}


def test_a_clock_that_was_set_back_finds_nothing_to_do_again():
    done = {job.key for day in (7, 8) for job in AGENDA.jobs(date(2025, 7, day))}
    found = look(AGENDA, "2025-07-08T12:00", "2025-07-07", done)
    assert (found.due, found.missed) == ((), ())
    assert found.next_job.key == "pre_market-2025-07-09"


@given(
    minutes=st.integers(0, 14 * 24 * 60),
    done=st.sets(st.integers(0, 60)),
    timeframe=st.sampled_from(list(Timeframe)),
)
def test_each_job_is_in_one_place_only(minutes, done, timeframe):
    agenda = Agenda(CALENDAR, timeframe, SETTINGS, delayed=True)
    start, since = at("2025-10-27T00:00"), date(2025, 10, 24)
    now = start + timedelta(minutes=minutes)
    every = [
        job
        for session in CALENDAR.between(since, date(2025, 11, 20))
        for job in agenda.jobs(session)
    ]
    keys = {every[number].key for number in done if number < len(every)}
    found = agenda.look(now, since=since, begun=NEVER, done=lambda job: job.key in keys)
    told = [job.key for job in (*found.due, *found.missed)]
    assert len(told) == len(set(told))
    assert set(told) == {job.key for job in every if job.due_at <= now} - keys
    assert found.next_job.due_at == min(
        job.due_at for job in every if job.due_at > now and job.key not in keys
    )
    open_sessions = [job.session for job in every if job.key not in keys]
    assert found.settled == min(open_sessions)
