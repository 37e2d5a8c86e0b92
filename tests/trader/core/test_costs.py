"""Slippage against the trader, fees on both sides, commissions, size from the real price."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.costs import Costs
from trader.core.trading import Side, whole_shares

FREE = Costs(slippage_bps=0.0, fee_bps=0.0, commission_per_order=0.0)
COSTS = st.builds(
    Costs,
    slippage_bps=st.floats(0, 100),
    fee_bps=st.floats(0, 100),
    commission_per_order=st.floats(0, 20),
)


@st.composite
def levels(draw):
    """Stop < entry < target, USD per share, at least a cent apart."""
    cents = st.integers(1, 20_000)
    stop = draw(cents)
    entry = stop + draw(cents)
    return stop / 100, entry / 100, (entry + draw(cents)) / 100


def round_trip(costs, *, units, bought, sold):
    """Profit of a trade in exact fractions, fee charged on the notional of each side."""
    rate = Fraction(str(costs.fee_bps)) / 10_000
    paid = units * Fraction(bought)
    received = units * Fraction(sold)
    return received - paid - rate * (paid + received)


def test_fees_are_charged_on_both_sides():
    costs = Costs(slippage_bps=0.0, fee_bps=40.0)
    exact = round_trip(costs, units=1500, bought="0.2166", sold="0.2183")
    assert float(exact) == pytest.approx(-0.0594, abs=1e-12)

    bought, sold = 1500 * Decimal("0.2166"), 1500 * Decimal("0.2183")
    booked = sold - bought - costs.fee(bought) - costs.fee(sold)
    assert booked == Decimal("-0.06")  # each fee is booked to the cent
    one_sided = sold - bought - costs.fee(bought)
    assert one_sided == Decimal("1.25")


def test_a_commission_is_per_order_and_never_part_of_the_share_price():
    costs = Costs(slippage_bps=0.0, commission_per_order=5.0)
    price = costs.slipped(100.0, Side.BUY)
    assert price == 100
    assert 10 * price + costs.fee(10 * price) == 1005


def test_fractional_quantities_pay_on_their_own_notional():
    notional = Decimal("0.1") * 60_000
    assert notional == 6000
    assert Costs(fee_bps=100.0).fee(notional) == 60


def test_a_sale_pays_the_same_fee_as_a_purchase_of_the_same_size():
    costs = Costs(fee_bps=10.0, commission_per_order=1.0)
    assert costs.fee(Decimal(-1000)) == costs.fee(Decimal(1000)) == 2


def test_slippage_moves_the_price_against_the_trader():
    costs = Costs(slippage_bps=5.0)
    assert costs.slipped(100.0, Side.BUY) == Decimal("100.05")
    assert costs.slipped(100.0, Side.SELL) == Decimal("99.95")
    assert costs.slippage == 0.0005
    assert costs.expected_entry(100.0) == pytest.approx(100.05)


@settings(deadline=None)
@given(COSTS, st.floats(0.01, 1e5))
def test_no_slippage_ever_helps_the_trader(costs, price):
    assert costs.slipped(price, Side.BUY) >= FREE.slipped(price, Side.BUY)
    assert costs.slipped(price, Side.SELL) <= FREE.slipped(price, Side.SELL)
    expected = Fraction(str(price)) * (1 + Fraction(str(costs.slippage_bps)) / 10_000)
    assert abs(Fraction(costs.slipped(price, Side.BUY)) - expected) <= Fraction(1, 20_000)


@settings(deadline=None)
@given(COSTS, st.floats(1.0, 1e4), st.floats(1_000.0, 1e6))
def test_all_cash_buys_as_many_shares_as_can_be_paid_at_the_real_price(costs, price, cash):
    budget = cash - costs.commission_per_order
    shares = whole_shares(budget / (price * (1 + costs.slippage) * (1 + costs.fee_rate)))
    rounding = Decimal("0.0001") * (shares + 1) + Decimal("0.02")

    def cost(count):
        notional = count * costs.slipped(price, Side.BUY)
        return notional + costs.fee(notional)

    assert cost(shares) <= Decimal(str(cash)) + rounding
    assert cost(shares + 1) > Decimal(str(cash)) - rounding


def test_reward_over_risk_without_costs_is_the_plain_ratio():
    assert FREE.reward_risk_ratio(entry=100.0, stop=95.0, target=110.0) == pytest.approx(2.0)


@settings(deadline=None)
@given(COSTS, levels())
def test_reward_over_risk_is_what_both_exits_would_really_book(costs, at):
    stop, entry, target = at
    rate = Fraction(costs.fee_rate)
    paid = Fraction(entry) * (1 + rate)
    win = Fraction(target) * (1 - rate) - paid
    loss = paid - Fraction(stop) * (1 - Fraction(costs.slippage)) * (1 - rate)
    ratio = costs.reward_risk_ratio(entry=entry, stop=stop, target=target)
    assert ratio == pytest.approx(max(0.0, float(win / loss)), rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(COSTS, levels())
def test_costs_never_improve_reward_over_risk(costs, at):
    stop, entry, target = at
    ratio = costs.reward_risk_ratio(entry=entry, stop=stop, target=target)
    free = FREE.reward_risk_ratio(entry=entry, stop=stop, target=target)
    assert 0.0 <= ratio <= free * (1 + 1e-9)


@pytest.mark.parametrize(
    ("stop", "entry", "target"),
    [
        (100.0, 100.0, 110.0),
        (101.0, 100.0, 110.0),
        (95.0, 100.0, 100.0),
        (95.0, 100.0, 99.0),
        (0.0, 100.0, 110.0),
        (-5.0, 100.0, 110.0),
        (float("nan"), 100.0, 110.0),
        (95.0, 100.0, float("nan")),
    ],
)
def test_levels_out_of_order_have_no_reward(stop, entry, target):
    assert Costs().reward_risk_ratio(entry=entry, stop=stop, target=target) == 0.0


def test_a_target_that_only_pays_the_fees_has_no_reward():
    costs = Costs(slippage_bps=0.0, fee_bps=100.0)
    assert costs.reward_risk_ratio(entry=100.0, stop=90.0, target=101.0) == 0.0
