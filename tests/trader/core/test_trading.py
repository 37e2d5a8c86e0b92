"""Money, ticks, whole shares, orders and portfolios."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.trading import (
    FINAL_STATUSES,
    Order,
    OrderClass,
    OrderStatus,
    OrderType,
    Portfolio,
    Position,
    Side,
    TimeInForce,
    fill_price,
    money,
    tick_down,
    tick_of,
    whole_shares,
)

NOW = datetime(2026, 7, 1, 20, tzinfo=UTC)
PRICES = st.floats(min_value=0.0001, max_value=1e6) | st.floats(min_value=0.9999, max_value=1.0101)
ORDER = Order(
    order_id="1",
    client_order_id="c1",
    symbol="AAPL",
    side=Side.BUY,
    quantity=Decimal(10),
    filled_quantity=Decimal(4),
    filled_average_price=Decimal(100),
    order_type=OrderType.MARKET,
    order_class=OrderClass.BRACKET,
    time_in_force=TimeInForce.DAY,
    status=OrderStatus.PARTIALLY_FILLED,
    limit_price=None,
    stop_price=None,
    submitted_at=NOW,
    filled_at=None,
)


@pytest.mark.parametrize(
    ("price", "down"),
    [
        ("1", "1.00"),
        ("1.00001", "1.00"),
        ("1.0099", "1.00"),
        ("0.99999", "0.9999"),
        ("0.9999", "0.9999"),
        ("0.99994", "0.9999"),
        ("0.00015", "0.0001"),
        ("187.239999", "187.23"),
    ],
)
def test_prices_are_rounded_to_cents_from_one_dollar_on_and_to_a_hundredth_of_that_below(
    price, down
):
    assert tick_down(Decimal(price)) == Decimal(down)
    assert tick_down(float(price)) == Decimal(down)


def test_the_tick_changes_at_exactly_one_dollar():
    assert tick_of(Decimal(1)) == Decimal("0.01")
    assert tick_of(Decimal("0.9999")) == Decimal("0.0001")


@settings(deadline=None)
@given(PRICES)
def test_a_rounded_price_is_a_whole_tick_below_and_less_than_one_tick_away(price):
    exact = Fraction(str(price))
    step = Fraction(1, 100) if exact >= 1 else Fraction(1, 10_000)
    rounded = tick_down(price)
    assert 0 <= exact - Fraction(rounded) < step
    assert rounded % tick_of(rounded) == 0
    assert tick_down(rounded) == rounded


@settings(deadline=None)
@given(PRICES)
def test_a_fill_is_booked_within_half_a_step_of_its_price(price):
    assert abs(Fraction(fill_price(price)) - Fraction(str(price))) <= Fraction(1, 20_000)


def test_a_fill_half_way_between_two_steps_goes_to_the_even_one():
    assert fill_price(Decimal("1.00005")) == Decimal("1.0000")
    assert fill_price(Decimal("1.00015")) == Decimal("1.0002")


def test_money_is_the_number_as_written_not_its_binary_neighbour():
    assert money(0.1) + money(0.2) == Decimal("0.3")
    assert money("12.50") == Decimal("12.5")
    assert money(7) == 7


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), "ten", "", True])
def test_what_is_no_finite_number_is_no_money(value):
    with pytest.raises(ValueError, match="not an amount of money"):
        money(value)


@pytest.mark.parametrize(
    ("quantity", "shares"),
    [(0.0, 0), (0.999999, 0), (1.0, 1), (83.3333, 83), (-0.5, 0), (-7.0, 0), (Decimal("2.9"), 2)],
)
def test_shares_are_whole_and_never_negative(quantity, shares):
    assert whole_shares(quantity) == shares


@pytest.mark.parametrize(
    "quantity", [float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("Infinity")]
)
def test_a_number_of_shares_is_finite(quantity):
    with pytest.raises(ValueError, match="not a number of shares"):
        whole_shares(quantity)


@pytest.mark.parametrize("status", OrderStatus)
def test_only_an_order_that_is_not_final_has_shares_left_to_trade(status):
    order = replace(ORDER, status=status)
    assert order.open_quantity == (0 if status in FINAL_STATUSES else 6)
    assert status.is_final == (
        status.value in {"filled", "canceled", "expired", "replaced", "rejected"}
    )


def test_an_order_lists_itself_and_its_legs_at_every_depth():
    leaf = replace(ORDER, order_id="3")
    middle = replace(ORDER, order_id="2", legs=(leaf,))
    top = replace(ORDER, legs=(middle, replace(ORDER, order_id="4")))
    assert [order.order_id for order in top.with_legs()] == ["1", "2", "3", "4"]


def test_a_portfolio_knows_what_each_symbol_is_worth():
    held = Position(
        symbol="AAPL",
        quantity=Decimal(10),
        average_entry_price=Decimal(100),
        current_price=Decimal("110.5"),
    )
    portfolio = Portfolio(cash=Decimal(1000), equity=Decimal(2105), positions=(held,), as_of=NOW)
    assert portfolio.position("AAPL") is held
    assert portfolio.position("MSFT") is None
    assert portfolio.value_of("AAPL") == Decimal(1105)
    assert portfolio.value_of("MSFT") == 0
