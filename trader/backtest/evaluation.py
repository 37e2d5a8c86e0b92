"""What a replay amounts to: performance, the funnel, and each trade with its reasons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np

from trader.backtest.replay import Replay
from trader.core.decision import CycleRecord, Decision
from trader.core.metrics import drawdowns, performance
from trader.core.trading import money
from trader.ledger.book import Book, Trade
from trader.pipeline.candidates import strategy_of
from trader.pipeline.intents import exit_levels
from trader.pipeline.records import SlotRecord
from trader.report.contents import Column, Funnel, TradeRow

WHY_LEFT = {
    "stop": "the protective stop was reached",
    "target": "the target was reached",
    "protection": "sold at market, no stop could stand",
    "other": "an order placed by hand",
}


def column(
    key: str,
    label: str,
    *,
    equity: Sequence[float],
    exposed: int,
    book: Book,
    initial: float,
    periods_per_year: float,
) -> Column:
    """Performance of one equity curve with the book behind it.

    equity   [T] USD
    exposed  bars that ended invested
    """
    curve = np.asarray(equity, dtype=np.float64)
    closed = [float(trade.profit) for trade in book.trades.values() if not trade.is_open]
    return Column(
        key=key,
        label=label,
        performance=performance(
            equity=curve,
            initial=initial,
            periods_per_year=periods_per_year,
            trade_profits=closed,
            open_trades=len(book.open_trades()),
            bars_exposed=exposed,
            costs=float(book.fees + book.slippage),
        ),
        equity=tuple(float(value) for value in curve),
        drawdown=tuple(float(value) for value in drawdowns(curve, initial)),
    )


def replay_column(
    key: str, label: str, run: Replay, *, initial: float, periods_per_year: float
) -> Column:
    """The column of a replay."""
    return column(
        key,
        label,
        equity=[float(slot.equity) for slot in run.slots],
        exposed=sum(bool(slot.positions) for slot in run.slots),
        book=run.book,
        initial=initial,
        periods_per_year=periods_per_year,
    )


def funnel(run: Replay) -> Funnel:
    """Bars to fills, and where the rest was lost."""
    skipped = Counter(item.reason for slot in run.slots for item in slot.skipped)
    go = [cycle for cycle in run.cycles if cycle.debate.verdict.decision is Decision.GO]
    no_go = [cycle for cycle in run.cycles if cycle.debate.verdict.decision is Decision.NO_GO]
    exits = sum(bool(leave.client_order_id) for slot in run.slots for leave in slot.exits)
    refused = refusals(run)
    sent = [
        cycle for cycle in run.cycles if cycle.intent is not None and cycle.cycle_id not in refused
    ]
    return Funnel(
        bars=sum(len(slot.closes) for slot in run.slots),
        signals=len(run.cycles) + sum(skipped.values()),
        skipped=dict(sorted(skipped.items())),
        debates=len(run.cycles),
        go=len(go),
        no_go=len(no_go),
        vetoes=_counted(str(flag.code) for cycle in no_go for flag in cycle.debate.verdict.flags),
        gate_refusals=_counted(
            str(cycle.risk.reasons[0].code) for cycle in go if not cycle.risk.approved
        ),
        broker_refusals=len(refused),
        orders=len(sent) + exits,
        fills=sum(len(slot.fills) for slot in run.slots),
        nearest_miss=_nearest_miss(no_go),
    )


def refusals(run: Replay) -> dict[str, str]:
    """Cycle id -> the broker's words, for every order that it refused."""
    return {key: words for slot in run.slots for key, words in slot.refusals.items()}


def _counted(codes: Iterable[str]) -> Mapping[str, int]:
    return dict(sorted(Counter(codes).items(), key=lambda pair: (-pair[1], pair[0])))


def _nearest_miss(no_go: Sequence[CycleRecord]) -> str:
    """The refused debate with the fewest failed rules; among equals the one worth most."""
    if not no_go:
        return ""

    def distance(cycle: CycleRecord) -> tuple[int, float]:
        verdict = cycle.debate.verdict
        worth = verdict.expected_value_r
        return (
            sum(not rule.passed for rule in verdict.rules),
            -worth if worth is not None else math.inf,
        )

    nearest = min(no_go, key=distance)
    failed = "; ".join(
        f"{rule.rule} {rule.value}, wanted {rule.limit}"
        for rule in nearest.debate.verdict.rules
        if not rule.passed
    )
    signal = nearest.candidate.signal
    return f"{nearest.as_of:%Y-%m-%d} {nearest.symbol} {signal.strategy}: {failed}"


def trade_rows(run: Replay) -> tuple[TradeRow, ...]:
    """Every trade, oldest first, with why it was entered and why it was left."""
    cycles = {cycle.cycle_id: cycle for cycle in run.cycles}
    left = {leave.trade_id: leave.reason for slot in run.slots for leave in slot.exits}
    closes = _last_closes(run.slots)
    return tuple(
        trade_row(
            trade,
            stop=_planned_stop(cycles.get(trade.trade_id)),
            why_entered=_why_entered(cycles.get(trade.trade_id)),
            why_left=left.get(trade.trade_id, ""),
            close=closes[trade.symbol] if trade.is_open else None,
        )
        for trade in run.book.trades.values()
    )


def _last_closes(slots: Sequence[SlotRecord]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for slot in slots:
        found.update({symbol: money(close) for symbol, close in slot.closes.items()})
    return found


def _planned_stop(cycle: CycleRecord | None) -> Decimal | None:
    if cycle is None or cycle.intent is None:
        return None
    return exit_levels(cycle.symbol, cycle.debate.verdict)[0]


def _why_entered(cycle: CycleRecord | None) -> str:
    return cycle.candidate.signal.reason if cycle else ""


def trade_row(
    trade: Trade,
    *,
    stop: Decimal | None,
    why_entered: str,
    why_left: str,
    close: Decimal | None,
) -> TradeRow:
    """One trade as the report shows it.

    stop      USD per share that it was entered with; None where that is not known
    why_left  the strategy's own reason; empty where it had none
    close     USD per share, the last one known; an open trade needs it
    """
    profit = trade.profit
    if trade.is_open:
        assert close is not None  # what is held has had a bar
        profit += trade.open_quantity * close
    risked = None if stop is None else (trade.entry_price - stop) * trade.entry_quantity
    if trade.is_open:
        why_left = "still open"
    elif trade.exit_reason == "signal":
        why_left = why_left or "the strategy left"
    else:
        why_left = WHY_LEFT[trade.exit_reason or "other"]
    exit_price = trade.exit_price
    return TradeRow(
        trade_id=trade.trade_id,
        symbol=trade.symbol,
        strategy=strategy_of(trade.trade_id),
        quantity=float(trade.entry_quantity),
        entered_at=trade.entered_at,
        entry_price=float(trade.entry_price),
        why_entered=why_entered,
        exited_at=None if trade.is_open else trade.exited_at,
        exit_price=None if trade.is_open or exit_price is None else float(exit_price),
        left_by="" if trade.is_open else str(trade.exit_reason),
        why_left=why_left,
        profit=float(profit),
        r_multiple=float(profit / risked) if risked and risked > 0 else None,
        is_open=trade.is_open,
    )
