"""The audit of the whole agent: does it decide by anything that it could not have known?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from strategies.kernels.dispatch import kernels
from trader.app.assembly import Account, open_account, run_body, run_id_of, starting_cash
from trader.app.backtesting import INDICATORS_PER_SLOT
from trader.app.context import Context
from trader.app.debaters import Debaters
from trader.app.periods import Coverage, cover
from trader.backtest.leakage import controls, future
from trader.backtest.leakage.agent import Agent, Audit, Taken
from trader.backtest.leakage.findings import LeakTest
from trader.backtest.replay import Replay, replay
from trader.core.canonical import Primitive, to_object
from trader.core.clock import SystemClock
from trader.core.errors import UsageError
from trader.core.market import from_ns, session_of
from trader.core.ports import Deliberation, MarketData, Spend
from trader.ledger.store import Ledger
from trader.pipeline.records import SlotRecord
from trader.pipeline.slots import Slot, slots_between
from trader.report.contents import SourceInfo

if TYPE_CHECKING:
    from strategies.kernels.dispatch import KernelSet

__all__ = ["AuditResult", "LeakTest", "audit_leak"]  # what the command line shows

SCHEMA_VERSION = 1
SAMPLE = 40  # decisions taken again by each test
USUAL_PERIOD = timedelta(days=365)
WALKS = 6  # about how many times the tests look at every bar
NEWS_SEED = 7

AuditProgress = Callable[[str, int, int, Slot | SlotRecord], None]  # test, number, of, where


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What `trader audit-leak` prints.

    decisions  taken by the walk over the period
    audited    of them, spread evenly, taken again by each test
    leak       something changed that should not have, be it for want of a steady answer
    complete   every debate got an answer
    """

    schema_version: int
    source: SourceInfo
    first_session: date
    last_session: date
    slots: int
    strategies: tuple[str, ...]
    debater: str
    notices: tuple[str, ...]
    decisions: int
    audited: int
    leak: bool
    complete: bool
    tests: tuple[LeakTest, ...]
    spend: Spend

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def audit_leak(
    app: Context,
    *,
    start: date | None = None,
    end: date | None = None,
    sample: int = SAMPLE,
    progress: AuditProgress | None = None,
) -> AuditResult:
    """Walk over the period, then take its decisions again in every way that must not matter.

    start  None: a year before the end
    Raises UsageError when the debate is off or the sample is empty, and whatever a backtest raises
    about a period without bars.
    """
    if app.config.debate.mode == "off":
        raise UsageError("the debate is switched off: set debate.mode to rules or llm")
    if sample < 1:
        raise UsageError(f"--sample {sample}: audit at least one decision")
    coverage = _coverage(app, start, end)
    slots = slots_between(app.calendar, app.timeframe, coverage.first, coverage.last)
    debaters = Debaters(app.config, environ=app.environ)
    try:
        return _audited(app, coverage, slots, debaters, sample=sample, progress=progress)
    finally:
        debaters.close()


def _audited(
    app: Context,
    coverage: Coverage,
    slots: Sequence[Slot],
    debaters: Debaters,
    *,
    sample: int,
    progress: AuditProgress | None,
) -> AuditResult:
    bench = _Bench(app, coverage, slots, debaters.deliberation("debate"), progress)
    run = bench.walk("walk", app.data, slots, bench.deliberation)
    where = {slot.as_of: slot for slot in slots}
    audit = Audit(
        agent_over=bench.agent_over,
        walk=bench.walk,
        data=app.data,
        symbols=coverage.source.symbols,
        slots=slots,
        run=run,
        taken=[
            Taken(record=record, slot=where[record.as_of])
            for record in controls.evenly(run.cycles, sample)
        ],
        tell=progress,
    )
    swapped = debaters.deliberation("debate", bear_first=True)
    tests = (
        future.known_in_time(audit),
        future.future_cut(audit),
        future.future_poisoned(audit),
        future.signals(audit),
        future.account(audit),
        controls.masked(audit),
        controls.order_swapped(audit, swapped),
        controls.news_shuffled(audit, NEWS_SEED),
        controls.mirrored(audit),
        controls.white_noise(audit, sample, starting_cash(app.config)),
    )
    return AuditResult(
        schema_version=SCHEMA_VERSION,
        source=coverage.source,
        first_session=coverage.first,
        last_session=coverage.last,
        slots=len(slots),
        strategies=tuple(app.config.strategies.enabled),
        debater=bench.deliberation.debater,
        notices=coverage.notices,
        decisions=len(run.cycles),
        audited=len(audit.taken),
        leak=any(test.changed for test in tests),
        complete=not any(test.unanswered for test in tests),
        tests=tests,
        spend=debaters.spend,
    )


def _coverage(app: Context, start: date | None, end: date | None) -> Coverage:
    series = {symbol: app.data.bars(symbol, app.timeframe) for symbol in app.symbols()}
    newest = max(session_of(from_ns(bars.timestamp[-1])) for bars in series.values())
    last = newest if end is None else min(end, newest)
    return cover(
        app.data,
        series,
        app.calendar,
        start=last - USUAL_PERIOD if start is None else start,
        end=end,
        now=SystemClock().now(),
    )


class _Bench:
    """Makes agents and walks over any market, all with the same settings and the same debaters."""

    def __init__(
        self,
        app: Context,
        coverage: Coverage,
        slots: Sequence[Slot],
        deliberation: Deliberation,
        progress: AuditProgress | None,
    ) -> None:
        self._app, self.deliberation, self._progress = app, deliberation, progress
        self._symbols, self._start = coverage.source.symbols, slots[0].since
        bars = sum(len(item) for item in coverage.series.values())
        self._kernels: KernelSet = kernels(
            app.config.kernels.backend, bars=WALKS * len(slots) * bars * INDICATORS_PER_SLOT
        )
        body = run_body(
            app.config,
            symbols=self._symbols,
            source=app.data.name,
            cash=starting_cash(app.config),
            debated=True,
        )
        self._run_id = run_id_of(
            "audit-", body, coverage.source.sha256, coverage.first, coverage.last
        )
        self._candidates = self._account(app.data, deliberation).cycle.candidates

    def agent_over(self, data: MarketData) -> Agent:
        """The agent over a market: nothing in it but the market depends on which."""
        return Agent(
            data=data,
            timeframe=self._app.timeframe,
            calendar=self._app.calendar,
            candidates=self._candidates,
            kernels=self._kernels,
            deliberation=self.deliberation,
        )

    def walk(
        self, name: str, data: MarketData, slots: Sequence[Slot], deliberation: Deliberation
    ) -> Replay:
        """The cycle of a paper run over a market, with an account of its own."""
        account = self._account(data, deliberation)
        progress = self._progress
        words = name.replace("_", " ")
        tell = None if progress is None else (lambda n, of, slot: progress(words, n, of, slot))
        return replay(
            account.cycle, slots, book=account.journal.book, ledger=account.ledger, progress=tell
        )

    def _account(self, data: MarketData, deliberation: Deliberation) -> Account:
        return open_account(
            self._app.config,
            run_id=self._run_id,
            symbols=self._symbols,
            data=data,
            calendar=self._app.calendar,
            ledger=Ledger(None, durable=False),
            kernels=self._kernels,
            start=self._start,
            cash=starting_cash(self._app.config),
            deliberation=deliberation,
        )
