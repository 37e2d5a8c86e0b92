"""Orders that trade in parts: how much at once, what it costs, and what hangs on the rest."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trader.broker.floor import FLAT, Floor, HandBars
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.exchange.records import Ticket
from trader.core.costs import Costs
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce

IN_TWO = Liquidity(seed=1, partial_fills=1.0)


def thin(*bars, shares: int, costs: Costs | None = None, count: int = 6) -> Floor:
    """A market that takes `shares` on a bar: five percent of its volume."""
    data = HandBars({"AAPL": [*bars, *[FLAT] * (count - len(bars))]}, volume=shares * 20)
    liquidity = Liquidity(volume_share=0.05)
    return Floor(data=data, liquidity=liquidity, costs=costs or Costs(slippage_bps=0.0))


def filled(market: Floor, order: str) -> tuple[str, str]:
    raw = market.raw(order)
    return raw["status"], raw["filled_qty"]


def test_by_default_everything_trades_at_once():
    market = Floor(FLAT, FLAT)
    order = market.buy(qty=90)
    market.to_close(1)
    assert filled(market, order) == ("filled", "90")


def test_an_order_beyond_the_share_of_the_volume_goes_on_with_the_next_bars():
    market = thin(FLAT, FLAT, (101, 101, 101, 101), shares=4)
    order = market.buy(time_in_force="gtc")
    market.to_close(1)
    assert filled(market, order) == ("partially_filled", "4")
    assert market.client.get_account().buying_power == str(9600 - 624)  # 6 x 104 stay reserved
    market.to_close(2)
    assert filled(market, order) == ("partially_filled", "8")
    assert market.raw(order)["filled_avg_price"] == "100.5"
    market.to_close(3)
    assert filled(market, order) == ("filled", "10")
    assert [fill.quantity for fill in market.broker.fills()] == [4, 4, 2]
    assert market.cash() == 10_000 - 400 - 404 - 200
    assert len({fill.execution_id for fill in market.broker.fills()}) == 3


def test_all_orders_of_a_bar_share_its_volume_the_oldest_first():
    market = thin(shares=7)
    first, second = market.buy(qty=5), market.buy(qty=5)
    market.to_close(1)
    assert filled(market, first) == ("filled", "5")
    assert filled(market, second) == ("expired", "2")


def test_a_day_order_that_traded_in_part_expires_with_the_rest():
    market = thin(shares=4)
    order = market.buy()
    market.to_close(2)
    raw = market.raw(order)
    assert (raw["status"], raw["filled_qty"], raw["filled_at"]) == ("expired", "4", None)
    assert market.client.get_account().buying_power == "9600"


def test_the_fee_of_an_order_is_the_same_in_parts_as_at_once():
    costs = Costs(slippage_bps=0.0, fee_bps=3.3, commission_per_order=1.0)
    parts, once = thin(shares=3, costs=costs), Floor(*[FLAT] * 6, costs=costs)
    for market in (parts, once):
        market.buy(time_in_force="gtc")
        market.to_close(5)
    assert parts.cash() == once.cash() == 10_000 - 1000 - Decimal("1.33")
    assert [fill.fee for fill in parts.broker.fills()] == [
        Decimal("1.10"),
        Decimal("0.10"),
        Decimal("0.10"),
        Decimal("0.03"),
    ]


def test_legs_come_to_life_only_when_the_entry_has_traded_whole():
    """After 4 of 10 shares the stop is still asleep, though the bar falls far below it."""
    market = thin(FLAT, (100, 100, 90, 100), (100, 100, 96, 100), (90, 90, 90, 90), shares=5)
    head = market.bracket(95, 110)
    market.to_close(1)
    assert market.fills() == [("buy", 100)]
    assert {leg["status"] for leg in market.raw(head)["legs"]} == {"held"}
    market.to_close(2)
    assert [leg["status"] for leg in market.raw(head)["legs"]] == ["new", "held"]
    market.to_close(4)
    assert market.fills()[2:] == [("sell", 90), ("sell", 100)]


def test_canceling_a_half_filled_entry_cancels_its_legs_and_keeps_its_shares():
    market = thin(shares=4)
    head = market.bracket(95, 110)
    market.to_close(1)
    market.client.cancel_order_by_id(head)
    raw = market.raw(head)
    assert (raw["status"], raw["filled_qty"]) == ("canceled", "4")
    assert {leg["status"] for leg in raw["legs"]} == {"canceled"}
    assert market.client.get_open_position("AAPL").qty_available == "4"


def test_a_target_that_traded_in_part_shrinks_its_stop():
    market = thin(
        FLAT, FLAT, FLAT, (110, 111, 110, 110), (96, 96, 94, 95), (95, 95, 95, 95), shares=6
    )
    market.bracket(95, 110, qty=10)
    market.to_close(3)
    raw = market.raw(market.all_orders()[0].order_id)
    assert [(leg["qty"], leg["filled_qty"]) for leg in raw["legs"]] == [("10", "6"), ("4", "0")]
    assert market.client.get_open_position("AAPL").qty_available == "0"
    market.to_close(5)
    assert market.fills()[2:] == [("sell", 110), ("sell", 95)]
    assert market.broker.portfolio().positions == ()
    assert market.raw(raw["id"])["legs"][0]["status"] == "canceled"


def test_a_stop_that_traded_in_part_sells_the_rest_at_the_next_open():
    market = thin(FLAT, FLAT, FLAT, (100, 100, 94, 95), (99, 99, 99, 99), shares=6)
    market.bracket(95, 110, qty=10)
    market.to_close(4)
    assert market.fills()[2:] == [("sell", 95), ("sell", 99)]


def test_a_rest_that_cannot_be_paid_is_canceled_and_what_traded_stays():
    market = thin(FLAT, FLAT, *[(150, 150, 150, 150)] * 2, shares=4)
    market.exchange.deposit(Decimal(-8960))  # 1040 USD are left, all of it reserved
    order = market.buy(time_in_force="gtc")
    market.to_close(3)
    raw = market.raw(order)
    assert (raw["status"], raw["filled_qty"]) == ("canceled", "8")
    assert raw["reject_reason"].startswith("insufficient buying power at the fill: cost 300.")
    assert market.events()[-1] == "canceled c1"


def test_a_stop_that_was_reached_without_a_buyer_sells_at_the_next_open():
    bars = [FLAT, FLAT, (100, 100, 94, 99), FLAT]
    data = HandBars({"AAPL": bars}, volume=[1e6, 1e6, 0.0, 1e6])
    market = Floor(data=data, liquidity=Liquidity(volume_share=1.0))
    market.buy()
    market.to_close(1)
    stop = market.sell(type="stop", stop_price=95, time_in_force="gtc")
    market.to_close(2)
    assert not market.order(stop).status.is_final
    market.to_close(3)
    assert market.fills()[1:] == [("sell", 100)]


def test_an_order_in_two_parts_trades_on_two_bars_at_their_prices():
    market = Floor(FLAT, FLAT, (102, 103, 101, 102), FLAT, liquidity=IN_TWO)
    order = market.buy(qty=20, time_in_force="gtc")
    market.to_close(1)
    assert filled(market, order)[0] == "partially_filled"
    market.to_close(2)
    assert filled(market, order) == ("filled", "20")
    assert [price for _, price in market.fills()] == [100, 102]


def test_one_share_is_never_divided_and_parts_of_a_share_are():
    market = Floor(FLAT, FLAT, liquidity=IN_TWO)
    whole, part = market.buy(qty=1), market.buy(qty="1.5")
    market.to_close(1)
    assert filled(market, whole) == ("filled", "1")
    status, quantity = filled(market, part)
    assert status == "expired"
    assert 0 < Decimal(quantity) < Decimal("1.5")


def test_what_an_order_draws_is_its_own_whatever_else_is_ordered():
    seen = []
    for extra in (0, 5):
        market = Floor(FLAT, FLAT, liquidity=Liquidity(seed=7, partial_fills=0.5))
        for number in range(extra):
            market.buy(qty=2, client_order_id=f"other{number}")
        ids = [market.buy(qty=5, client_order_id=f"same{number}") for number in range(10)]
        market.to_close(1)
        seen.append([filled(market, order) for order in ids])
    assert seen[0] == seen[1]
    assert {status for status, _ in seen[0]} == {"filled", "expired"}


def ticket(number: int, quantity: object = 10) -> Ticket:
    return Ticket(
        sequence=number,
        order_id=f"order {number}",
        client_order_id=f"c{number}",
        family_id=f"order {number}",
        symbol="AAPL",
        side=Side.BUY,
        quantity=Decimal(str(quantity)),
        order_type=OrderType.MARKET,
        order_class=OrderClass.SIMPLE,
        time_in_force=TimeInForce.GTC,
        limit_price=None,
        stop_price=None,
        status=OrderStatus.NEW,
        live=True,
        reserved=Decimal(0),
        submitted_ns=0,
        updated_ns=0,
        expires_ns=None,
    )


def test_about_the_wanted_fraction_of_orders_trades_in_parts():
    liquidity = Liquidity(seed=3, partial_fills=0.1)
    parts = sum(liquidity.part(ticket(number), None) < 10 for number in range(2000))
    assert 150 <= parts <= 250


@given(
    seed=st.integers(0, 2**32),
    fraction=st.floats(0.0, 1.0),
    quantity=st.one_of(st.integers(1, 500), st.decimals("0.000000001", 9, places=9)),
    left=st.one_of(st.none(), st.decimals(0, 600, places=2)),
)
def test_a_part_is_some_of_the_order_and_no_more_than_the_bar_has(seed, fraction, quantity, left):
    whole = ticket(1, quantity)
    part = Liquidity(seed=seed, partial_fills=fraction).part(whole, left)
    assert 0 <= part <= whole.quantity
    assert left is None or part <= left
    assert part > 0 or left is not None
    assert part == round(part, 0 if whole.quantity == int(whole.quantity) else 9)
    rest = replace(whole, filled_quantity=part)
    if part and left is None:
        assert Liquidity(seed=seed, partial_fills=fraction).part(rest, None) == rest.remaining


@pytest.mark.parametrize("wrong", [{"partial_fills": -0.1}, {"volume_share": 1.1}])
def test_a_share_of_the_market_is_a_fraction(wrong):
    with pytest.raises(ValueError, match="must be a fraction from 0 to 1"):
        Liquidity(**wrong)
