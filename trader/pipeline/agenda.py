"""What is to be done when: the jobs of every session, which of them are due, which were missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Literal

from trader.core.clock import SessionCalendar
from trader.core.config import Daemon
from trader.core.market import Timeframe, session_of
from trader.pipeline.slots import Slot, slots_between, usable_until

JobName = Literal["pre_market", "cycle", "post_close", "reflection"]
ORDER: tuple[JobName, ...] = ("pre_market", "cycle", "post_close", "reflection")
LONGEST_HOURLY_DELAY = timedelta(minutes=30)  # an hourly slot is usable for an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something to be done once.

    as_of   the moment of the session that it belongs to: opening, slot or close
    due_at  when it may be done
    until   from then on it is missed
    slot    of a cycle
    """

    name: JobName
    session: date
    as_of: datetime
    due_at: datetime
    until: datetime
    slot: Slot | None = None
    numbered: bool = False  # several a session

    @property
    def key(self) -> str:
        """Its name in the ledger, made of the session alone: no clock and no restart doubles it."""
        moment = f"T{self.as_of:%H%M}" if self.numbered else ""
        return f"{self.name}-{self.session}{moment}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the agenda says at one moment.

    due       to be done now, in order
    missed    not done in time; they are recorded and never done
    next_job  the job that comes next
    settled   the first session in which something is left to do: look from there next time
    """

    due: tuple[Job, ...]
    missed: tuple[Job, ...]
    next_job: Job
    settled: date


class Agenda:
    """The jobs of each session, from the exchange's own calendar; it reads no clock.

    delayed  whether bars come some time after their slot, as they do in real time; the embedded
             market has them at once
    """

    def __init__(
        self, calendar: SessionCalendar, timeframe: Timeframe, settings: Daemon, *, delayed: bool
    ) -> None:
        self._calendar, self._timeframe = calendar, timeframe
        delay = timedelta(minutes=settings.bars_delay_minutes if delayed else 0)
        hourly = timeframe is Timeframe.HOUR
        self._delay = min(delay, LONGEST_HOURLY_DELAY) if hourly else delay
        self._before = timedelta(minutes=settings.pre_market_minutes)
        self._after = timedelta(minutes=settings.post_close_minutes)
        self._known = lru_cache(maxsize=16)(self._jobs)  # the same two sessions second by second

    def jobs(self, session: date) -> tuple[Job, ...]:
        """Everything to be done about one session, in order."""
        return self._known(session)

    def _jobs(self, session: date) -> tuple[Job, ...]:
        calendar = self._calendar
        opened, closed = calendar.open(session), calendar.close(session)
        cycles = [
            self._cycle(slot) for slot in slots_between(calendar, self._timeframe, session, session)
        ]
        # coins trade without a pause: nothing of a session comes before the end of the last one
        early = max(opened - self._before, calendar.close(calendar.previous(session)))
        late = self._late(session, cycles[-1].due_at if cycles else closed)
        following = self._late(calendar.next(session), closed)
        return (
            Job(name="pre_market", session=session, as_of=opened, due_at=early, until=closed),
            *cycles,
            Job(name="post_close", session=session, as_of=closed, due_at=late, until=following),
            Job(name="reflection", session=session, as_of=closed, due_at=late, until=following),
        )

    def _cycle(self, slot: Slot) -> Job:
        until = usable_until(self._calendar, self._timeframe, slot)
        return Job(
            name="cycle",
            session=slot.session,
            as_of=slot.as_of,
            due_at=min(slot.as_of + self._delay, until - LONGEST_HOURLY_DELAY),
            until=until,
            slot=slot,
            numbered=self._timeframe is Timeframe.HOUR,
        )

    def _late(self, session: date, last_cycle: datetime) -> datetime:
        return max(self._calendar.close(session) + self._after, last_cycle)

    def look(
        self, now: datetime, *, since: date, begun: datetime, done: Callable[[Job], bool]
    ) -> Look:
        """What is due and what was missed at `now`.

        since  session to look from; all before are settled
        begun  jobs of moments up to then are nobody's
        done   whether a job needs nothing more
        """
        due: list[Job] = []
        missed: list[Job] = []
        coming: list[Job] = []
        settled: date | None = None
        session = since
        while True:
            jobs = self.jobs(session)
            for job in jobs:
                if job.as_of <= begun or done(job):
                    continue
                settled = settled or session
                if job.due_at > now:
                    coming.append(job)
                elif now >= job.until:
                    missed.append(job)
                else:
                    due.append(job)
            if coming and jobs[0].due_at > now:
                break
            session = self._calendar.next(session)
        return Look(
            due=tuple(sorted(due, key=_rank)),
            missed=tuple(missed),
            next_job=min(coming, key=_rank),
            settled=settled or session,
        )

    def session_before(self, moment: datetime) -> date:
        """The last session before the New York day of `moment`: nothing later is left out."""
        return self._calendar.previous(session_of(moment))


def _rank(job: Job) -> tuple[datetime, int]:
    return job.due_at, ORDER.index(job.name)
