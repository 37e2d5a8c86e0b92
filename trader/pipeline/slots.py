"""Decision slots: the moments at which a cycle runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from trader.core.clock import SessionCalendar
from trader.core.market import Timeframe

HOURS_BETWEEN = timedelta(hours=2)
PERIODS_PER_YEAR = {Timeframe.DAY: 252.0, Timeframe.HOUR: 1764.0}  # 252 sessions of 7 hourly bars


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One moment of decision. since: the slot before, whose bars have been judged already."""

    session: date
    as_of: datetime
    since: datetime


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
    session = calendar.at_or_after(after.date())
    while True:
        for slot in slots_between(calendar, timeframe, session, session):
            if slot.as_of > after:
                return slot
        session = calendar.next(session)
