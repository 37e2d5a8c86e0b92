"""Reflection: what a closed trade was worth, beside what its debate had promised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from trader.ledger.book import ExitReason, Trade
from trader.ledger.store import Ledger
from trader.pipeline.candidates import strategy_of

KIND = "reflection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """One closed trade; R is what the stop would have cost, as planned.

    planned_r    reward:risk of the verdict; None where it named no target
    realised_r   profit after costs in units of the planned risk
    probability  chance of reaching the target that the verdict counted with; None without a target
    expected_r   what the verdict expected, probability × reward:risk − (1 − probability)
    profit       USD after costs
    """

    trade_id: str
    symbol: str
    strategy: str
    entered_at: datetime
    exited_at: datetime
    exit_reason: ExitReason
    planned_r: float | None
    realised_r: float
    probability: float | None
    expected_r: float | None
    confidence: float
    profit: Decimal


def reflect(ledger: Ledger, trades: Iterable[Trade]) -> tuple[Reflection, ...]:
    """Record a reflection on every closed trade that has none yet; the new ones.

    Trades that no debate of ours opened are left out: nothing was promised about them.
    """
    known = {record.record_id for record in ledger.records(KIND)}
    found = []
    for trade in trades:
        if trade.is_open or trade.trade_id in known:
            continue
        cycle = ledger.record("cycle", trade.trade_id)
        if cycle is None:
            continue
        reflection = reflect_on(trade, cycle.body["debate"]["verdict"])
        if reflection is not None:
            ledger.append(KIND, trade.trade_id, reflection)
            found.append(reflection)
    return tuple(found)


def reflect_on(trade: Trade, verdict: dict[str, Any]) -> Reflection | None:
    """A closed trade beside its verdict, as recorded; None for a verdict without a stop.

    The risk is told as a share of what was paid, so that a split in between changes nothing.
    """
    entry, stop = verdict["entry_price"], verdict["stop_price"]
    if not entry or not stop or stop >= entry or trade.exited_at is None:
        return None
    risk = trade.entry_value * (1 - Decimal(str(stop)) / Decimal(str(entry)))
    planned, expected = verdict["reward_risk_ratio"], verdict["expected_value_r"]
    chance = None
    if planned is not None and expected is not None:
        chance = (expected + 1) / (planned + 1)  # expected = p × planned − (1 − p), solved for p
    return Reflection(
        trade_id=trade.trade_id,
        symbol=trade.symbol,
        strategy=strategy_of(trade.trade_id),
        entered_at=trade.entered_at,
        exited_at=trade.exited_at,
        exit_reason=trade.exit_reason or "other",
        planned_r=planned,
        realised_r=float(trade.profit / risk),
        probability=chance,
        expected_r=expected,
        confidence=verdict["confidence"],
        profit=trade.profit,
    )
