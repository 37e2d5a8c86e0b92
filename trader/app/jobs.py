"""The jobs of the schedule: what each does with the paper account, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from trader.app.context import Context
from trader.app.fitting import require_bars
from trader.app.ledger_files import backup_after_close
from trader.app.logs import tell, warn
from trader.app.metrics import Metrics, Standing
from trader.app.paper import PaperTrader, RunResult
from trader.app.venue import paper_keys
from trader.broker.session import bar_stream, trading_stream
from trader.broker.streams import BarUpdates, TradeUpdates
from trader.core.canonical import Primitive, to_object
from trader.core.clock import SystemClock
from trader.core.decision import Decision
from trader.core.errors import DataIntegrityError, StateError
from trader.core.market import session_of
from trader.core.trading import Position
from trader.ledger.book import Book
from trader.orders.protection import unprotected
from trader.pipeline.agenda import Job
from trader.pipeline.reflect import reflect

SCHEMA_VERSION = 1
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
        self._bars = self._bar_stream()
        self._seen = trader.look()

    def carry_out(self, job: Job) -> Mapping[str, Any] | None:
        """Do a job; what is recorded about it, or None while a GO waits for a person."""
        if job.slot is not None:
            return self._run(self._trader.run_slot(job.slot))
        if job.name == "reflection":
            found = reflect(self._trader.ledger, self._book.trades.values())
            return {"trades": [item.trade_id for item in found]}
        self.watch()
        if job.name != "post_close":
            return {}
        try:
            backup_after_close(self._trader.ledger, self._app.state_dir)
        except StateError as exc:
            self.tell("backup_failed", problem=str(exc))
        return self._summary(job)

    def _run(self, result: RunResult) -> Mapping[str, Any] | None:
        for notice in result.notices:
            tell("notice", text=notice)
        for request in result.awaiting:
            tell("asking", cycle=request.cycle_id, approve=f"trader approve {request.cycle_id}")
        self._measure(result)
        slot = result.slot
        if slot is None:
            return None
        warn(slot.problem, naked=slot.naked, emergencies=slot.emergencies)
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
            "market_time": slot.as_of,
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
        watched = self._trader.watch()
        news, done = watched.compared.news, watched.protected
        warn(news.problem if news else "", naked=done.naked, emergencies=done.emergencies)
        self._measure(self._trader.look())

    def heard(self) -> bool:
        """Whether the broker's stream has said anything, or has missed something, since asked."""
        if self._updates is None:
            return False
        self._listen_to_bars()
        told, gap = self._updates.poll(), self._gap
        self._gap = False
        self._metrics.stream_open = not self._updates.problem
        if told:
            self._metrics.heard_at = SystemClock().now()
        return bool(told) or gap

    def _missed(self, why: str) -> None:
        tell("stream", text=why)
        self._gap = True

    def _bar_stream(self) -> BarUpdates | None:
        """The stream of Alpaca's bars, where orders go there and so do decisions look."""
        if self._trader.simulated or self._trader.prices is None:
            return None
        app, symbols = self._app, self._trader.streamed()
        data = app.config.data
        return BarUpdates(
            lambda: bar_stream(
                paper_keys(app),
                symbols,
                feed=data.feed,
                heartbeat=symbols[0],
                base_url=data.base_url,
            ),
            on_gap=lambda why: tell("bars", text=why),  # prices that are not fresh are asked for
        )

    def _listen_to_bars(self) -> None:
        if self._bars is not None and self._trader.prices is not None:
            lively = self._trader.calendar.session_at(SystemClock().now()) is not None
            self._trader.prices.hear(self._bars.poll(lively=lively))

    def close(self) -> None:
        """Let go of the broker's streams."""
        for stream in (self._updates, self._bars):
            if stream is not None:
                stream.close()

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
