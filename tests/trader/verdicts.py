"""Verdicts, accounts and gate inputs for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from trader.core.decision import Decision, RiskInputs, Verdict
from trader.core.trading import Portfolio, Position

NOW = datetime(2025, 3, 3, 21, tzinfo=UTC)
BAR_AT = datetime(2025, 3, 3, 14, 30, tzinfo=UTC)

GO = Verdict(
    verdict_id="V-1",
    symbol="AAPL",
    decision=Decision.GO,
    confidence=0.7,
    entry_price=100.05,
    stop_price=96.05,
    target_price=110.0,
    reward_risk_ratio=2.45,
    expected_value_r=0.8,
    rationale="",
    flags=(),
    rules=(),
    decided_at=NOW,
)
EMPTY = Portfolio(cash=Decimal(100_000), equity=Decimal(100_000), positions=(), as_of=NOW)


def holding(
    quantity: int, price: int = 100, *, equity: int = 100_000, symbol: str = "AAPL"
) -> Portfolio:
    """An account that holds shares of one symbol and the rest in cash."""
    held = Position(
        symbol=symbol,
        quantity=Decimal(quantity),
        average_entry_price=Decimal(price),
        current_price=Decimal(price),
    )
    return Portfolio(
        cash=Decimal(equity - quantity * price),
        equity=Decimal(equity),
        positions=(held,),
        as_of=NOW,
    )


def inputs(portfolio: Portfolio = EMPTY, **changes: object) -> RiskInputs:
    """What the gate sees of AAPL at 100 USD with an ATR of 2 USD."""
    sound = RiskInputs(
        symbol="AAPL",
        as_of=NOW,
        bar_at=BAR_AT,
        expected_bar_at=BAR_AT,
        close=100.0,
        atr=2.0,
        atr_multiple=2.0,
        portfolio=portfolio,
        open_buy_value=Decimal(0),
        open_buy_value_symbol=Decimal(0),
        targets=(110.0,),
    )
    return replace(sound, **changes)  # type: ignore[arg-type]
