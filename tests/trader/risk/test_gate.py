"""The risk gate: nothing an agent says changes a number, and no cap is ever passed."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.verdicts import BAR_AT, EMPTY, GO, holding, inputs
from trader.core.costs import Costs
from trader.core.decision import Decision, RiskDecision
from trader.risk.gate import CASH_COLLAR, RiskLimits, review

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)


def gate(
    verdict=GO, seen=None, *, limits=None, costs=None, target_required=True, known=None
) -> RiskDecision:
    seen = seen or inputs()
    aims = () if verdict.target_price is None else (verdict.target_price,)
    return review(
        verdict,
        replace(seen, targets=aims) if known is None else replace(seen, targets=known),
        limits=limits or RiskLimits(),
        costs=costs or Costs(),
        target_required=target_required,
    )


def codes(decision: RiskDecision) -> list[str]:
    return [str(reason.code) for reason in decision.reasons]


def test_gate_sizes_by_risk_over_distance_to_the_stop_and_caps_at_fifteen_percent():
    # 1 % / (2/100.05 × 2) = 25.0 % wanted, 15 % allowed: 15,000 / 100.05 = 149.9
    capped = gate()
    assert (capped.approved, capped.quantity) == (True, 149)
    assert capped.weight_after == pytest.approx(149 * 100.05 / 100_000)
    # half the risk asks for 12.5 %: 12,506.25 / 100.05 = 125.0
    assert gate(limits=RiskLimits(risk_per_trade=0.005)).quantity == 125


def test_gate_counts_held_and_ordered_shares_against_the_cap():
    assert gate(seen=inputs(holding(100))).quantity == 49
    waiting = inputs(open_buy_value=Decimal(10_000), open_buy_value_symbol=Decimal(10_000))
    assert gate(seen=waiting).quantity == 49
    full = gate(seen=inputs(holding(149)))
    assert codes(full) == ["POSITION_CAP"]
    assert gate(seen=inputs(holding(148))).quantity == 1


def test_gate_refuses_a_thin_reward_however_confident_the_verdict():
    thin = replace(GO, confidence=0.99, target_price=101.0)
    assert codes(gate(thin)) == ["REWARD_RISK_BELOW_MINIMUM"]
    assert "0.23 is below 2" in gate(thin).reasons[0].detail


def test_gate_does_not_believe_the_ratio_that_a_verdict_states():
    boasting = replace(GO, target_price=104.0, reward_risk_ratio=9.0)
    assert codes(gate(boasting)) == ["REWARD_RISK_BELOW_MINIMUM"]


@pytest.mark.parametrize(
    "levels",
    [
        {"entry_price": 99.0},
        {"stop_price": 99.0},
        {"stop_price": 90.0},
        {"entry_price": 100.06},
    ],
)
def test_gate_refuses_levels_that_do_not_come_from_the_data(levels):
    assert codes(gate(replace(GO, **levels))) == ["LEVELS_NOT_FROM_DATA"]


@pytest.mark.parametrize("field", ["entry_price", "stop_price", "target_price"])
@pytest.mark.parametrize("price", [None, 0.0, -1.0, math.nan, math.inf])
def test_gate_refuses_levels_that_are_no_prices(field, price):
    assert codes(gate(replace(GO, **{field: price}))) == ["INVALID_LEVELS"]


def test_only_the_baseline_may_go_without_a_target():
    bare = replace(GO, target_price=None)
    assert codes(gate(bare)) == ["INVALID_LEVELS"]
    assert gate(bare, target_required=False).quantity == 149


@pytest.mark.parametrize("atr", [None, 0.0, -2.0, math.nan, math.inf])
def test_gate_refuses_an_atr_that_would_give_no_size_or_an_endless_one(atr):
    assert "DATA_INTEGRITY_FAILURE" in codes(gate(seen=inputs(atr=atr)))


@pytest.mark.parametrize("close", [0.0, -1.0, math.nan, math.inf])
def test_gate_refuses_a_price_that_is_none(close):
    assert "DATA_INTEGRITY_FAILURE" in codes(gate(seen=inputs(close=close)))


def test_gate_refuses_stale_bars_and_a_no_go():
    assert codes(gate(seen=inputs(bar_at=BAR_AT - timedelta(days=1)))) == ["STALE_DATA"]
    assert codes(gate(replace(GO, decision=Decision.NO_GO))) == ["NOT_A_GO"]


def test_gate_pays_from_free_cash_with_a_collar_and_costs():
    poor = replace(EMPTY, cash=Decimal(1_000))
    # 1,000 / (100.05 × 1.04) = 9.6
    assert gate(seen=inputs(poor)).quantity == 9
    fees = Costs(fee_bps=2_000)
    assert gate(replace(GO, target_price=300.0), inputs(poor), costs=fees).quantity == 8
    broke = gate(seen=inputs(replace(EMPTY, cash=Decimal(104))))
    assert codes(broke) == ["INSUFFICIENT_CASH"]
    promised = inputs(replace(EMPTY, cash=Decimal(20_000)), open_buy_value=Decimal(19_950))
    assert codes(gate(seen=promised)) == ["INSUFFICIENT_CASH"]


def test_an_account_smaller_than_one_share_is_told_so():
    tiny = replace(EMPTY, cash=Decimal(50), equity=Decimal(50))
    assert codes(gate(seen=inputs(tiny))) == ["POSITION_TOO_SMALL"]
    small = replace(EMPTY, cash=Decimal(700), equity=Decimal(700))
    wild = inputs(small, atr=20.0)
    levels = replace(GO, stop_price=60.05, target_price=300.0)
    assert codes(gate(levels, wild)) == ["POSITION_TOO_SMALL"]


def test_the_cap_may_be_tightened_and_never_loosened():
    assert gate(limits=RiskLimits(max_position_weight=0.05)).quantity == 49
    for cap in (0.150001, 0.2, 15.0, 0.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="cap"):
            RiskLimits(max_position_weight=cap)


@given(
    close=ANY_FLOAT,
    atr=ANY_FLOAT,
    entry=ANY_FLOAT,
    stop=ANY_FLOAT,
    target=ANY_FLOAT,
    cash=st.integers(-1_000, 1_000_000),
    held=st.integers(0, 2_000),
)
@settings(deadline=None, max_examples=400)
def test_whatever_comes_in_no_order_passes_the_cap_or_the_cash(
    close, atr, entry, stop, target, cash, held
):
    verdict = replace(GO, entry_price=entry, stop_price=stop, target_price=target)
    account = replace(
        holding(held), cash=Decimal(cash), equity=Decimal(max(cash, 0) + held * 100 + 1)
    )
    decision = gate(verdict, inputs(account, close=close, atr=atr))
    assert decision.quantity >= 0
    assert decision.approved == (decision.quantity > 0)


@given(
    close=st.floats(1.0, 5_000.0),
    atr_fraction=st.floats(0.001, 0.2),
    cash=st.floats(0.0, 1e7),
    held=st.floats(0.0, 0.3),
)
@settings(deadline=None, max_examples=400)
def test_an_approved_order_keeps_within_cap_cash_and_risk(close, atr_fraction, cash, held):
    costs, limits = Costs(), RiskLimits()
    atr = close * atr_fraction
    entry = costs.expected_entry(close)
    equity = Decimal(str(round(cash / (1 - held) + 1, 2)))
    shares = int(float(equity) * held / close)
    from trader.core.trading import tick_down

    verdict = replace(
        GO,
        entry_price=entry,
        stop_price=float(tick_down(entry - 2 * atr)),
        target_price=entry + 9 * atr + 1,
    )
    account = replace(holding(shares, 1), cash=Decimal(str(round(cash, 2))), equity=equity)
    account = replace(
        account,
        positions=tuple(replace(p, current_price=Decimal(str(close))) for p in account.positions),
    )
    decision = gate(verdict, inputs(account, close=close, atr=atr), limits=limits, costs=costs)
    if decision.approved:
        assert decision.weight_after <= 0.15 + 1e-9
        quantity = float(decision.quantity)
        assert quantity * entry * float(CASH_COLLAR) <= cash + 0.01
        assert quantity * 2 * atr <= 0.01 * float(equity) * (1 + 1e-6)


@given(st.floats(0.0, 0.3), st.floats(0.0, 0.3))
@settings(deadline=None)
def test_more_held_never_allows_more_to_be_bought(one, other):
    low, high = sorted((one, other))
    few, many = (gate(seen=inputs(holding(int(1_000 * weight)))).quantity for weight in (low, high))
    assert few >= many


def test_gate_refuses_a_verdict_about_something_else():
    assert codes(gate(replace(GO, symbol="TSLA"))) == ["LEVELS_NOT_FROM_DATA"]
    late = replace(GO, decided_at=GO.decided_at + timedelta(days=1))
    assert codes(gate(late)) == ["LEVELS_NOT_FROM_DATA"]


def test_gate_refuses_a_target_that_is_none_of_the_levels():
    assert codes(gate(replace(GO, target_price=5e8), known=(110.0,))) == ["LEVELS_NOT_FROM_DATA"]
    assert gate(GO, known=(105.0, 110.0)).approved


PARTS = RiskLimits(fractional=True)
COIN = "BTC/USD"


def test_parts_of_a_share_are_bought_only_where_that_is_wanted():
    # 15,000 / 100.05 = 149.92503748125937…
    assert gate(limits=PARTS).quantity == Decimal("149.925037481")
    assert gate().quantity == 149
    held = gate(seen=inputs(holding(149)), limits=PARTS)  # 14,900 are held, 100 are left
    assert held.quantity == Decimal("0.999500249")


def test_coins_are_always_bought_in_parts():
    coin = replace(GO, symbol=COIN)
    assert gate(coin, inputs(symbol=COIN)).quantity == Decimal("149.925037481")


@pytest.mark.parametrize(
    ("symbol", "limits", "equity", "code"),
    [
        # 15 % of the equity is the least that may be ordered, or a cent less
        ("AAPL", PARTS, "6.67", None),
        ("AAPL", PARTS, "6.65", "POSITION_TOO_SMALL"),
        (COIN, RiskLimits(), "66.70", None),
        (COIN, RiskLimits(), "66.65", "POSITION_TOO_SMALL"),
        ("AAPL", RiskLimits(), "666.99", "POSITION_TOO_SMALL"),
        ("AAPL", RiskLimits(), "667.00", None),
    ],
)
def test_an_order_is_worth_the_least_that_a_broker_takes(symbol, limits, equity, code):
    account = replace(EMPTY, cash=Decimal(equity), equity=Decimal(equity))
    found = gate(replace(GO, symbol=symbol), inputs(account, symbol=symbol), limits=limits)
    assert codes(found) == ([] if code is None else [code])


def test_a_cap_that_is_nearly_reached_leaves_no_crumbs():
    # 14,999.50 USD are held: 0.50 USD may be bought, which is less than a dollar
    nearly = holding(1, 1)
    held = replace(nearly.positions[0], quantity=Decimal("149.995"), current_price=Decimal(100))
    account = replace(nearly, positions=(held,), cash=Decimal("85000.5"), equity=Decimal(100_000))
    assert codes(gate(seen=inputs(account), limits=PARTS)) == ["POSITION_CAP"]


@given(
    close=st.floats(0.0002, 100_000.0),
    atr_fraction=st.floats(0.001, 0.2),
    cash=st.decimals(0, 10_000_000, places=2),
    taken=st.decimals(0, 200_000, places=2),
    symbol=st.sampled_from(["AAPL", COIN]),
    fractional=st.booleans(),
    fee_bps=st.sampled_from([0.0, 25.0]),
)
@settings(deadline=None, max_examples=300)
def test_no_size_passes_the_cap_the_cash_or_the_step(
    close, atr_fraction, cash, taken, symbol, fractional, fee_bps
):
    from trader.core.trading import tick_down

    costs, limits = Costs(fee_bps=fee_bps), RiskLimits(fractional=fractional)
    entry, atr = costs.expected_entry(close), close * atr_fraction
    stop = float(tick_down(entry - 2 * atr))
    verdict = replace(
        GO, symbol=symbol, entry_price=entry, stop_price=stop, target_price=entry + 9 * atr + 1
    )
    equity = cash + taken + 1
    account = replace(EMPTY, cash=cash, equity=equity)
    seen = inputs(
        account,
        symbol=symbol,
        close=close,
        atr=atr,
        open_buy_value_symbol=taken,
        open_buy_value=min(taken, cash),
    )
    decision = gate(verdict, seen, limits=limits, costs=costs)
    quantity, price = decision.quantity, Decimal(str(entry))
    if not decision.approved:
        assert quantity == 0
        return
    with localcontext() as exact:
        exact.prec = 100
        assert taken + quantity * price <= Decimal("0.15") * equity
        assert quantity * price * CASH_COLLAR <= cash - min(taken, cash)
        parts = fractional or symbol == COIN
        assert quantity % (Decimal("1e-9") if parts else 1) == 0
        assert quantity * price >= {True: 10, False: 1 if fractional else 0}[symbol == COIN]
