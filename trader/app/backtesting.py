"""The backtest: the debate beside everything simpler, over equal bars at equal costs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal

from strategies.kernels.dispatch import KernelSet, kernels
from trader.app.assembly import (
    NOBODY,
    costs_of,
    limits_of,
    open_account,
    program_version,
    run_body,
    run_id_of,
    starting_cash,
    strategies_of,
)
from trader.app.context import Context
from trader.app.debaters import Debaters, Who
from trader.app.folder import make_folder
from trader.app.periods import Coverage, cover
from trader.app.reports import replace_folder, sweep, trades_csv
from trader.app.yardsticks import NOTICES, Sizing, hold, read_sizing, walk_all_in
from trader.backtest.evaluation import funnel, refusals, replay_column, trade_rows
from trader.backtest.replay import Progress, Replay, replay
from trader.backtest.shadow import ShadowLedger
from trader.backtest.worth import collapse_words, known_before, was_argued, worth_of
from trader.core.canonical import Primitive, canonical_json, to_object
from trader.core.clock import SystemClock
from trader.core.decision import CycleRecord, Decision
from trader.ledger.store import Ledger
from trader.pipeline.records import SlotRecord
from trader.pipeline.slots import Slot, slots_between, slots_per_year
from trader.report.contents import (
    Column,
    Funnel,
    ReportContents,
    ShadowTrade,
    SourceInfo,
    TradeRow,
    Worth,
)
from trader.report.page import write_page

SCHEMA_VERSION = 1
INDICATORS_PER_SLOT = 20  # about how many series one slot computes for each symbol
LABELS = {
    "debate": "debate",
    "rules_debate": "rules debate",
    "arbitrator_alone": "arbitrator alone",
    "without_debate": "without debate",
    "buy_and_hold": "buy & hold",
}
ALL_IN = {"all_in": "all in"}  # in place of every walk of the pipeline, where it was asked for

BacktestProgress = Callable[[str, int, int, SlotRecord], None]  # column, slot number, slots, record


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateLine:
    """One debate in short; the report has it in full.

    calls    to models, those of a hearing among them
    fallback why rules debated in place of models; empty when they did not
    day      against the model's knowledge cutoff; None where no model debates
    """

    cycle_id: str
    as_of: datetime
    symbol: str
    strategy: str
    decision: Decision
    reward_risk_ratio: float | None
    expected_value_r: float | None
    confidence: float
    bull: str  # what it wants
    attacked: str  # the claim of the bull that the bear found weakest
    bear: str  # what it found against that claim
    flags: tuple[str, ...]  # rules that failed
    rationale: str
    calls: int
    fallback: str
    day: Literal["before_cutoff", "after_cutoff", "cutoff_unknown"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestResult:
    """What `trader backtest` prints. results: a column by key; None where it was not run."""

    schema_version: int
    run_id: str
    source: SourceInfo
    first_session: date
    last_session: date
    sessions: int
    slots: int
    debater: str
    kernels: str
    notices: tuple[str, ...]
    funnel: Funnel
    results: Mapping[str, Column | None]
    worth: Worth
    debates: tuple[DebateLine, ...]
    trades: tuple[TradeRow, ...]
    report: str
    files: Mapping[str, str]
    ledger_head: str

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command; equity curves are left to the report.

        What says whether the debate is worth its cost stands on the first level: intervals,
        refusals (the shadow ledger), calibration, spend, knowledge, …
        """
        whole = to_object(self)
        del whole["worth"]
        whole |= to_object(self.worth)
        whole["results"] = {
            key: None if found is None else {"label": found.label, **to_object(found.performance)}
            for key, found in self.results.items()
        }
        return whole


def backtest(
    app: Context,
    *,
    start: date,
    end: date | None,
    out: Path | None,
    sizing: str,
    progress: BacktestProgress | None,
) -> BacktestResult:
    """Run every column, write the report folder, return what is printed.

    sizing  "risk" as the gate sizes, or "all_in" to measure one strategy alone with all the cash
    """
    asked = read_sizing(app, sizing)
    config, calendar, data = app.config, app.calendar, app.data
    symbols = app.symbols()
    series = {symbol: data.bars(symbol, app.timeframe) for symbol in symbols}
    coverage = cover(data, series, calendar, start=start, end=end, now=SystemClock().now())
    slots = slots_between(calendar, app.timeframe, coverage.first, coverage.last)
    bars = sum(len(item) for item in coverage.series.values())
    compute = kernels(config.kernels.backend, bars=len(slots) * bars * INDICATORS_PER_SLOT)
    debated = config.debate.mode != "off"
    body = run_body(
        config, symbols=symbols, source=data.name, cash=starting_cash(config), debated=debated
    ) | {"sizing": asked}
    run_id = run_id_of("bt-", body, coverage.source.sha256, coverage.first, coverage.last)
    folder = (out or app.state_dir / "reports") / run_id
    sweep(make_folder(folder.parent))
    work = folder.with_name(f".{run_id}.{os.getpid()}")
    try:
        make_folder(work)
        result = _run(
            app,
            coverage,
            slots,
            compute,
            body,
            run_id=run_id,
            folder=folder,
            work=work,
            sizing=asked,
            progress=progress,
        )
        replace_folder(folder, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return result


def _run(
    app: Context,
    coverage: Coverage,
    slots: Sequence[Slot],
    compute: KernelSet,
    body: dict[str, object],
    *,
    run_id: str,
    folder: Path,
    work: Path,
    sizing: Sizing,
    progress: BacktestProgress | None,
) -> BacktestResult:
    config = app.config
    debated = config.debate.mode != "off"
    cash = starting_cash(config)
    periods = slots_per_year(app.calendar, app.timeframe)
    ledger = Ledger(work / "ledger.db", durable=False)
    ledger.append(
        "run",
        run_id,
        {**body, "data": coverage.source, "first": coverage.first, "last": coverage.last},
    )
    modelled = config.debate.mode == "llm"
    walked: dict[str, Who] = {}
    if debated:
        walked["debate"] = "debate"
        if modelled:
            walked["rules_debate"] = "rules"
        walked["arbitrator_alone"] = "arbitrator"
    walked["without_debate"] = "nobody"
    labels = LABELS | ({"debate": "model debate"} if modelled else {})
    if sizing == "all_in":
        labels = ALL_IN | labels
    columns: dict[str, Column | None] = dict.fromkeys(labels)

    debaters = Debaters(config, environ=app.environ)

    def telling(key: str) -> Progress | None:
        return (
            None if progress is None else (lambda n, of, slot: progress(labels[key], n, of, slot))
        )

    def book_column(key: str, found: Replay) -> None:
        columns[key] = replay_column(
            key, labels[key], found, initial=float(cash), periods_per_year=periods
        )

    def walk(key: str, own_ledger: Ledger) -> tuple[Replay, str]:
        deliberation = debaters.deliberation(walked[key])
        account = open_account(
            config,
            run_id=run_id,
            symbols=coverage.source.symbols,
            data=app.data,
            calendar=app.calendar,
            ledger=own_ledger,
            kernels=compute,
            start=slots[0].since,
            cash=cash,
            deliberation=deliberation,
        )
        found = replay(
            account.cycle,
            slots,
            book=account.journal.book,
            ledger=own_ledger,
            progress=telling(key),
        )
        book_column(key, found)
        return found, deliberation.debater

    first, *others = walked
    with closing(debaters):
        if sizing == "all_in":
            alone = walk_all_in(
                app,
                coverage,
                slots,
                compute,
                run_id=run_id,
                cash=cash,
                ledger=ledger,
                progress=telling("all_in"),
            )
            book_column("all_in", alone.replay)
            main, debater, found_funnel, rows = alone.replay, NOBODY, alone.funnel, alone.trades
        else:
            main, debater = walk(first, ledger)
            found_funnel, rows = funnel(main), trade_rows(main)
            for key in others:
                walk(key, Ledger(None, durable=False))
    columns["buy_and_hold"] = hold(
        app,
        coverage,
        slots,
        label=labels["buy_and_hold"],
        cash=cash,
        periods_per_year=periods,
    )
    ledger.append(
        "result",
        run_id,
        {
            "funnel": found_funnel,
            "columns": {key: item.performance if item else None for key, item in columns.items()},
            "trades": rows,
        },
    )
    head = ledger.head
    ledger.note(
        "program", {"version": program_version(), "kernels": f"{compute.backend}: {compute.reason}"}
    )
    ledger.close()
    cutoff = config.models.knowledge_cutoff
    worth = worth_of(
        [item for item in columns.values() if item is not None],
        cycles=main.cycles if debated else (),
        trades=rows,
        followed=_shadows(app, coverage, compute, main) if debated else (),
        spend=debaters.spend,
        modelled=modelled,
        cutoff=cutoff,
        periods_per_year=periods,
    )
    notices = NOTICES[sizing] + coverage.notices + app.data_notices
    if worth.collapsed:
        notices += (collapse_words(found_funnel.go, sum(map(was_argued, main.cycles))),)
    result = BacktestResult(
        schema_version=SCHEMA_VERSION,
        run_id=run_id,
        source=coverage.source,
        first_session=coverage.first,
        last_session=coverage.last,
        sessions=len({slot.session for slot in slots}),
        slots=len(slots),
        debater=debater,
        kernels=f"{compute.backend}: {compute.reason}",
        notices=notices,
        funnel=found_funnel,
        results=columns,
        worth=worth,
        debates=tuple(_debate_line(cycle, cutoff, modelled=modelled) for cycle in main.cycles)
        if debated
        else (),
        trades=rows,
        report=str(folder / "report.html"),
        files={
            name: str(folder / name)
            for name in ("report.html", "trades.csv", "cycles.jsonl", "ledger.db")
        },
        ledger_head=head,
    )
    _write(work, result, main, slots, app)
    return result


def _shadows(
    app: Context, coverage: Coverage, compute: KernelSet, main: Replay
) -> tuple[ShadowTrade, ...]:
    """Every decision of the walk followed to its end; made when all of them have been taken."""
    ledger = ShadowLedger(
        bars=coverage.series,
        strategies={item.name: item for item in strategies_of(app.config, compute)},
        slots=main.slots,
        costs=costs_of(app.config),
        limits=limits_of(app.config),
    )
    return ledger.follow(main.cycles)


def _debate_line(cycle: CycleRecord, cutoff: date | None, *, modelled: bool) -> DebateLine:
    debate, verdict = cycle.debate, cycle.debate.verdict
    day: Literal["before_cutoff", "after_cutoff", "cutoff_unknown"] | None = None
    if modelled and cutoff is None:
        day = "cutoff_unknown"
    elif modelled:
        day = "before_cutoff" if known_before(cycle, cutoff) else "after_cutoff"
    return DebateLine(
        cycle_id=cycle.cycle_id,
        as_of=cycle.as_of,
        symbol=cycle.symbol,
        strategy=cycle.strategy,
        decision=verdict.decision,
        reward_risk_ratio=verdict.reward_risk_ratio,
        expected_value_r=verdict.expected_value_r,
        confidence=verdict.confidence,
        bull=debate.arguments[0].thesis if debate.arguments else "",
        attacked=debate.rebuttals[0].weakest_claim if debate.rebuttals else "",
        bear=debate.rebuttals[0].counter if debate.rebuttals else "",
        flags=tuple(str(flag.code) for flag in verdict.flags),
        rationale=verdict.rationale,
        calls=len(debate.calls) + (len(debate.hearing.calls) if debate.hearing else 0),
        fallback=debate.fallback,
        day=day,
    )


def _write(
    work: Path, result: BacktestResult, main: Replay, slots: Sequence[Slot], app: Context
) -> None:
    contents = ReportContents(
        run_id=result.run_id,
        version=program_version(),
        source=result.source,
        period=f"{result.first_session} to {result.last_session}, {result.sessions} sessions",
        settings=_settings(app, all_in="all_in" in result.results),
        notices=result.notices,
        debater=result.debater,
        funnel=result.funnel,
        times=tuple(slot.as_of for slot in slots),
        columns=tuple(item for item in result.results.values() if item is not None),
        trades=result.trades,
        cycles=main.cycles,
        refusals=refusals(main),
        ledger_head=result.ledger_head,
        worth=result.worth,
        periods_per_year=slots_per_year(app.calendar, app.timeframe),
    )
    (work / "report.html").write_text(write_page(contents), encoding="utf-8")
    (work / "trades.csv").write_text(trades_csv(result.trades), encoding="utf-8", newline="")
    lines = "".join(f"{canonical_json(cycle)}\n" for cycle in main.cycles)
    (work / "cycles.jsonl").write_text(lines, encoding="utf-8")


def _settings(app: Context, *, all_in: bool) -> dict[str, str]:
    config = app.config
    sized = {
        "risk per trade": f"{config.risk.risk_per_trade:.2%} of equity",
        "cap per symbol": f"{config.risk.max_position_weight:.0%}",
        "least reward:risk": f"{config.risk.min_reward_risk:g}",
    }
    if all_in:
        sized = {"sizing": "all cash; the cap per symbol and the risk gate do not apply"}
    return {
        "strategies": ", ".join(config.strategies.enabled),
        "timeframe": config.data.timeframe,
        "cash": f"{config.account.cash:,.0f} USD",
        "slippage": f"{config.costs.slippage_bps:g} bps",
        "fee": f"{config.costs.fee_bps:g} bps",
        "commission": f"{config.costs.commission_per_order:g} USD an order",
        **sized,
        "stop": f"{config.risk.atr_multiple:g} × ATR {config.risk.atr_window}",
        "rebuttal rounds": str(config.debate.rounds),
    }
