"""The paper account on its schedule: what each job does, from the lock to the last line."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, main_thread
from typing import NoReturn

from trader.app.context import Context
from trader.app.fitting import as_begun, asked, require_fitting, usable_at
from trader.app.folder import locked
from trader.app.heartbeat import Pulse, read
from trader.app.jobs import DaemonResult, PaperWork
from trader.app.logs import logging_to, secrets_of, tell
from trader.app.metrics import Metrics, served
from trader.app.paper import PaperTrader, paper_trader
from trader.app.running import begin_again, require_debate
from trader.core.clock import SystemClock, monotonic_seconds
from trader.core.ports import Approvals, DebateListener
from trader.pipeline.agenda import Agenda
from trader.pipeline.daemon import Beat, Daemon, RealPace, SimulatedPace
from trader.pipeline.slots import newest_slot

SCHEMA_VERSION = 1
SLICE_SECONDS = 0.25  # of a wait, after which a signal is looked for
LONGEST_JOB_SECONDS = 7_200.0  # a job that takes longer hangs
LONGEST_SILENCE_SECONDS = 60.0  # without a wake, when no job is at work
STOPPERS = {"halt": "halted", "freeze": "frozen", "pause": "paused", "lock": "locked"}


class Stop:
    """SIGTERM and SIGINT: the first one ends a daemon after the job at hand, a second at once."""

    def __init__(self) -> None:
        self.signal = 0
        self._never = Event()

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Take both signals while the block runs."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, self._heard) for number in numbers]
        try:
            yield self
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _heard(self, number: int, _frame: object) -> None:
        if self.signal:
            _leave(number)
        self.signal = number  # no lock is taken here: the handler may stand inside a wait

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return self.signal != 0

    def wait(self, seconds: float) -> None:
        """Sleep, less when a signal comes."""
        ends = monotonic_seconds() + seconds
        while not self.signal and (left := ends - monotonic_seconds()) > 0:
            self._never.wait(min(left, SLICE_SECONDS))


def _leave(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)  # on the way out everything is closed; the journal goes on


def follow(
    app: Context,
    *,
    restart_market: bool,
    log: Path | None,
    quiet: bool,
    listener: DebateListener | None = None,
) -> DaemonResult:
    """Do what the schedule says until the market's bars end or a signal comes.

    log  file of the log; None writes it to stderr
    Raises as `run_once` does, before anything is begun and when it cannot go on.
    """
    require_debate(app)
    settings, secrets = app.config.daemon, secrets_of(app.config, app.environ)
    notices: list[str] = []
    with ExitStack() as held:
        held.enter_context(locked(app.state_dir))
        held.enter_context(logging_to(log, form=settings.log_format, secrets=secrets, quiet=quiet))
        stop = held.enter_context(Stop().listening())
        if restart_market:
            begin_again(app, notices)
        schedule = Schedule(app, held, stop=stop, notices=notices, listener=listener)
        while (result := schedule.walk()) is None:
            pass
        tell("end", ended=result.ended, slots=result.slots, equity=result.equity)
        return result


class Schedule:
    """The schedule of one process, over one account that may be opened more than once.

    A slot in which a GO waited for a person is finished with the settings that it was begun with.
    Then the account is opened again, with those of now.

    held  takes what lasts as long as the process does
    """

    def __init__(
        self,
        app: Context,
        held: ExitStack,
        *,
        stop: Stop,
        notices: list[str],
        listener: DebateListener | None,
    ) -> None:
        self._app, self._held, self._stop = app, held, stop
        self._notices, self._listener = notices, listener
        self._metrics = Metrics()
        self._address = ""
        self._pulse: Pulse | None = None
        self._daemon: Daemon | None = None

    def walk(self) -> DaemonResult | None:
        """Walk until the end, or, with None, until the account has to be opened again."""
        app, run_id = as_begun(self._app)
        require_fitting(app)
        settings, stop = self._app.config.daemon, self._stop
        if self._pulse is None:
            metrics = self._metrics
            self._address = self._held.enter_context(served(settings.metrics_port, metrics.text))
        with ExitStack() as opened:
            trader = opened.enter_context(
                paper_trader(
                    app,
                    approvals=Approvals(unanswered="waits"),
                    listener=self._listener,
                    notices=self._notices,
                    run_id=run_id,
                )
            )
            if trader.cut_short(trader.next_slot()) and run_id is None:
                self._notices.append("a slot was cut short; it is finished now")
            work = PaperWork(app, trader, self._metrics)
            opened.callback(work.close)
            pace: SimulatedPace | RealPace
            if trader.simulated:
                pace = SimulatedPace(trader.now(), speed=settings.speed, wait=stop.wait)
            else:
                beside = app.config.broker.base_url is not None  # its clock may run at any speed
                fresh = 0.5 if beside else settings.reconcile_minutes * 60
                pace = RealPace(trader.now, fresh_seconds=fresh)

            def settled() -> bool:
                """Whether the slot is over that had to be finished as it was begun."""
                if run_id is None:
                    return False
                usable = usable_at(app, None if trader.simulated else pace.now())
                return not any(map(usable, asked(trader.ledger)))

            self._daemon = Daemon(
                work,
                ledger=trader.ledger,
                agenda=Agenda(
                    trader.calendar, trader.timeframe, settings, delayed=not trader.simulated
                ),
                now=pace.now,
                begun=_begun(trader, pace.now()),
                simulated=trader.simulated,
                watch_seconds=settings.reconcile_minutes * 60,
                tell=work.tell,
                beaten=self._beaten,
                stopped=lambda: stop.asked or settled(),
                beat=self._last_beat(trader),
            )
            self._begin(trader, pace.now())
            pace.follow(self._daemon.wake)
            if self._daemon.beat.state == "stopped" and not stop.asked:
                tell("notice", text="the slot that waited is over: the settings of now hold again")
                return None
            return work.result(stop.signal, pace.now(), self._daemon.beat.failures, self._notices)

    def _last_beat(self, trader: PaperTrader) -> Beat:
        """What is still true of the last beat of this account, whichever process it was of."""
        found = read(self._app.state_dir)
        if found is None or trader.ledger.last("slot") is None:
            return Beat()
        last, failures = found.beat, self._metrics.failures
        return Beat(last_cycle=last.last_cycle, last_cycle_at=last.last_cycle_at, failures=failures)

    def _begin(self, trader: PaperTrader, now: datetime) -> None:
        """Say that the schedule begins, once."""
        if self._pulse is not None:
            return
        self._pulse = self._held.enter_context(
            Pulse(
                self._app.state_dir,
                simulated=trader.simulated,
                metrics=self._address,
                alive=lambda: self._daemon is None or _alive(self._daemon),
                written=self._metrics.beaten,
            )
        )
        tell(
            "start",
            state_dir=str(self._app.state_dir),
            source=self._app.data.name,
            simulated=trader.simulated,
            market_time=now,
            notices=self._notices,
            **({"metrics": self._address} if self._address else {}),
        )

    def _beaten(self, beat: Beat) -> None:
        self._metrics.failures, self._metrics.cycle_at = beat.failures, beat.last_cycle_at
        reopens = beat.state == "stopped" and not self._stop.asked
        if self._pulse is not None and not reopens:
            self._pulse.beat(beat)


def _begun(trader: PaperTrader, now: datetime) -> datetime:
    """The moment after which the schedule of a new account begins.

    In real time that is just before the newest slot: nobody is to blame for older ones.
    """
    if trader.simulated:
        return trader.finished()
    newest = newest_slot(trader.calendar, trader.timeframe, now)
    return max(trader.finished(), newest.as_of - timedelta(microseconds=1) if newest else now)


def _alive(daemon: Daemon) -> bool:
    """Whether the daemon still moves: it wakes, or a job of bearable length is at work."""
    busy = daemon.beat.busy_since
    if busy is not None:
        return (SystemClock().now() - busy).total_seconds() < LONGEST_JOB_SECONDS
    return main_thread().is_alive() and (
        monotonic_seconds() - daemon.woken_at < LONGEST_SILENCE_SECONDS
    )
