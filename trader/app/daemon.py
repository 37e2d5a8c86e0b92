"""The paper account on its schedule: what each job does, from the lock to the last line."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event, main_thread
from typing import Any, Literal, NoReturn

from trader.app.context import Context
from trader.app.fitting import as_begun, asked, require_bars, require_fitting, usable_at
from trader.app.folder import locked
from trader.app.heartbeat import Pulse, read
from trader.app.logs import logging_to, secrets_of, tell
from trader.app.metrics import Metrics, Standing, served
from trader.app.paper import PaperTrader, RunResult, paper_trader
from trader.app.running import begin_again, require_debate
from trader.app.venue import paper_keys
from trader.broker.session import trading_stream
from trader.broker.streams import TradeUpdates
from trader.core.canonical import Primitive, to_object
from trader.core.clock import SystemClock, monotonic_seconds
from trader.core.decision import Decision
from trader.core.errors import DataIntegrityError
from trader.core.market import session_of
from trader.core.ports import Approvals, DebateListener
from trader.core.trading import Position
from trader.ledger.book import Book
from trader.orders.protection import unprotected
from trader.pipeline.agenda import Agenda, Job
from trader.pipeline.daemon import Beat, Daemon, RealPace, SimulatedPace
from trader.pipeline.reflect import reflect
from trader.pipeline.slots import newest_slot

SCHEMA_VERSION = 1
SLICE_SECONDS = 0.25  # of a wait, after which a signal is looked for
LONGEST_JOB_SECONDS = 7_200.0  # a job that takes longer hangs
LONGEST_SILENCE_SECONDS = 60.0  # without a wake, when no job is at work
STOPPERS = {"halt": "halted", "freeze": "frozen", "pause": "paused", "lock": "locked"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonResult:
    """What `trader run --paper` prints when it ends.

    ended   market: the embedded market's bars are over; signal: it was told to stop
    signal  its number, 0 without one
    cycles  decisions taken since it was started
    """

    schema_version: int
    ended: Literal["market", "signal"]
    signal: int
    market_time: datetime
    simulated: bool
    source: str
    notices: tuple[str, ...]
    slots: int
    cycles: int
    fills: int
    failures: int
    positions: tuple[Position, ...]
    cash: Decimal
    equity: Decimal
    ledger_head: str

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


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


class PaperWork:
    """The jobs of a paper account, over its `PaperTrader`."""

    def __init__(self, app: Context, trader: PaperTrader, metrics: Metrics) -> None:
        self._app, self._trader, self._metrics = app, trader, metrics
        self._updates: TradeUpdates | None = None
        self._gap = False
        if not trader.simulated:
            self._updates = TradeUpdates(
                lambda: trading_stream(app.config.broker, paper_keys(app)), on_gap=self._missed
            )
        self._seen = trader.look()

    def carry_out(self, job: Job) -> Mapping[str, Any] | None:
        """Do a job; what is recorded about it, or None while a GO waits for a person."""
        if job.slot is not None:
            return self._run(self._trader.run_slot(job.slot))
        if job.name == "reflection":
            found = reflect(self._trader.ledger, self._book.trades.values())
            return {"trades": [item.trade_id for item in found]}
        self.watch()
        return self._summary(job) if job.name == "post_close" else {}

    def _run(self, result: RunResult) -> Mapping[str, Any] | None:
        for notice in result.notices:
            tell("notice", text=notice)
        for request in result.awaiting:
            tell("asking", cycle=request.cycle_id, approve=f"trader approve {request.cycle_id}")
        self._measure(result)
        if result.slot is None:
            return None
        verdicts = [str(cycle.debate.verdict.decision) for cycle in result.cycles]
        if self._updates is not None and any(cycle.intent is not None for cycle in result.cycles):
            self._updates.due()
        self._metrics.fills += len(result.fills)
        self._metrics.decisions.update(verdicts)
        for cycle in result.cycles:
            tell(
                "decision",
                cycle=cycle.cycle_id,
                verdict=cycle.debate.verdict.decision,
                ordered=cycle.intent is not None,
                why=cycle.debate.verdict.rationale,
            )
        return {
            "market_time": result.slot.as_of,
            "equity": result.equity,
            "cash": result.cash,
            "fills": len(result.fills),
            "decisions": len(verdicts),
            "go": verdicts.count(str(Decision.GO)),
        }

    def _summary(self, job: Job) -> dict[str, Any]:
        """The session in numbers, from what its last slot recorded."""
        last = self._trader.ledger.last("slot")
        if last is None or last.body["session"] != job.session.isoformat():
            return {"session": job.session}
        closed = [
            trade
            for trade in self._book.trades.values()
            if not trade.is_open and trade.exited_at and session_of(trade.exited_at) == job.session
        ]
        return {
            "session": job.session,
            "equity": last.body["equity"],
            "cash": last.body["cash"],
            "positions": len(last.body["positions"]),
            "closed_trades": len(closed),
            "profit": sum((trade.profit for trade in closed), Decimal(0)),
        }

    @property
    def _book(self) -> Book:
        return self._trader.account.journal.book

    def watch(self) -> None:
        """Compare with the broker and see to protection, limits and a person's wishes."""
        self._trader.watch()
        self._measure(self._trader.look())

    def heard(self) -> bool:
        """Whether the broker's stream has said anything, or has missed something, since asked."""
        if self._updates is None:
            return False
        told, gap = self._updates.poll(), self._gap
        self._gap = False
        self._metrics.stream_open = not self._updates.problem
        if told:
            self._metrics.heard_at = SystemClock().now()
        return bool(told) or gap

    def _missed(self, why: str) -> None:
        tell("stream", text=why)
        self._gap = True

    def close(self) -> None:
        """Let go of the broker's stream."""
        if self._updates is not None:
            self._updates.close()

    def _measure(self, found: RunResult) -> None:
        """Keep what is told of the account."""
        self._seen = found
        journal = self._trader.account.journal
        live = [leg for order in found.orders for leg in order.with_legs()]
        forces = {control.action for control in self._trader.account.controls.in_force()}
        self._metrics.standing = Standing(
            equity=found.equity,
            cash=found.cash,
            positions=len(found.positions),
            open_orders=sum(not leg.status.is_final for leg in live),
            unresolved=len(journal.unresolved()),
            unprotected=len(unprotected(journal, live)),
            stopped={name: int(action in forces) for action, name in STOPPERS.items()},
        )

    def ended(self) -> str:
        """Why the embedded market has no further slot; empty while it has."""
        try:
            require_bars(self._app, self._trader.next_slot().as_of, begun=True)
        except DataIntegrityError as exc:
            return str(exc)
        return ""

    def tell(self, event: str, **facts: Any) -> None:
        """Log what the daemon tells, and count its jobs."""
        outcome = {"job": "done", "missed": "missed", "expired": "expired", "failed": "failed"}
        if event in outcome:
            name = str(facts["job"]).split("-", maxsplit=1)[0]
            self._metrics.jobs[name, outcome[event]] += 1
        tell(event, **facts)

    def result(
        self, stopped_by: int, at: datetime, failures: int, notices: list[str]
    ) -> DaemonResult:
        """What the command prints when it ends."""
        found = self._seen  # the broker may be out of reach
        return DaemonResult(
            schema_version=SCHEMA_VERSION,
            ended="signal" if stopped_by else "market",
            signal=stopped_by,
            market_time=at,
            simulated=found.simulated,
            source=found.source,
            notices=tuple(notices),
            slots=self._metrics.jobs["cycle", "done"],
            cycles=self._metrics.decisions.total(),
            fills=self._metrics.fills,
            failures=failures,
            positions=found.positions,
            cash=found.cash,
            equity=found.equity,
            ledger_head=self._trader.ledger.head,
        )
