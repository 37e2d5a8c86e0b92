"""The daemon: does what the agenda says, each job once, and looks after the account in between."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any, Literal, Protocol

from trader.core.clock import SystemClock, monotonic_seconds
from trader.core.errors import (
    BudgetError,
    DataIntegrityError,
    EndpointError,
    OrderRefusedError,
)
from trader.ledger.store import Ledger
from trader.pipeline.agenda import Agenda, Job

LOOK_SECONDS = 1.0  # between two looks at what a person has written into the ledger
CALM_SECONDS = 5.0  # between two comparisons that the broker's stream asks for
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 15.0, 900.0
PASSING = (EndpointError, DataIntegrityError, OrderRefusedError, BudgetError)  # may be over soon
HEARD = ("control", "answer")  # kinds of records by which a person speaks to a running daemon

State = Literal["starting", "waiting", "working", "asking", "ended", "stopped"]
Tell = Callable[..., None]


class Work(Protocol):
    """What a daemon can do. Every step may be repeated: it goes on where it was cut short."""

    def carry_out(self, job: Job) -> Mapping[str, Any] | None:
        """Do a job; what is recorded about it, or None while it waits for a person."""

    def watch(self) -> None:
        """Compare with the broker, book fills, see to protection, limits and a person's wishes."""

    def heard(self) -> bool:
        """Whether the broker's stream has said anything, or has missed something, since asked."""

    def ended(self) -> str:
        """Why no further slot can come: the embedded market's bars are over; empty while it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """How a daemon is.

    busy_since  of the job, or of the look at the account, at hand; system time
    failures    of jobs and looks, since it was started
    """

    state: State = "starting"
    market_time: datetime | None = None
    job: str = ""
    busy_since: datetime | None = None
    last_job: str = ""
    last_cycle: str = ""
    last_cycle_at: datetime | None = None
    next_job: str = ""
    next_job_at: datetime | None = None
    failures: int = 0
    problem: str = ""


FIRST_BEAT = Beat()


@dataclass(slots=True, kw_only=True)
class _Trouble:
    """A job that has failed: how often, and when it is tried again (monotonic seconds)."""

    times: int = 0
    again: float = 0.0


class Daemon:
    """Asks the agenda at every wake and does what is due; it has no thread and no clock of its own.

    now         market time
    begun       moments of the market up to then are nobody's
    simulated   market time waits until what is due has been done
    tell        (event, **facts): a line of the log
    beaten      called with the state whenever it changes
    stopped     whether a person or the system wants it to end
    seconds     on a clock that only runs forward, for the time between two looks and retries
    beat        what is known from before
    """

    def __init__(
        self,
        work: Work,
        *,
        ledger: Ledger,
        agenda: Agenda,
        now: Callable[[], datetime],
        begun: datetime,
        simulated: bool,
        watch_seconds: float,
        tell: Tell,
        beaten: Callable[[Beat], None],
        stopped: Callable[[], bool],
        seconds: Callable[[], float] = monotonic_seconds,
        beat: Beat = FIRST_BEAT,
    ) -> None:
        self._work, self._ledger, self._agenda = work, ledger, agenda
        self._now, self._simulated = now, simulated
        self._tell, self._beaten, self._stopped = tell, beaten, stopped
        self._seconds, self._watch_seconds = seconds, watch_seconds
        self.beat = beat
        first = next(ledger.records("job"), None)
        self._begun = begun if first is None else datetime.fromisoformat(first.body["begun"])
        self._since = agenda.session_before(self._begun)
        self._watch_at = self._watched_at = seconds()
        self._trouble: dict[str, _Trouble] = {}
        self._heard = self._spoken()
        self.woken_at = seconds()  # by the monotonic clock
        self._asking = ""  # key of the job that waits for a person

    def wake(self) -> datetime | None:
        """Do what is due; when to wake again, market time, or None when all is over.

        Raises StateError or ConfigError when it cannot go on: a person has to look.
        """
        self.woken_at = self._seconds()
        if self._stopped():
            self._end("stopped")
            return None
        self._listen()
        if self._seconds() >= self._watch_at:
            self._watch()
        now = self._now()
        look = self._agenda.look(now, since=self._since, begun=self._begun, done=self._done)
        for job in look.missed:
            self._miss(job)
        for job in look.due:
            if self._stopped():
                self._end("stopped")
                return None
            if self._may(job):
                self._do(job)
        self._since = look.settled
        following = look.next_job
        open_still = [job for job in look.due if not self._done(job)]
        if self._simulated and not open_still and following.name in ("pre_market", "cycle"):
            reason = self._work.ended()
            if reason:
                self._tell("market_ended", reason=reason)
                self._end("ended")
                return None
        self._show(
            state="asking" if self._asking else "waiting",
            market_time=now,
            next_job=following.key,
            next_job_at=following.due_at,
        )
        return now if self._simulated and open_still else following.due_at

    def _end(self, state: Literal["ended", "stopped"]) -> None:
        self._show(state=state, next_job="", next_job_at=None)

    # ---- jobs

    def _done(self, job: Job) -> bool:
        """Whether a job needs nothing more: it is recorded, or its slot is."""
        if job.slot is not None:
            last = self._ledger.last("slot")
            if last is not None and job.as_of <= datetime.fromisoformat(last.body["as_of"]):
                return True
        return self._ledger.record("job", job.key) is not None

    def _may(self, job: Job) -> bool:
        """Whether it is time to try a job (again)."""
        trouble = self._trouble.get(job.key)
        return job.key != self._asking and (trouble is None or self._seconds() >= trouble.again)

    def _do(self, job: Job) -> None:
        self._show(state="working", job=job.key, busy_since=SystemClock().now())
        changes: dict[str, Any] = {"state": "waiting", "job": "", "busy_since": None}
        try:
            body = self._work.carry_out(job)
        except PASSING as exc:
            self._failed(job.key, exc)
            if job.slot is not None and self._done(job):  # the account could not be read after it
                self._trouble.pop(job.key)
                changes |= self._finish(job, {"problem": str(exc)})
        else:
            if self._trouble.pop(job.key, None):
                self._tell("recovered", job=job.key)
                changes["problem"] = ""
            if body is None:
                self._asking = job.key
                changes["state"] = "asking"
                self._tell("asking", job=job.key)
            else:
                changes |= self._finish(job, body)
        self._show(**changes)

    def _finish(self, job: Job, body: Mapping[str, Any]) -> dict[str, Any]:
        """Record a job that is done; what changes of the beat."""
        self._write(job, "done", body)
        self._tell("job", job=job.key, **body)
        if job.name != "cycle":
            return {"last_job": job.key}
        now = SystemClock().now()
        return {"last_job": job.key, "last_cycle": job.key, "last_cycle_at": now}

    def _miss(self, job: Job) -> None:
        """Record what was not done in time; a GO that nobody approved is gone with its slot."""
        self._trouble.pop(job.key, None)
        outcome = "expired" if self._asking == job.key or self._was_asked(job) else "missed"
        self._asking = "" if self._asking == job.key else self._asking
        self._write(job, outcome, {})
        self._tell(outcome, job=job.key)

    def _was_asked(self, job: Job) -> bool:
        """Whether a person was asked about a slot that was not finished, by whichever process."""
        last = self._ledger.last("slot")
        asked = self._ledger.since(last.seq if last else 0, "approval")
        moments = (datetime.fromisoformat(item.body["request"]["as_of"]) for item in asked)
        return job.slot is not None and job.as_of in moments

    def _write(self, job: Job, outcome: str, body: Mapping[str, Any]) -> None:
        """Record a job under its key, which the ledger takes once, whoever writes."""
        record = {"as_of": job.as_of, "begun": self._begun, "outcome": outcome, **body}
        with self._ledger.transaction():
            if self._ledger.record("job", job.key) is None:
                self._ledger.append("job", job.key, record)

    def _failed(self, name: str, error: Exception) -> float:
        """Remember a failure and tell it once; seconds until the next try."""
        trouble = self._trouble.setdefault(name, _Trouble())
        trouble.times += 1
        wait = min(FIRST_RETRY_SECONDS * 2.0 ** (trouble.times - 1), LAST_RETRY_SECONDS)
        trouble.again = self._seconds() + wait
        if trouble.times == 1:
            self._tell("failed", job=name, problem=str(error))
        self._show(failures=self.beat.failures + 1, problem=f"{name}: {error}")
        return wait

    # ---- between jobs

    def _listen(self) -> None:
        """Hear what a person has written and what the broker's stream has said since."""
        if self._work.heard():
            self._watch_at = min(self._watch_at, self._watched_at + CALM_SECONDS)
        spoken = self._spoken()
        if spoken == self._heard:
            return
        if spoken["answer"] != self._heard["answer"]:
            self._asking = ""
        if spoken["control"] != self._heard["control"]:
            self._watch_at = self._seconds()
        self._heard = spoken

    def _spoken(self) -> dict[str, int]:
        newest = {kind: self._ledger.last(kind) for kind in HEARD}
        return {kind: record.seq if record else 0 for kind, record in newest.items()}

    def _watch(self) -> None:
        wait = self._watch_seconds
        self._show(busy_since=SystemClock().now())  # a slow broker is no daemon that hangs
        try:
            self._work.watch()
        except PASSING as exc:
            wait = min(wait, self._failed("watch", exc))
        else:
            if self._trouble.pop("watch", None):
                self._tell("recovered", job="watch")
                self._show(problem="")
        self._show(busy_since=None)
        self._watched_at = self._seconds()
        self._watch_at = self._watched_at + wait

    def _show(self, **changes: Any) -> None:
        beat = replace(self.beat, **changes)
        if beat != self.beat:
            self.beat = beat
            self._beaten(beat)


class Pace(Protocol):
    """Wakes a daemon: at the moments it names, and often enough to hear a person."""

    def now(self) -> datetime:
        """Market time."""

    def follow(self, wake: Callable[[], datetime | None]) -> None:
        """Call `wake` again and again, in this thread, until it returns None."""


class SimulatedPace:
    """Market time that moves from job to job, `speed` seconds a second; 0: without waiting.

    wait   sleeps up to so many seconds, less when the program is to stop
    """

    def __init__(self, start: datetime, *, speed: float, wait: Callable[[float], None]) -> None:
        self._at, self._speed, self._wait = start, speed, wait

    def now(self) -> datetime:
        """Market time."""
        return self._at

    def follow(self, wake: Callable[[], datetime | None]) -> None:
        """Walk from moment to moment; while one does not pass, look every second."""
        while (to := wake()) is not None:
            ahead = (to - self._at).total_seconds()
            if ahead <= 0:
                self._wait(LOOK_SECONDS)
            elif not self._speed or ahead <= self._speed * LOOK_SECONDS:
                self._wait(ahead / self._speed if self._speed else 0.0)
                self._at = to
            else:
                self._wait(LOOK_SECONDS)
                self._at += timedelta(seconds=LOOK_SECONDS * self._speed)


class RealPace:
    """The broker's time, told on from its last reading by a clock that no one can set.

    read           the broker's clock; EndpointError when it cannot be asked
    fresh_seconds  how long a reading is told on
    """

    def __init__(
        self,
        read: Callable[[], datetime],
        *,
        fresh_seconds: float,
        seconds: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._read, self._fresh, self._seconds = read, fresh_seconds, seconds
        self._at, self._told_at = SystemClock().now(), seconds()
        self._read_again = seconds()

    def now(self) -> datetime:
        """Market time; this computer's until the broker has told its own."""
        told_at = self._seconds()
        self._at += timedelta(seconds=told_at - self._told_at)
        self._told_at = told_at
        if told_at >= self._read_again:
            self._read_again = told_at + self._fresh
            with suppress(EndpointError):
                self._at = self._read()
        return self._at

    def follow(self, wake: Callable[[], datetime | None]) -> None:
        """APScheduler wakes at the moments named, by one dated job; a person is heard in between.

        All work is done in this thread. A clock that is set back makes the dated job late, not
        this loop.
        """
        from apscheduler.schedulers.background import BackgroundScheduler

        logging.getLogger("apscheduler").setLevel(logging.WARNING)  # not a line a second
        scheduler = BackgroundScheduler(
            timezone=UTC,
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
        )
        due = Event()
        scheduler.start()
        try:
            planned = None
            while (to := wake()) is not None:
                if to != planned:
                    ahead = max(to - self.now(), timedelta(0))
                    at = SystemClock().now() + ahead
                    scheduler.add_job(
                        due.set, "date", run_date=at, id="wake", replace_existing=True
                    )
                    planned = to
                due.wait(LOOK_SECONDS)
                due.clear()
        finally:
            scheduler.shutdown(wait=False)
