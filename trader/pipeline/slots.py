"""Decision slots: the moments at which a cycle runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from trader.core.clock import SessionCalendar
from trader.core.market import Timeframe, session_of

HOURS_BETWEEN = timedelta(hours=2)
HOUR = timedelta(hours=1)
SESSIONS_PER_YEAR, DAYS_PER_YEAR = 252.0, 365.0  # of the NYSE, and of a market that never closes
HOURLY_BARS, HOURLY_BARS_OF_A_DAY = 7.0, 24.0  # the last bar of a session is half an hour
HOURLY_SLOTS, HOURLY_SLOTS_OF_A_DAY = 3.0, 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One moment of decision. since: the slot before, whose bars have been judged already."""

    session: date
    as_of: datetime
    since: datetime


def bars_per_year(calendar: SessionCalendar, timeframe: Timeframe) -> float:
    """Bars of this length in a year, which annualise what is measured bar by bar."""
    hourly = HOURLY_BARS_OF_A_DAY if calendar.never_closes else HOURLY_BARS
    return _sessions_per_year(calendar) * (1.0 if timeframe is Timeframe.DAY else hourly)


def slots_per_year(calendar: SessionCalendar, timeframe: Timeframe) -> float:
    """Slots in a year, which annualise what is measured slot by slot, as equity is."""
    hourly = HOURLY_SLOTS_OF_A_DAY if calendar.never_closes else HOURLY_SLOTS
    return _sessions_per_year(calendar) * (1.0 if timeframe is Timeframe.DAY else hourly)


def _sessions_per_year(calendar: SessionCalendar) -> float:
    return DAYS_PER_YEAR if calendar.never_closes else SESSIONS_PER_YEAR


def slot_times(calendar: SessionCalendar, timeframe: Timeframe, session: date) -> list[datetime]:
    """The slots of one session: the close for daily bars, every second hour for hourly ones.

    Hours are counted from the open.
    """
    opened, closed = calendar.open(session), calendar.close(session)
    if timeframe is Timeframe.DAY:
        return [closed]
    times, at = [], opened + HOURS_BETWEEN
    while at <= closed:
        times.append(at)
        at += HOURS_BETWEEN
    return times


def slots_between(
    calendar: SessionCalendar, timeframe: Timeframe, first: date, last: date
) -> list[Slot]:
    """Every slot of the sessions from `first` to `last`, both included."""
    since = slot_times(calendar, timeframe, calendar.previous(first))[-1]
    slots = []
    for session in calendar.between(first, last):
        for at in slot_times(calendar, timeframe, session):
            slots.append(Slot(session=session, as_of=at, since=since))
            since = at
    return slots


def next_slot(calendar: SessionCalendar, timeframe: Timeframe, after: datetime) -> Slot:
    """The first slot later than `after`."""
    session = calendar.at_or_after(session_of(after))
    while True:
        for slot in slots_between(calendar, timeframe, session, session):
            if slot.as_of > after:
                return slot
        session = calendar.next(session)


def newest_slot(calendar: SessionCalendar, timeframe: Timeframe, at: datetime) -> Slot | None:
    """The newest slot whose moment has come at `at`, while a decision may still be based on it.

    None from `usable_until` on.
    """
    session = calendar.at_or_after(at.date() - timedelta(days=10))
    newest: Slot | None = None
    for slot in slots_between(calendar, timeframe, session, calendar.at_or_after(at.date())):
        if slot.as_of <= at:
            newest = slot
    if newest is None or at >= usable_until(calendar, timeframe, newest):
        return None
    return newest


def usable_until(calendar: SessionCalendar, timeframe: Timeframe, slot: Slot) -> datetime:
    """From when on no decision may be based on a slot: what it orders could have traded by then.

    A daily slot ends with the next opening, an hourly one after an hour or with the session; where
    the market never closes, both end after an hour.
    """
    following = calendar.open(calendar.next(slot.session))
    if following == slot.as_of:
        return slot.as_of + HOUR
    return following if timeframe is Timeframe.DAY else min(slot.as_of + HOUR, following)
