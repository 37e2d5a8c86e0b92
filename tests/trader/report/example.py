"""Contents of a report made up from a seed: hypothetical, but every record agrees with itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np

from tests.trader.report.decisions import RUN, STRATEGIES, cycle_record
from trader.backtest.worth import worth_of
from trader.core.decision import (
    ChatCall,
    CycleRecord,
    Decision,
    Hearing,
    SideRecord,
    Weighing,
)
from trader.core.metrics import drawdowns, performance
from trader.core.ports import Spend
from trader.report.contents import (
    Column,
    Funnel,
    ReportContents,
    ShadowTrade,
    SourceInfo,
    TradeRow,
    Worth,
)

CASH = 100_000.0


def report_contents(*, debates: int = 30, sessions: int = 400, seed: int = 14) -> ReportContents:
    """Contents with this many debates, about a third of them GO, over this many sessions."""
    chance = random.Random(seed)
    days = _weekdays(date(2025, 1, 2), sessions)
    times = tuple(datetime(day.year, day.month, day.day, 21, tzinfo=UTC) for day in days)
    closes = _walk(chance, 240.0, sessions, drift=0.0006, noise=0.014)
    picks = sorted(chance.sample(range(sessions), min(debates, sessions)))
    picks += [sessions - 1] * (debates - len(picks))
    cycles, trades = [], []
    refusals: dict[str, str] = {}
    for order, at in enumerate(picks):
        cycle = cycle_record(chance, order, times[at], closes[at])
        cycles.append(cycle)
        if cycle.intent is not None and chance.random() < 0.1:
            refusals[cycle.cycle_id] = "insufficient buying power"
        elif cycle.intent is not None and at + 1 < sessions:
            trades.append(_trade(chance, cycle, times, closes, at))
    columns = tuple(
        _column(chance, key, label, equity, trades if key == "debate" else trades[:1])
        for key, label, equity in (
            ("debate", "debate", _walk(chance, CASH, sessions, drift=0.0002, noise=0.003)),
            ("arbitrator_alone", "arbitrator alone", _walk(chance, CASH, sessions, 0.0002, 0.004)),
            ("without_debate", "without debate", _walk(chance, CASH, sessions, 0.0003, 0.005)),
            ("buy_and_hold", "buy & hold", [CASH * close / closes[0] for close in closes]),
        )
    )
    followed = [
        _shadow(cycle, times, closes, at)
        for cycle, at in zip(cycles, picks, strict=True)
        if cycle.debate.verdict.decision is Decision.NO_GO and at + 1 < sessions
    ]
    return ReportContents(
        run_id=RUN,
        version="0.1.0",
        source=_source(days),
        period=f"{days[0]} to {days[-1]}, {sessions} sessions",
        settings=_settings(),
        notices=("AAPL: 2 bars before 2015-03-01 were left out because their volume is zero.",),
        debater="rules, no model",
        funnel=_funnel(cycles, refusals, sessions),
        times=times,
        columns=columns,
        trades=tuple(trades),
        cycles=tuple(cycles),
        refusals=refusals,
        ledger_head="9c" * 32,
        worth=_worth(columns, cycles, trades, followed),
    )


def _worth(
    columns: tuple[Column, ...],
    cycles: Sequence[CycleRecord],
    trades: Sequence[TradeRow],
    followed: Sequence[ShadowTrade],
    *,
    spend: Spend | None = None,
) -> Worth:
    return worth_of(
        columns,
        cycles=cycles,
        trades=trades,
        followed=followed,
        spend=spend or Spend(),
        modelled=spend is not None,
        cutoff=date(2025, 9, 30),
        periods_per_year=252.0,
    )


def _shadow(
    cycle: CycleRecord, times: tuple[datetime, ...], closes: list[float], at: int
) -> ShadowTrade:
    """Held for ten bars, whatever happens."""
    left = at + 11
    is_open = left >= len(times)
    entry, stop = cycle.candidate.entry_price, cycle.candidate.stop_price
    price = closes[-1] if is_open else closes[left]
    return ShadowTrade(
        cycle_id=cycle.cycle_id,
        as_of=cycle.as_of,
        symbol=cycle.symbol,
        strategy=cycle.strategy,
        decision=cycle.debate.verdict.decision,
        confidence=cycle.debate.verdict.confidence,
        flags=tuple(flag.code.value for flag in cycle.debate.verdict.flags),
        quantity=50,
        entered_at=times[at + 1].replace(hour=14, minute=30),
        entry_price=entry,
        stop_price=stop,
        target_price=cycle.debate.verdict.target_price,
        exited_at=None if is_open else times[left].replace(hour=15),
        exit_price=price,
        left_by="" if is_open else "signal",
        profit=round(50 * (price - entry), 2),
        profit_per_share=price - entry,
        r_multiple=(price - entry) / (entry - stop),
        is_open=is_open,
        repeats=False,
    )


MODELS = {"bull": "small-model-7b", "bear": "small-model-7b", "arbitrator": "another-model-70b"}


def by_models(contents: ReportContents) -> ReportContents:
    """The same debates as models would have held them; every third ends differently."""

    def call(role: str, turn: int) -> ChatCall:
        return ChatCall(
            role=role,  # type: ignore[arg-type]
            round=turn,
            model=MODELS[role],
            prompt=f"{role} 1",
            call_id=f"{turn:02d}{role}" * 4,
            reply_sha256="ab" * 32,
        )

    def modelled(number: int, cycle: CycleRecord) -> CycleRecord:
        debate = cycle.debate
        calls = tuple(call(role, turn) for turn in (0, 1) for role in ("bull", "bear"))
        calls += (call("arbitrator", 1),)
        weighing = Weighing(
            decision=debate.verdict.decision,
            confidence=0.62,
            decisive=("B1", "R2"),
            rationale="The crossing is real but the volatility makes it worth little.",
        )
        sides = (
            SideRecord(role="bull", verified=4, contradicted=1, unverifiable=0, weight=0.8),
            SideRecord(role="bear", verified=2, contradicted=0, unverifiable=1, weight=0.67),
        )
        debate = replace(
            debate, debater=MODELS["bull"], calls=calls, weighing=weighing, sides=sides
        )
        if number % 3 == 0:
            debate = replace(
                debate,
                debater="rules",
                calls=(),
                weighing=None,
                fallback="the endpoint did not answer within 60 s",
            )
        elif number % 3 == 1:
            hearing = Hearing(
                arguments=debate.arguments,
                rebuttals=debate.rebuttals,
                verdict=replace(debate.verdict, rationale="Held again with two papers."),
                weighing=weighing,
                calls=(call("bull", 0), call("bear", 0)),
            )
            debate = replace(debate, hearing=hearing, approval="approved")
        return replace(cycle, debate=debate)

    cycles = tuple(modelled(number, cycle) for number, cycle in enumerate(contents.cycles))
    spend = Spend(calls=5 * len(cycles), input_tokens=8_000, output_tokens=2_500, estimated=3)
    refusals = contents.worth.refusals
    return replace(
        contents,
        debater=MODELS["bull"],
        cycles=cycles,
        worth=_worth(
            contents.columns,
            cycles,
            contents.trades,
            refusals.trades if refusals else (),
            spend=spend,
        ),
    )


def without_trading(*, points: int, move: float = 0.0) -> ReportContents:
    """Contents of a run in which nothing was debated; equity moves by `move` USD a bar."""
    equity = [CASH + move * index for index in range(points)]
    start = datetime(2025, 1, 2, 21, tzinfo=UTC)
    base = report_contents(debates=0, sessions=max(points, 1))
    columns = tuple(
        _column(random.Random(0), column.key, column.label, equity, []) for column in base.columns
    )
    times = tuple(start + timedelta(days=index) for index in range(points))
    return replace(base, times=times, columns=columns, notices=())


def with_words(contents: ReportContents, words: str) -> ReportContents:
    """The same contents, with `words` wherever a debater, a source or a reason can put its own."""

    def spoken(cycle: CycleRecord) -> CycleRecord:
        debate = cycle.debate
        arguments = tuple(
            replace(
                turn,
                thesis=words,
                claims=tuple(
                    replace(claim, text=words, detail=words, when=words) for claim in turn.claims
                ),
            )
            for turn in debate.arguments
        )
        rebuttals = tuple(
            replace(turn, weakest_claim=words, counter=words) for turn in debate.rebuttals
        )
        verdict = replace(debate.verdict, rationale=words)
        calls = tuple(replace(call, model=words, prompt=words) for call in debate.calls)
        weighing = debate.weighing
        if weighing is not None:
            weighing = replace(weighing, rationale=words, decisive=(words,))
        hearing = debate.hearing
        if hearing is not None:
            hearing = replace(
                hearing,
                arguments=arguments,
                rebuttals=rebuttals,
                verdict=verdict,
                weighing=weighing,
                calls=calls,
            )
        signal = replace(cycle.candidate.signal, reason=words)
        return replace(
            cycle,
            candidate=replace(cycle.candidate, signal=signal),
            evidence=tuple(replace(fact, text=words, source=words) for fact in cycle.evidence),
            debate=replace(
                debate,
                debater=words,
                arguments=arguments,
                rebuttals=rebuttals,
                verdict=verdict,
                calls=calls,
                weighing=weighing,
                hearing=hearing,
                fallback=words if debate.fallback else "",
            ),
        )

    return replace(
        contents,
        notices=(words,),
        settings={words: words},
        cycles=tuple(spoken(cycle) for cycle in contents.cycles),
        refusals=dict.fromkeys((cycle.cycle_id for cycle in contents.cycles), words),
        trades=tuple(
            replace(trade, why_entered=words, why_left=words) for trade in contents.trades
        ),
        columns=tuple(replace(column, label=words) for column in contents.columns),
        worth=replace(contents.worth, answers=dict.fromkeys(contents.worth.answers, words)),
    )


def _weekdays(first: date, count: int) -> list[date]:
    days = (first + timedelta(days=offset) for offset in range(2 * count + 7))
    return [day for day in days if day.weekday() < 5][:count]


def _walk(
    chance: random.Random, start: float, count: int, drift: float, noise: float
) -> list[float]:
    values = [start]
    for _ in range(count - 1):
        values.append(values[-1] * (1.0 + drift + chance.gauss(0.0, noise)))
    return [round(value, 2) for value in values]


def _source(days: list[date]) -> SourceInfo:
    return SourceInfo(
        name="sample",
        symbols=("AAPL",),
        first=date(2015, 1, 2),
        last=days[-1],
        adjustment={"AAPL": "splits and dividends"},
        sha256="4be1" * 16,
    )


def _settings() -> dict[str, str]:
    return {
        "strategies": ", ".join(STRATEGIES),
        "timeframe": "1Day",
        "cash": "100,000 USD",
        "slippage": "5 bps a side",
        "fees": "none",
        "risk_per_trade": "0.01 of equity",
        "stop": "2 × ATR 14",
        "max_position_weight": "0.15 of equity",
        "min_reward_risk": "2",
        "rebuttal_rounds": "1",
        "sizing": "risk",
        "periods_per_year": "252",
    }


def _trade(
    chance: random.Random,
    cycle: CycleRecord,
    times: tuple[datetime, ...],
    closes: list[float],
    at: int,
) -> TradeRow:
    left = at + chance.randrange(2, 25)
    is_open = left >= len(times)
    exit_price = closes[-1] if is_open else closes[left]
    entry = cycle.candidate.entry_price
    quantity = cycle.risk.quantity
    risk = quantity * (entry - cycle.candidate.stop_price)
    profit = round(quantity * (exit_price - entry), 2)
    target = cycle.debate.verdict.target_price
    stopped = exit_price < cycle.candidate.stop_price
    why = (
        "stop hit"
        if stopped
        else f"target {target} reached"
        if target and exit_price >= target
        else "exit signal"
    )
    return TradeRow(
        trade_id=cycle.cycle_id,
        symbol=cycle.symbol,
        strategy=cycle.strategy,
        quantity=quantity,
        entered_at=times[at + 1].replace(hour=14, minute=30),
        entry_price=entry,
        why_entered=cycle.candidate.signal.reason,
        exited_at=None if is_open else times[left].replace(hour=15),
        exit_price=None if is_open else exit_price,
        left_by="" if is_open else why.split(maxsplit=1)[0],
        why_left="still open" if is_open else why,
        profit=profit,
        r_multiple=profit / risk,
        is_open=is_open,
    )


def _column(
    chance: random.Random, key: str, label: str, equity: list[float], trades: list[TradeRow]
) -> Column:
    curve = np.array(equity, dtype=np.float64)
    profits = [trade.profit for trade in trades if not trade.is_open and trade.profit is not None]
    return Column(
        key=key,
        label=label,
        performance=performance(
            equity=curve,
            initial=CASH,
            periods_per_year=252.0,
            trade_profits=profits,
            open_trades=sum(trade.is_open for trade in trades),
            bars_exposed=int(len(equity) * chance.uniform(0.2, 1.0)),
            costs=41.27,
        ),
        equity=tuple(equity),
        drawdown=tuple(float(value) for value in drawdowns(curve, CASH)),
    )


def _funnel(cycles: list[CycleRecord], refusals: dict[str, str], bars: int) -> Funnel:
    verdicts = [cycle.debate.verdict for cycle in cycles]
    go = sum(verdict.decision is Decision.GO for verdict in verdicts)
    orders = sum(cycle.intent is not None for cycle in cycles)
    refused = len(refusals)
    vetoes: dict[str, int] = {}
    for verdict in verdicts:
        for flag in verdict.flags:
            vetoes[flag.code.value] = vetoes.get(flag.code.value, 0) + 1
    skipped = {"already held or ordered": 3} if cycles else {}
    return Funnel(
        bars=bars,
        signals=len(cycles) + sum(skipped.values()),
        skipped=skipped,
        debates=len(cycles),
        go=go,
        no_go=len(cycles) - go,
        vetoes=vetoes,
        gate_refusals={"POSITION_CAP": go - orders} if go > orders else {},
        broker_refusals=refused,
        orders=orders - refused,
        fills=2 * (orders - refused),
        nearest_miss=_nearest_miss(cycles),
    )


def _nearest_miss(cycles: list[CycleRecord]) -> str:
    misses = [cycle for cycle in cycles if cycle.debate.verdict.decision is Decision.NO_GO]
    if not misses:
        return ""
    nearest = min(misses, key=lambda cycle: len(cycle.debate.verdict.flags))
    reasons = ", ".join(flag.detail for flag in nearest.debate.verdict.flags)
    return f"{nearest.as_of:%Y-%m-%d} {nearest.symbol} {nearest.strategy}: {reasons}"
