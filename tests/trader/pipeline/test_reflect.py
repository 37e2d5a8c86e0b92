"""Reflection: what a closed trade was worth in units of the risk that its debate had planned."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from trader.ledger.book import Trade
from trader.ledger.store import Ledger
from trader.pipeline.reflect import reflect, reflect_on

ENTERED = datetime(2025, 7, 1, 13, 30, tzinfo=UTC)
LEFT = datetime(2025, 7, 8, 15, 0, tzinfo=UTC)
TRADE_ID = "paper-1-20250630T1330-AAPL-atr_trend"
# stop 5 % below the entry, target twice as far above; p = 0.4: 0.4 × 2 − 0.6 = 0.2 R expected
VERDICT = {
    "entry_price": 100,
    "stop_price": 95,
    "target_price": 110,
    "reward_risk_ratio": 2,
    "expected_value_r": 0.2,
    "confidence": 0.6,
}


def closed(exit_value: str, *, reason="target", trade_id=TRADE_ID, quantity="10") -> Trade:
    """Ten shares bought at 100 USD; fees of 1 USD each way."""
    return Trade(
        trade_id=trade_id,
        symbol="AAPL",
        entered_at=ENTERED,
        entry_quantity=Decimal(quantity),
        entry_value=Decimal(1000),
        exit_quantity=Decimal(quantity),
        exit_value=Decimal(exit_value),
        fees=Decimal(2),
        exited_at=LEFT,
        exit_reason=reason,
    )


def ledger_with(*trade_ids: str, verdict=VERDICT) -> Ledger:
    ledger = Ledger(None)
    for trade_id in trade_ids:
        ledger.append("cycle", trade_id, {"debate": {"verdict": verdict}})
    return ledger


def test_a_target_hit_is_worth_its_reward_less_costs():
    found = reflect_on(closed("1100"), VERDICT)
    assert found.realised_r == pytest.approx((100 - 2) / 50)  # 50 USD were at risk
    assert (found.planned_r, found.expected_r) == (2, 0.2)
    assert found.probability == pytest.approx(0.4)
    assert (found.exit_reason, found.strategy) == ("target", "atr_trend")
    assert found.profit == Decimal(98)


def test_a_stop_through_a_gap_costs_more_than_one_r():
    found = reflect_on(closed("930", reason="stop"), VERDICT)
    assert found.realised_r == pytest.approx(-72 / 50)


def test_a_split_in_between_changes_nothing():
    assert reflect_on(closed("1100", quantity="40"), VERDICT).realised_r == pytest.approx(98 / 50)


def test_a_verdict_without_a_target_promised_no_chance():
    bare = VERDICT | {"target_price": None, "reward_risk_ratio": None, "expected_value_r": None}
    found = reflect_on(closed("1100"), bare)
    assert (found.planned_r, found.probability, found.expected_r) == (None, None, None)
    assert found.realised_r == pytest.approx(98 / 50)


@pytest.mark.parametrize("stop", [None, 100, 120])
def test_a_verdict_without_a_stop_below_its_entry_has_no_r(stop):
    assert reflect_on(closed("1100"), VERDICT | {"stop_price": stop}) is None


def test_each_closed_trade_of_ours_is_reflected_on_once():
    other = TRADE_ID.replace("AAPL", "MSFT")
    ledger = ledger_with(TRADE_ID, other)
    still_open = closed("0", trade_id=other)
    still_open.exit_quantity = Decimal(4)
    foreign = closed("1100", trade_id="import-1")
    trades = [closed("1100"), still_open, foreign]
    assert [item.trade_id for item in reflect(ledger, trades)] == [TRADE_ID]
    assert reflect(ledger, trades) == ()
    record = ledger.record("reflection", TRADE_ID)
    assert record.body["exit_reason"] == "target"
    assert record.body["profit"] == "98"
    ledger.verify()
